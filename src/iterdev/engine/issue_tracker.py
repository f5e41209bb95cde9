"""The issue tracker of a repository, which is that of its main worktree, with its folder `.workflow/issues/`.

`edit_tracker` is for changes that a person makes, `SessionTracker` for those that follow from a session.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from iterdev.core.types import SessionId
from iterdev.engine.repository import STATE, Repository
from iterdev.host import clock
from iterdev.host.git.checkout import main_checkout
from iterdev.store import issue_folder
from iterdev.store.issue_folder import IssueFolder
from iterdev.store.session_log import SessionLog
from iterdev.store.tracker_log import SessionFollower, TrackerLog
from iterdev.teams.contract import SessionRules
from iterdev.tracker.state import Tracker

FOLDER = f"{STATE}/issues"


def main_repository(repository: Repository) -> Repository:
    """The repository of the main worktree; a bare one, which worktrees may also belong to, has no files."""
    main = main_checkout(repository.top)
    is_own = main.resolve() == repository.top.resolve() or not (main / ".git").exists()
    return repository if is_own else Repository(main, repository.teams)


def read_tracker(repository: Repository) -> Tracker:
    """The tracker as it is now, with what others wrote into its folder; nothing is written."""
    main = main_repository(repository)
    if main.has_journal:
        return _folder(main).seen(main.tracker_log().tracker, clock.now())
    return issue_folder.seen(main.top / FOLDER, Tracker(), clock.now())


def take_over_files(repository: Repository) -> tuple[str, ...]:
    """Records what others wrote into the folder; returns in sentences what could not be taken over."""
    main = main_repository(repository)
    if not (main.top / FOLDER).is_dir():
        return ()
    main.prepare()
    log, folder = main.tracker_log(), _folder(main)
    with folder.held():
        notes = folder.read_back(log)
        folder.write(log.tracker)
    return notes


@contextmanager
def edit_tracker(repository: Repository) -> Iterator[TrackerLog]:
    """The tracker's log, for changing it; what others wrote into its folder is in it, and the folder follows."""
    main = main_repository(repository)
    main.prepare()
    log, folder = main.tracker_log(), _folder(main)
    with folder.held():
        folder.read_back(log)
        yield log
        folder.write(log.tracker)


class SessionTracker:
    """Keeps the tracker in step with a session, whose team says by `rules` what its entries mean."""

    def __init__(self, repository: Repository, session: SessionId, rules: SessionRules) -> None:
        main = main_repository(repository)
        main.prepare()
        self.log, self._folder = main.tracker_log(), _folder(main)
        self._follower = SessionFollower(self.log, repository.journal, session, rules)

    def catch_up(self) -> None:
        """Takes note of what is new in the session: after entries were recorded, and when the session is resumed."""
        with self._folder.held():
            self._folder.read_back(self.log)
            self._follower.catch_up()
            self._folder.write(self.log.tracker)


def session_tracker(repository: Repository, log: SessionLog) -> SessionTracker | None:
    """None if the session's team has nothing to do with the tracker."""
    rules = log.team.tracker_rules
    return SessionTracker(repository, log.session, rules) if rules else None


def _folder(main: Repository) -> IssueFolder:
    return IssueFolder(main.top / FOLDER, main.journal)
