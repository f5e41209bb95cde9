"""The sessions of a repository, for all pages at once: read by one thread at a time, and folded once."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from iterdev.app.live.watch import RepositoryWatch, SessionWatch
from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId


class Watching:
    def __init__(self, top: Path) -> None:
        self.top = top
        self._lock = threading.RLock()
        self._repository = Repository(top)
        self._all = RepositoryWatch(self._repository)
        self._unused: list[Repository] = []
        self._seen = 0
        """How many changes `look` has told of."""

    def close(self) -> None:
        with self._lock:
            for repository in (self._repository, *self._unused):
                repository.close()

    def look(self) -> bool:
        """Whether anything has changed since the last call; that a page was shown meanwhile does not count."""
        with self._lock:
            self._all.look()
            seen, self._seen = self._seen, self._all.changes
            return seen != self._seen

    def has_news(self) -> bool:
        """Whether something may have been written since the last look; it takes microseconds, and never waits."""
        if not self._lock.acquire(blocking=False):
            return True
        try:
            return self._seen != self._all.changes or self._all.has_news()
        finally:
            self._lock.release()

    def names(self) -> list[SessionId]:
        with self._lock:
            return self._repository.sessions()

    @contextmanager
    def sessions(self) -> Iterator[RepositoryWatch]:
        """All sessions as they are now."""
        with self._lock:
            self._all.look()
            yield self._all

    @contextmanager
    def session(self, name: SessionId) -> Iterator[SessionWatch]:
        """One session as it is now; everything that is read of it is of the same entry of the journal."""
        with self._lock:
            yield self._all.session(name)

    @contextmanager
    def fresh_repository(self) -> Iterator[Repository]:
        """A repository with the settings as they are now, for an act."""
        with closing(Repository(self.top)) as repository:
            yield repository

    @contextmanager
    def repository(self) -> Iterator[Repository]:
        """A repository that no other thread uses meanwhile, for reading."""
        with self._lock:
            repository = self._unused.pop() if self._unused else Repository(self.top)
        try:
            yield repository
        finally:
            with self._lock:
                self._unused.append(repository)
