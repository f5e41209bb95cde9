"""Opens the issue tracker of a repository, which is that of its main worktree."""

from collections.abc import Iterator
from contextlib import contextmanager

from iterdev.app.sessions import main_worktree
from iterdev.engine.repository import Repository
from iterdev.store.tracker_log import TrackerLog
from iterdev.tracker.state import Tracker


def main_repository(repository: Repository) -> Repository:
    """The repository of the main worktree; one without files, which `git worktree` may also belong to, has none."""
    main = main_worktree(repository)
    return Repository(main, repository.teams) if main and (main / ".git").exists() else repository


def read_tracker(repository: Repository) -> Tracker:
    """The tracker as it is now; nothing is written."""
    main = main_repository(repository)
    return main.tracker_log().tracker if main.has_journal else Tracker()


@contextmanager
def edit_tracker(repository: Repository) -> Iterator[TrackerLog]:
    """The tracker's log, for changing it."""
    main = main_repository(repository)
    main.prepare()
    yield main.tracker_log()
