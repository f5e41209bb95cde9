"""JSON lines to and from a program that runs over many turns; reading and writing never wait for each other."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream

from iterdev.agents.contract import Process
from iterdev.core.processes import Exit

LINE_LIMIT = 32 * 1024 * 1024
"""Bytes of a line: agents write whole files in one. A longer line is skipped."""

Write = Callable[[object], None]
"""Queues a message, which is written as one line; returns at once."""


class Lines:
    """Splits chunks into lines, and holds only the line that has begun."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._too_long = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        *pieces, rest = chunk.split(b"\n")
        whole = [line for piece in pieces if (line := self._ended(piece)) is not None]
        self._extend(rest)
        return whole

    def _ended(self, piece: bytes) -> bytes | None:
        self._extend(piece)
        line = None if self._too_long else bytes(self._begun)
        self._begun.clear()
        self._too_long = False
        return line

    def _extend(self, piece: bytes) -> None:
        self._too_long = self._too_long or len(self._begun) + len(piece) > self._limit
        if self._too_long:
            self._begun.clear()
        else:
            self._begun += piece


class Handlers(msgspec.Struct, frozen=True, kw_only=True):
    """Called with the output of a program, as it comes."""

    message: Callable[[bytes], None]
    """A line that begins like a JSON object; banners and other lines are skipped."""
    stderr: Callable[[bytes], None]
    """A chunk of the standard error."""
    exit: Callable[[Exit], None]


@asynccontextmanager
async def connect(process: Process, handlers: Handlers) -> AsyncIterator[Write]:
    """Reads and writes for as long as the context is open."""
    outbox, waiting = anyio.create_memory_object_stream[bytes](math.inf)
    failure: Exception | None = None
    async with outbox, waiting, anyio.create_task_group() as group:
        group.start_soon(_read, process, handlers)
        group.start_soon(_write, process, waiting)
        try:
            yield lambda message: outbox.send_nowait(msgspec.json.encode(message) + b"\n")
        except Exception as error:  # noqa: BLE001 - it is raised again below, where the task group cannot wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _read(process: Process, handlers: Handlers) -> None:
    lines = Lines()
    async for stream, chunk in process.output():
        if stream == "stderr":
            handlers.stderr(chunk)
            continue
        for line in lines.feed(chunk):
            if line.lstrip().startswith(b"{"):
                handlers.message(line)
    handlers.exit(await process.wait())


async def _write(process: Process, waiting: ObjectReceiveStream[bytes]) -> None:
    # A program is free to exit before it has read everything; the reader sees the exit.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for line in waiting:
            await process.write(line)
