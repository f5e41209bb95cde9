"""The output of an agent's program: every line becomes an event, and only the end of a stream is kept."""

from iterdev.agents.contract import Said, Watch

LINE_LENGTH = 16_384
"""Characters of a line that are passed on."""
STDOUT_KEPT = 256 * 1024
STDERR_KEPT = 4 * 1024
MESSAGE_LENGTH = 1_000
"""Characters of an agent's own words that a failure message quotes."""


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
    return " / ".join(lines[-3:])[-MESSAGE_LENGTH:]
