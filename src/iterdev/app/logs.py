"""What the engine of a session did and what its agents said, as lines; also while they are at work."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.engine.effects import LOG
from iterdev.engine.repository import Repository

ENGINE = "engine"
PAUSE = 0.25
"""Seconds between two looks at the files."""


class LogLine(Struct, frozen=True):
    source: str
    """`engine`, or the task and the number of its attempt."""
    text: str


def log_lines(repository: Repository, session: SessionId, task: str = "") -> Iterator[LogLine]:
    """The lines that are there: those of the engine first, then those of each attempt, the oldest first."""
    return _Files(repository, session, task).new_lines()


def follow_logs(
    repository: Repository, session: SessionId, task: str = "", *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[LogLine]:
    """The lines that are there, and then new ones as they are written, until no engine runs any longer."""
    files = _Files(repository, session, task)
    summary = next(summary for summary in repository.summaries() if summary.id == session)
    while True:
        # Asked before reading, so that the last lines of an engine are read too.
        alive = repository.engine_alive(summary)
        yield from files.new_lines()
        if not alive:
            return
        sleep(PAUSE)


class _Files:
    """The log files of a session, and how far each has been read."""

    def __init__(self, repository: Repository, session: SessionId, task: str) -> None:
        state = repository.state(session)
        if task and task not in state.tasks.plan:
            raise UserError(f'There is no task "{task}" in {session}', hint=f"iterdev status {session}")
        self._folder, self._task = repository.folder(state), task
        self._read: dict[Path, int] = {}

    def new_lines(self) -> Iterator[LogLine]:
        for path in self._paths():
            yield from (LogLine(path.stem, line) for line in self._new_text(path).splitlines())

    def _paths(self) -> list[Path]:
        engine = self._folder / LOG
        agents = sorted(engine.parent.glob("*.log"), key=lambda path: (path.stat().st_mtime, path.name))
        if self._task:
            return [path for path in agents if path.stem.rpartition("-")[0] == self._task]
        return [*([engine] if engine.exists() else []), *agents]

    def _new_text(self, path: Path) -> str:
        """What was added since the last look, in whole lines; a log that lost its beginning is read from its end."""
        size, done = path.stat().st_size, self._read.get(path, 0)
        if size <= done:
            self._read[path] = size
            return ""
        with path.open("rb") as file:
            file.seek(done)
            whole, newline, _ = file.read(size - done).rpartition(b"\n")
        self._read[path] = done + len(whole) + len(newline)
        text = whole.decode("utf-8", "replace")
        return "\n".join(map(_engine_text, text.splitlines())) if path.stem == ENGINE else text


def _engine_text(line: str) -> str:
    """A line of the engine's log for a person: when, what, how long, and what went wrong."""
    try:
        entry = dict(json.loads(line))
    except (ValueError, TypeError):
        return line
    when, effect, seconds = entry.pop("ts", ""), entry.pop("effect", ""), entry.pop("seconds", 0)
    error = entry.pop("error", "")
    facts = " ".join(map(str, entry.values()))
    return f"{when} {effect}" + f" {facts}".rstrip() + f" ({seconds} s)" + (f": {error}" if error else "")
