"""The log of an engine and the output of its agents, as lines in order of time, even while they are written."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from iterdev.app.edits import require_task
from iterdev.core.formatting import duration
from iterdev.core.ids import moment
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.effects import LOG
from iterdev.engine.repository import Repository
from iterdev.host import clock

ENGINE = "engine"
INTERVAL = 0.25
"""Seconds between two reads of the files."""


LONGEST = 64 * 1024 * 1024
"""Bytes of a log that are read; of a longer one, the end."""


STAMP = re.compile(r"(2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d) (.*)", re.DOTALL)
"""A line of an agent's log: when, and what."""


class SaidLine(Struct, frozen=True):
    text: str
    at: float | None = None
    """None for a line without a time, as earlier editions wrote them."""


class LogLine(Struct, frozen=True):
    at: float
    """When the line was written; if it does not say, when the newest line of its file was."""
    source: str
    """`engine`, or the task and the number of its attempt."""
    text: str


def log_lines(repository: Repository, session: SessionId, task: str = "") -> list[LogLine]:
    """The lines of a session, or only those of a task's agents."""
    return _LogFiles(repository, session, task).new_lines()


def follow_logs(
    repository: Repository, session: SessionId, task: str = "", *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[LogLine]:
    """The lines of a session, and then new ones as they are written, until no engine runs any longer."""
    files = _LogFiles(repository, session, task)
    summary = next(summary for summary in repository.summaries() if summary.id == session)
    while True:
        # Checked before reading, so that the last lines of an engine are read too.
        alive = repository.engine_alive(summary)
        yield from files.new_lines()
        if not alive:
            return
        sleep(INTERVAL)


class LogTail:
    """The end of a file that another process writes; a file that is not there has no lines yet."""

    def __init__(self, path: Path) -> None:
        self._path, self._done = path, 0
        self.written_at = 0.0

    @property
    def size(self) -> int:
        """In bytes; it changes when something was added."""
        try:
            return self._path.lstat().st_size
        except FileNotFoundError:
            return 0

    def new_lines(self) -> list[str]:
        """What was written since the last read, without the times."""
        return [line.text for line in self.new_said()]

    def new_said(self) -> list[SaidLine]:
        """Whole lines that were added since the last read; a log that was cut is read on from its end."""
        return [_said(line) for line in self.new_raw()]

    def new_raw(self) -> list[str]:
        """The same as the file has it."""
        try:
            stat = self._path.lstat()
        except FileNotFoundError:
            return []
        if not S_ISREG(stat.st_mode):
            # Agents without a sandbox can put a link in its place, to anything.
            return []
        size, self.written_at = stat.st_size, stat.st_mtime
        if size <= self._done:
            self._done = size
            return []
        begin = max(self._done, size - LONGEST)
        with open(self._path, "rb", opener=_without_links) as file:
            file.seek(begin)
            whole, newline, _ = file.read(size - begin).rpartition(b"\n")
        self._done = begin + len(whole) + len(newline)
        return whole.decode("utf-8", "replace").splitlines()


def _said(line: str) -> SaidLine:
    found = STAMP.fullmatch(line)
    try:
        return SaidLine(found[2], datetime.fromisoformat(found[1]).timestamp()) if found else SaidLine(line)
    except (ValueError, OverflowError):
        return SaidLine(line)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def attempt_log(repository: Repository, session: SessionId, task: TaskId, number: int) -> LogTail:
    """What the agent of an attempt says, from its beginning, or from where the log was cut."""
    return LogTail(repository.folder(repository.state(session)) / "logs" / f"{task}-{number}.log")


class _LogFiles:
    def __init__(self, repository: Repository, session: SessionId, task: str) -> None:
        state = repository.state(session)
        self._engine = repository.folder(state) / LOG
        self._task = require_task(state, task) if task else ""
        self._tails: dict[Path, LogTail] = {}

    def new_lines(self) -> list[LogLine]:
        agents = sorted(self._engine.parent.glob("*.log"))
        if self._task:
            paths = [path for path in agents if path.stem.rpartition("-")[0] == self._task]
        else:
            paths = [*agents, *([self._engine] if self._engine.exists() else [])]
        return sorted((line for path in paths for line in self._new_lines(path)), key=lambda line: line.at)

    def _new_lines(self, path: Path) -> Iterator[LogLine]:
        tail = self._tails.setdefault(path, LogTail(path))
        for said in tail.new_said():
            line = LogLine(said.at or tail.written_at, path.stem, said.text)
            yield _engine_line(line) if path == self._engine else line


def _engine_line(line: LogLine) -> LogLine:
    """A line of the engine's log for a person: when, what, how long, and what went wrong."""
    try:
        entry = dict(json.loads(line.text))
        at, took = datetime.fromisoformat(entry.pop("ts")).timestamp(), duration(float(entry.pop("seconds", 0)))
        shown = moment(at, clock.LOCAL)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return line
    effect, error = entry.pop("effect", ""), entry.pop("error", "")
    words = (shown, effect, *entry.values(), f"({took})")
    return LogLine(at, ENGINE, " ".join(map(str, words)) + (f": {error}" if error else ""))
