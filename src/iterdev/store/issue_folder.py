"""The folder `.workflow/issues/`, which other tools can read, kept in step with the tracker's log.

A file that another program has written since is read back before anything else is done (`tracker/folder.py`). If not
all of it can be taken over, it is kept beside the new one.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from iterdev.core.errors import HostError
from iterdev.core.types import SessionId
from iterdev.store import atomic_files
from iterdev.store.journal import Journal
from iterdev.store.tracker_log import TrackerLog
from iterdev.tracker import folder, state
from iterdev.tracker.events import TrackerEntry, TrackerEvent
from iterdev.tracker.folder import FolderNews
from iterdev.tracker.state import Tracker

LOCK = ".lock"
PATTERNS = (folder.ISSUES, folder.HISTORY, f"{folder.SOLUTIONS}*.jsonl", f"{folder.QUEUES}*.json")
TRACKER = SessionId("")
"""Stands for the tracker where the journal keeps what it knows of a session's files."""
EDITED = ""
"""The signature of a file that was read back, and has to be written again."""

KnownFiles = Mapping[str, tuple[str, int]]
"""The signature of each file that iterdev wrote, and the entry that it was made after."""
NO_FILES: KnownFiles = {}


class IssueFolder:
    def __init__(self, path: Path, journal: Journal) -> None:
        self.path, self._journal = path, journal

    @contextmanager
    def held(self) -> Iterator[None]:
        """Reading back, a change of the tracker, and writing: by one process at a time."""
        atomic_files.make_folder(self.path)
        # Nothing is written to it: a repository may come with a link to a file of the user's in its place.
        with os.fdopen(atomic_files.open_to_write(self.path / LOCK, os.O_RDONLY)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read_back(self, log: TrackerLog) -> tuple[str, ...]:
        """Records what others wrote; returns in sentences what could not be taken over. The folder is held."""
        edited, found = self._edited(), FolderNews()
        if not edited:
            return ()

        def rule(tracker: Tracker, at: float) -> tuple[TrackerEvent, ...]:
            nonlocal found
            found = folder.read_back(edited, tracker, at)
            return found.events

        log.transact(rule)
        kept = [self._kept(self.path / name) for name in found.incomplete]
        _, seq = self._journal.projected_files(TRACKER).get(folder.ISSUES, (EDITED, 0))
        self._journal.record_files(TRACKER, dict.fromkeys(edited, EDITED), seq=seq)
        return (*found.notes, *(f'"{path}" has what could not be read' for path in kept))

    def seen(self, tracker: Tracker, at: float) -> Tracker:
        """The tracker with what others wrote, for looking at; nothing is recorded."""
        return seen(self.path, tracker, at, self._journal.projected_files(TRACKER))

    def write(self, tracker: Tracker) -> None:
        """Brings the files up to date. The folder is held."""
        known = self._journal.projected_files(TRACKER)
        _, seq = known.get(folder.ISSUES, (EDITED, 0))
        stale = [name for name, (digest, _) in known.items() if digest == EDITED or not (self.path / name).exists()]
        if seq == tracker.seq and not stale:
            return
        news = (entry.event for entry in self._journal.read_tracker(seq))
        touched = folder.touched(news, stale) if seq else None
        written: dict[str, str] = {}
        for name, text in folder.texts(tracker, touched):
            path = self.path / name
            if atomic_files.read(path) != text.encode("utf-8", "backslashreplace"):
                atomic_files.write(path, text)
            written[name] = _signature(path)
        gone = [name for name in known if folder.is_gone(name, tracker)]
        for name in gone:
            (self.path / name).unlink(missing_ok=True)
        self._journal.forget_files(TRACKER, gone)
        self._journal.record_files(TRACKER, written, seq=tracker.seq)

    def _edited(self) -> dict[str, str]:
        return _edited(self.path, self._journal.projected_files(TRACKER))

    def _kept(self, path: Path) -> Path:
        return atomic_files.set_aside(path, path.with_name(f"{path.name}.unread"))


def seen(path: Path, tracker: Tracker, at: float, known: KnownFiles = NO_FILES) -> Tracker:
    """The tracker with what others wrote into the folder, for looking at; nothing is recorded."""
    found = folder.read_back(_edited(path, known), tracker, at).events
    return state.evolve(tracker, [TrackerEntry(seq, at, event) for seq, event in enumerate(found, tracker.seq + 1)])


def _edited(path: Path, known: KnownFiles) -> dict[str, str]:
    """The files that are not as iterdev wrote them."""
    files = (file for pattern in PATTERNS for file in sorted(path.glob(pattern)) if file.is_file())
    names = ((file.relative_to(path).as_posix(), file) for file in files)
    return {name: _read(file) for name, file in names if known.get(name, (EDITED, 0))[0] != _signature(file)}


def _signature(path: Path) -> str:
    """Changes whenever the file is written."""
    found = path.stat()
    return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint="check its permissions") from error
