"""The streams of an agent's program: lines, JSON messages, events for every line, and the end that is kept."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream

from iterdev.agents.contract import Process, Said, Watch
from iterdev.core.processes import Exit

LINE_LENGTH = 16_384
"""Characters of a line that are passed on."""
STDOUT_KEPT = 256 * 1024
STDERR_KEPT = 4 * 1024
MESSAGE_LENGTH = 1_000
"""Characters of an agent's own words that a failure message quotes."""
WORD_LENGTH = 200
"""Characters of a word that is left out rather than cut: half of a secret would not be recognised as one."""
LINE_LIMIT = 32 * 1024 * 1024
"""Bytes of a line: agents write whole files in one. A longer line is skipped."""

Receive = Callable[[bytes], None]
Write = Callable[[object], None]
"""Queues a message, which is written as one line; returns at once."""


class OutputTail:
    """Reads one stream: reports every line, cut to a length, and keeps the last bytes of the whole."""

    def __init__(self, watch: Watch, *, keep: int) -> None:
        self.kept = bytearray()
        self._keep = keep
        self._watch = watch
        self._line = bytearray()

    def feed(self, chunk: bytes) -> None:
        self.kept += chunk
        del self.kept[: -self._keep]
        *ended, begun = chunk.split(b"\n")
        for piece in ended:
            self._extend(piece)
            self._report_line()
        self._extend(begun)

    def finish(self) -> None:
        if self._line:
            self._report_line()

    def _extend(self, piece: bytes) -> None:
        # A character takes at most four bytes; the rest of a long line is not stored.
        self._line += piece[: 4 * LINE_LENGTH - len(self._line)]

    def _report_line(self) -> None:
        text = self._line.decode(errors="replace").rstrip("\r")
        self._line.clear()
        self._watch(Said(text[:LINE_LENGTH]))


def last_lines(output: bytes | bytearray) -> str:
    """The last three lines, joined into one that a failure message can quote."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    text = " / ".join(lines[-3:])
    if len(text) <= MESSAGE_LENGTH:
        return text
    cut = text[-MESSAGE_LENGTH:]
    word, _, rest = cut.partition(" ")
    return rest if len(word) <= WORD_LENGTH else cut


def quoted(text: str) -> str:
    """The beginning of an agent's own words, for a failure message."""
    if len(text) <= MESSAGE_LENGTH:
        return text
    cut = text[:MESSAGE_LENGTH]
    rest, _, word = cut.rpartition(" ")
    return rest if len(word) <= WORD_LENGTH else cut


class Lines:
    """Splits chunks into lines, and holds only the line that has begun."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._too_long = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        *pieces, rest = chunk.split(b"\n")
        whole = []
        for piece in pieces:
            self._extend(piece)
            if not self._too_long:
                whole.append(bytes(self._begun))
            self._begun.clear()
            self._too_long = False
        self._extend(rest)
        return whole

    def _extend(self, piece: bytes) -> None:
        self._too_long = self._too_long or len(self._begun) + len(piece) > self._limit
        if self._too_long:
            self._begun.clear()
        else:
            self._begun += piece


@asynccontextmanager
async def connect(
    process: Process, *, message: Receive, stderr: Receive, exited: Callable[[Exit], None]
) -> AsyncIterator[Write]:
    """Reads and writes JSON lines for as long as the context is open; neither waits for the other.

    `message` gets every line that begins like a JSON object; banners and other lines are skipped.
    """

    async def read() -> None:
        lines = Lines()
        async for stream, chunk in process.output():
            if stream == "stderr":
                stderr(chunk)
                continue
            for line in lines.feed(chunk):
                if line.lstrip().startswith(b"{"):
                    message(line)
        exited(await process.wait())

    outbox, waiting = anyio.create_memory_object_stream[bytes](math.inf)
    failure: Exception | None = None
    async with outbox, waiting, anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(_write, process, waiting)
        try:
            yield lambda sent: outbox.send_nowait(msgspec.json.encode(sent) + b"\n")
        except Exception as error:  # noqa: BLE001 - it is raised again below, where the task group cannot wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _write(process: Process, waiting: ObjectReceiveStream[bytes]) -> None:
    # A program is free to exit before it has read everything; the reader sees the exit.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for line in waiting:
            await process.write(line)
