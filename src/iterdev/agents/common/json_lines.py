"""JSON lines to and from a program that goes on talking: both directions keep moving whoever waits for what.

It knows lines, and nothing of what they say.
"""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream

from iterdev.agents.contract import Process
from iterdev.core.processes import Exit

LINE_LIMIT = 32 * 1024 * 1024
"""Bytes of a line: agents pass on whole files in one. A longer one is left out."""

Send = Callable[[object], None]
"""Hands in a message to be written as a line, in its turn; it never waits."""


class Lines:
    """Cuts chunks into lines, and holds no more than the line that has begun."""

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


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told what a program says, as it comes."""

    message: Callable[[bytes], None]
    """A line that begins like a JSON object; banners and other lines are left out."""
    complaint: Callable[[bytes], None]
    """A chunk of the standard error."""
    end: Callable[[Exit], None]


@asynccontextmanager
async def connected(process: Process, listener: Listener) -> AsyncIterator[Send]:
    """Reads and writes for as long as the context is open."""
    outbox, waiting = anyio.create_memory_object_stream[bytes](math.inf)
    failure: Exception | None = None
    async with outbox, waiting, anyio.create_task_group() as group:
        group.start_soon(_read, process, listener)
        group.start_soon(_write, process, waiting)
        try:
            yield lambda message: outbox.send_nowait(msgspec.json.encode(message) + b"\n")
        except Exception as error:  # noqa: BLE001 - it is raised again below, where the task group cannot wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _read(process: Process, listener: Listener) -> None:
    lines = Lines()
    async for stream, chunk in process.output():
        if stream == "stderr":
            listener.complaint(chunk)
            continue
        for line in lines.feed(chunk):
            if line.lstrip().startswith(b"{"):
                listener.message(line)
    listener.end(await process.wait())


async def _write(process: Process, waiting: ObjectReceiveStream[bytes]) -> None:
    # A program is free to end before it has read everything; that it did is heard by the reader.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for line in waiting:
            await process.write(line)
