"""The output of one turn of Codex, and the thread that the turn belongs to."""

import msgspec

from iterdev.agents.codex import protocol
from iterdev.agents.common.json_lines import Lines
from iterdev.agents.common.output import STDERR_KEPT
from iterdev.agents.contract import Watch
from iterdev.core.results import Usage


class Thread(msgspec.Struct, frozen=True):
    """A conversation as Codex stores it, and the usage counted so far: Codex reports totals since its start."""

    id: str = ""
    counted: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.id} {self.counted.input_tokens} {self.counted.output_tokens}" if self.id else ""

    def usage_since(self, totals: protocol.Totals) -> Usage:
        """What was used since the last count, by the new totals."""
        return Usage(
            input_tokens=max(0, totals.input_tokens - self.counted.input_tokens),
            output_tokens=max(0, totals.output_tokens - self.counted.output_tokens),
        )

    @classmethod
    def parse(cls, conversation: str) -> "Thread":
        match conversation.split():
            case [id_, counted_in, counted_out]:
                return cls(id_, Usage(input_tokens=int(counted_in), output_tokens=int(counted_out)))
            case _:
                return cls(conversation)


class TurnOutput:
    """What one turn has written so far."""

    def __init__(self, watch: Watch, thread: str, workspace: str) -> None:
        self.thread = thread
        self.totals: protocol.Totals | None = None
        self.completed = False
        self.failure = ""
        self.answer = b""
        self.stderr = bytearray()
        self._watch = watch
        self._workspace = workspace
        self._lines = {"stdout": Lines(), "stderr": Lines()}

    @property
    def has_lost_thread(self) -> bool:
        return not self.completed and b"no rollout found" in self.stderr

    def feed(self, stream: str, chunk: bytes) -> None:
        if stream == "stderr":
            self.stderr += chunk
            del self.stderr[:-STDERR_KEPT]
        for line in self._lines[stream].feed(chunk):
            if stream == "stdout":
                self._handle(line)
            elif denied := protocol.denied_permission(line):
                self._watch(denied)

    def _handle(self, line: bytes) -> None:
        event = protocol.read(line)
        if event is None:
            return
        # Codex continued after an error that it had reported, so a later end has another cause.
        self.failure = ""
        match event:
            case protocol.ThreadStarted(thread):
                self.thread = thread
            case protocol.ItemCompleted(protocol.Item(type="agent_message", text=text)):
                self.answer = text.encode(errors="replace")
            case protocol.TurnCompleted(totals):
                self.completed, self.totals = True, totals
            case protocol.TurnFailed(protocol.Failure(message)) | protocol.ErrorReported(message):
                self.failure = message
            case _:
                pass
        if described := protocol.describe(event, self._workspace):
            self._watch(described)
