"""A server on this machine that takes messages, and answers as it is told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Received = list[tuple[dict[str, str], bytes]]


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, Received]]:
    received: Received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), body))
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}", received
    listening.shutdown()
    thread.join()
    listening.server_close()


def answering(*statuses: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Each status in turn, and the last one from then on."""
    left = list(statuses)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(left.pop(0) if len(left) > 1 else left[0])
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    return answer
