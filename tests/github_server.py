"""A server on this machine that answers about issues as GitHub does."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghp_" + "t" * 36


class GitHub:
    """What the server has: issues, comments, and answers that take the place of the usual ones."""

    def __init__(self) -> None:
        self.issues: list[dict[str, object]] = []
        self.comments: dict[int, list[dict[str, object]]] = {}
        self.instead: Callable[[str], tuple[int, dict[str, str], object] | None] = lambda _: None
        self.asked: list[str] = []
        self.pulls: list[dict[str, object]] = []
        self.reviews: dict[int, list[dict[str, object]]] = {}
        self.shown: dict[str, range] = {}
        """The lines that the difference of every pull request shows, by file."""
        self.address = ""

    def add(self, number: int, title: str = "", **fields: object) -> None:
        document = {
            "number": number,
            "title": title or f"Issue {number}",
            "body": None,
            "state": "open",
            "labels": [],
            "html_url": f"https://github.com/o/r/issues/{number}",
            "comments": len(self.comments.get(number, ())),
        }
        self.issues.append({**document, **fields})

    def say(self, number: int, *comments: tuple[str, str]) -> None:
        self.comments[number] = [{"user": {"login": author}, "body": body} for author, body in comments]

    def post(self, path: str, document: dict[str, object]) -> tuple[int, dict[str, str], object]:
        """A pull request, of which each branch has one, into main or the branch of another one; or a review of one."""
        if found := re.fullmatch(r"/repos/o/r/pulls/(\d+)/reviews", path):
            return self._review(int(found[1]), document)
        if path != "/repos/o/r/pulls" or document["base"] not in {"main", *(pull["head"] for pull in self.pulls)}:
            refused = {"message": "Validation Failed", "errors": [{"message": f"no branch {document['base']}"}]}
            return 422, {}, refused
        if any(pull["head"] == document["head"] for pull in self.pulls):
            return 422, {}, {"message": "Validation Failed", "errors": [{"message": "A pull request already exists"}]}
        self.pulls.append({**document, "html_url": f"https://github.com/o/r/pull/{len(self.pulls) + 1}"})
        return 201, {}, self.pulls[-1]

    def _review(self, number: int, document: dict[str, object]) -> tuple[int, dict[str, str], object]:
        outside = [one for one in document["comments"] if one["line"] not in self.shown.get(one["path"], ())]
        if outside:
            return 422, {}, {"message": "Unprocessable Entity", "errors": ["Line could not be resolved"]}
        self.reviews.setdefault(number, []).append(document)
        return 200, {}, document

    def patch(self, path: str, document: dict[str, object]) -> tuple[int, dict[str, str], object]:
        number = int(path.rpartition("/")[2])
        if path != f"/repos/o/r/pulls/{number}" or number > len(self.pulls):
            return 404, {}, {"message": "Not Found"}
        self.pulls[number - 1] |= document
        return 200, {}, self.pulls[number - 1]

    def answer(self, path: str) -> tuple[int, dict[str, str], object]:
        place = urlsplit(path)
        asked = {key: values[0] for key, values in parse_qs(place.query).items()}
        if found := re.fullmatch(r"/repos/o/r/issues/(\d+)/comments", place.path):
            return self._page(place.path, self.comments.get(int(found[1]), []), asked)
        if found := re.fullmatch(r"/repos/o/r/issues/(\d+)", place.path):
            named = [issue for issue in self.issues if issue["number"] == int(found[1])]
            return (200, {}, named[0]) if named else (404, {}, {"message": "Not Found"})
        if place.path == "/repos/o/r/issues":
            wanted, labels = asked.get("state", "open"), set(filter(None, asked.get("labels", "").split(",")))
            fitting = [issue for issue in self.issues if wanted in {"all", issue["state"]}]
            labelled = [issue for issue in fitting if labels <= {label["name"] for label in issue["labels"]}]
            return self._page(place.path, labelled, asked)
        if place.path == "/repos/o/r/pulls":
            return 200, {}, [pull for pull in self.pulls if f"o:{pull['head']}" == asked["head"]]
        if found := re.fullmatch(r"/repos/o/r/pulls/(\d+)/reviews", place.path):
            return self._page(place.path, self.reviews.get(int(found[1]), []), asked)
        return 404, {}, {"message": "Not Found"}

    def _page(self, path: str, found: list, asked: dict[str, str]) -> tuple[int, dict[str, str], object]:
        size, page = int(asked.get("per_page", 30)), int(asked.get("page", 1))
        more = f'<{self.address}{path}?per_page={size}&page={page + 1}>; rel="next", <{self.address}{path}>; rel="last"'
        return 200, {"Link": more} if len(found) > page * size else {}, found[(page - 1) * size : page * size]


@contextmanager
def github_server() -> Iterator[GitHub]:
    github = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._send(*github.post(self.path, self._document()))

        def do_PATCH(self) -> None:
            self._send(*github.patch(self.path, self._document()))

        def _document(self) -> dict[str, object]:
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def do_GET(self) -> None:
            github.asked.append(self.path)
            refused = (401, {}, {"message": "Bad credentials"})
            known = self.headers["Authorization"] == f"Bearer {TOKEN}"
            self._send(*(github.instead(self.path) or (github.answer(self.path) if known else refused)))

        def _send(self, status: int, headers: dict[str, str], document: object) -> None:
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    github.address = f"http://127.0.0.1:{listening.server_port}"
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield github
    listening.shutdown()
    thread.join()
    listening.server_close()
