"""What is heard of one turn of Codex, line by line, and the thread that the turn is a part of."""

import msgspec

from iterdev.agents.codex import protocol as events
from iterdev.agents.command import STDERR_KEPT, Watch
from iterdev.agents.common.json_lines import Lines
from iterdev.core.results import Usage


class Thread(msgspec.Struct, frozen=True):
    """A conversation as Codex keeps it, and what was counted of it: Codex counts from its start."""

    id: str = ""
    counted: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.id} {self.counted.input_tokens} {self.counted.output_tokens}" if self.id else ""

    def spent(self, totals: events.Totals) -> Usage:
        """What was used since, of totals that go on growing over the thread."""
        return Usage(
            input_tokens=max(0, totals.input_tokens - self.counted.input_tokens),
            output_tokens=max(0, totals.output_tokens - self.counted.output_tokens),
        )

    @classmethod
    def named(cls, conversation: str) -> "Thread":
        match conversation.split():
            case [id_, counted_in, counted_out]:
                return cls(id_, Usage(input_tokens=int(counted_in), output_tokens=int(counted_out)))
            case _:
                return cls(conversation)


class Hearing:
    """What is heard of one turn."""

    def __init__(self, watch: Watch, thread: str, workspace: str) -> None:
        self.thread = thread
        self.totals: events.Totals | None = None
        self.completed = False
        self.failure = ""
        self.answer = b""
        self.complaints = bytearray()
        self._watch = watch
        self._workspace = workspace
        self._lines = {"stdout": Lines(), "stderr": Lines()}

    @property
    def has_lost_thread(self) -> bool:
        return not self.completed and b"no rollout found" in self.complaints

    def hear(self, stream: str, chunk: bytes) -> None:
        if stream == "stderr":
            self.complaints += chunk
            del self.complaints[:-STDERR_KEPT]
        for line in self._lines[stream].feed(chunk):
            if stream == "stdout":
                self._hear_event(line)
            elif denied := events.refused(line):
                self._watch(denied)

    def _hear_event(self, line: bytes) -> None:
        event = events.read(line)
        if event is None:
            return
        # A complaint with which it could go on explains nothing that comes later.
        self.failure = ""
        match event:
            case events.ThreadStarted(thread):
                self.thread = thread
            case events.ItemCompleted(events.Item(type="agent_message", text=text)):
                self.answer = text.encode(errors="replace")
            case events.TurnCompleted(totals):
                self.completed, self.totals = True, totals
            case events.TurnFailed(events.Failure(message)) | events.Complained(message):
                self.failure = message
            case _:
                pass
        if seen := events.told(event, self._workspace):
            self._watch(seen)
