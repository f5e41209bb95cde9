"""A connection to one client on standard input and output: a message per line, and many requests at once."""

import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream, TaskGroup
from anyio.from_thread import BlockingPortal
from msgspec import UNSET, Struct, UnsetType

from iterdev.core.errors import UserError
from iterdev.mcp import messages, revisions
from iterdev.mcp.messages import UNREADABLE, Document, Id, InvalidMessage, Message
from iterdev.mcp.revisions import Caller
from iterdev.mcp.server import Server, answer
from iterdev.mcp.tools import Question, Response

LONGEST_MESSAGE = 4 * 1024 * 1024
MOST_REQUESTS = 32
"""Requests that are answered at once; a further one waits."""
LAST_ANSWERS = 2.0
"""Seconds for what is being answered when the client has said everything."""
CHUNK = 64 * 1024
TOO_LONG = b""
"""Stands for a message that is too long; it is not read."""

Write = Callable[[bytes], Awaitable[None]]


class _Cancelled(Struct, frozen=True, kw_only=True):
    request: Id = msgspec.field(name="requestId", default=None)


class Connection:
    def __init__(self, write: Write) -> None:
        self._write = write
        self._caller: Caller | None = None
        """What a client said of itself in a handshake."""
        self._scopes: dict[Id | UnsetType, anyio.CancelScope] = {}
        """Of the requests that are being answered; the last one of those with the same id."""
        self._unanswered = 0
        self._numbers = count(1)
        self._asked: dict[Id, tuple[anyio.Event, list[Response]]] = {}
        self._room = anyio.CapacityLimiter(MOST_REQUESTS)
        self._writing = anyio.Lock()

    async def serve(self, server: Server, lines: ObjectReceiveStream[bytes]) -> None:
        """Answers until the client leaves; what cannot be answered soon after that is given up."""
        async with anyio.create_task_group() as group:
            async for line in lines:
                await self._heard(line, server, group)
            with anyio.move_on_after(LAST_ANSWERS):
                while self._unanswered:  # noqa: ASYNC110 - it is a short time
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    async def ask(self, question: Question) -> Response | None:
        """Asks the user through a client that had a handshake; None if the client gives no valid answer."""
        number, answered = f"iterdev-{next(self._numbers)}", anyio.Event()
        said: list[Response] = []
        self._asked[number] = answered, said
        try:
            await self._send(messages.request(number, "elicitation/create", question.params))
            await answered.wait()
        finally:
            del self._asked[number]
        return said[0] if said else None

    async def notify(self, method: str, params: Document) -> None:
        await self._send(messages.notification(method, params))

    async def _heard(self, line: bytes, server: Server, group: TaskGroup) -> None:
        try:
            message = _read(line)
        except InvalidMessage as error:
            await self._send(error.answer)
            return
        if not message.method:
            self._take_answer(message)
        elif message.method == "notifications/cancelled":
            self._cancel(message)
        elif message.wants_answer:
            if message.method == "initialize":
                with suppress(*UNREADABLE):
                    self._caller = revisions.initialized(message.params)
            # Known before it begins: the next message may cancel it.
            scope = self._scopes[message.id] = anyio.CancelScope()
            self._unanswered += 1
            group.start_soon(self._answer, message, server, scope)

    async def _answer(self, message: Message, server: Server, scope: anyio.CancelScope) -> None:
        said = None
        with scope:
            async with self._room:
                said = await answer(message, server, self._caller)
        try:
            if said is not None and not scope.cancel_called:
                await self._send(said)
        finally:
            self._unanswered -= 1
            if self._scopes.get(message.id) is scope:
                del self._scopes[message.id]

    def _cancel(self, message: Message) -> None:
        with suppress(*UNREADABLE):
            cancelled = msgspec.json.decode(message.params, type=_Cancelled)
            if scope := self._scopes.get(cancelled.request):
                scope.cancel()

    def _take_answer(self, message: Message) -> None:
        """An answer to a question of ours; any other is ignored."""
        known = None if message.id is UNSET else self._asked.get(message.id)
        if known is None:
            return
        answered, said = known
        with suppress(*UNREADABLE):
            if message.result is not UNSET:
                said.append(msgspec.json.decode(message.result, type=Response))
        answered.set()

    async def _send(self, message: bytes) -> None:
        async with self._writing:
            await self._write(message + b"\n")


def _read(line: bytes) -> Message:
    if line == TOO_LONG:
        raise InvalidMessage(messages.PARSE_ERROR, f"a message has more than {LONGEST_MESSAGE} bytes")
    return messages.read(line)


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[ObjectReceiveStream[bytes], Write]]:
    """The lines of standard input, and a function that writes to standard output, which nothing else may do then."""
    if sys.stdin.isatty():
        raise UserError("`iterdev mcp` is started by an MCP client, not in a terminal", hint="iterdev skill install")
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    send, receive = anyio.create_memory_object_stream[bytes](MOST_REQUESTS)

    def put(message: bytes) -> None:
        output.write(message)
        output.flush()

    async def write(message: bytes) -> None:
        # A client that does not read, or has left, must not hold up the end.
        with suppress(BrokenPipeError):
            await anyio.to_thread.run_sync(put, message, abandon_on_cancel=True)

    async def close() -> None:
        await send.aclose()

    async with BlockingPortal() as portal:

        def read() -> None:
            # A thread that waits for a client must not keep the program from ending, so it is a daemon.
            with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                for line in lines_of(partial(os.read, sys.stdin.fileno())):
                    portal.call(send.send, line)
                portal.call(close)

        threading.Thread(target=read, daemon=True).start()
        yield receive, write
        await receive.aclose()
        await portal.stop(cancel_remaining=True)


def lines_of(read: Callable[[int], bytes], longest: int = LONGEST_MESSAGE) -> Iterator[bytes]:
    """The lines that are not empty; one that is too long is replaced."""
    held, too_long = bytearray(), False
    while part := read(CHUNK):
        *complete, rest = part.split(b"\n")
        for end in complete:
            held += end
            if too_long or len(held) > longest:
                yield TOO_LONG
            elif held.strip():
                yield bytes(held)
            held, too_long = bytearray(), False
        held += rest
        if len(held) > longest:
            held, too_long = bytearray(), True
    if held.strip():
        yield bytes(held)
