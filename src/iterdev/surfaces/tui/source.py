"""Where the dashboard gets what it shows, and how it acts. All of it may take a while: it is called in threads."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from iterdev.app import answer, inspect, logs
from iterdev.app.branches import diff
from iterdev.app.branches.diff import Change, FileChange
from iterdev.app.live import acts
from iterdev.app.live.acts import Act, AnyPreview, Done
from iterdev.app.live.watch import RepositoryWatch, SessionWatch
from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId, TaskId
from iterdev.core.views.attention import Need
from iterdev.core.views.history import History
from iterdev.core.views.session import SessionLine, SessionView
from iterdev.core.views.team import FindingView


class Frame(Struct, frozen=True, kw_only=True):
    """What the dashboard knows, as of one entry of the journal."""

    repository: str
    sessions: tuple[SessionLine, ...] = ()
    needs: tuple[Need, ...] = ()
    """Of all sessions, the most severe first."""
    session: SessionView | None = None
    """The session that is shown; None if there are none."""
    history: History = History()
    findings: tuple[FindingView, ...] = ()
    said: Mapping[TaskId, str] = {}
    """The last line of each agent that runs."""


class Changed(Struct, frozen=True, kw_only=True):
    """A change, and the files in it."""

    what: str
    change: Change
    files: tuple[FileChange, ...]


class Source(Protocol):
    def look(self) -> Frame | None:
        """What is known now; None if nothing has changed since the last look."""

    def select(self, session: SessionId) -> None:
        """Has the next looks be at another session."""

    def why(self, task: TaskId) -> list[str]: ...

    def output(self, task: TaskId, number: int) -> "Output": ...

    def changed(self, task: str = "", round_: int | None = None) -> Changed: ...

    def file_diff(self, change: Change, path: str) -> str: ...

    def preview(self, act: Act) -> AnyPreview | None: ...

    def perform(self, act: Act) -> Done: ...

    def edit_plan(self) -> "PlanEdit": ...


class Output(Protocol):
    def new_lines(self) -> list[str]:
        """What an agent has said since the last call."""


class PlanEdit(Protocol):
    def command(self) -> list[str]:
        """The user's editor, with the file that is to be edited."""

    def take_over(self) -> None:
        """Replaces the plan; raises `UserError` if it is not valid, and then keeps the edit for the next time."""


class RepositorySource:
    """A repository, read through a connection of its own. Acts open the repository again."""

    def __init__(self, repository: Repository, session: SessionId | None) -> None:
        self._repository = repository
        self._watched = SessionWatch(repository, session) if session else None
        self._all = RepositoryWatch(repository, self._watched)
        self._said: dict[TaskId, str] = {}
        self._is_first = True

    def look(self) -> Frame | None:
        changes = self._watched.look() if self._watched else None
        others = self._all.look()
        if self._watched is None and self._all.sessions():
            # The first session of the repository has just been started.
            self.select(self._all.sessions()[-1].summary.id)
            return self.look()
        first, self._is_first = self._is_first, False
        if changes is None and not others and not first:
            return None
        for line in changes.output if changes else ():
            if line.text.strip():
                self._said[line.task] = line.text
        return self._frame()

    def _frame(self) -> Frame:
        watched = self._watched
        return Frame(
            repository=self._repository.top.name,
            sessions=self._all.sessions(),
            needs=self._all.needs(),
            session=watched.view() if watched else None,
            history=watched.history() if watched else History(),
            findings=watched.findings() if watched else (),
            said=dict(self._said),
        )

    def select(self, session: SessionId) -> None:
        self._watched, self._said = SessionWatch(self._repository, session), {}
        self._all = RepositoryWatch(self._repository, self._watched)

    @property
    def _session(self) -> SessionId:
        if self._watched is None:
            raise UserError("There is no session yet", hint='iterdev run "Add a greeting"')
        return self._watched.session

    def why(self, task: TaskId) -> list[str]:
        return inspect.why(self._repository, self._session, task)

    def output(self, task: TaskId, number: int) -> Output:
        return logs.attempt_log(self._repository, self._session, task, number)

    def changed(self, task: str = "", round_: int | None = None) -> Changed:
        change = diff.change_of(self._repository, self._session, task, round_)
        what = task or ("the whole session" if round_ is None else f"fix round {round_}")
        return Changed(what=what, change=change, files=diff.changed_files(self._repository, change))

    def file_diff(self, change: Change, path: str) -> str:
        return diff.file_diff(self._repository, change, path)

    def preview(self, act: Act) -> AnyPreview | None:
        return acts.preview(self._repository, act)

    def perform(self, act: Act) -> Done:
        repository = Repository(self._repository.top)
        try:
            return acts.perform(repository, act)
        finally:
            repository.close()

    def edit_plan(self) -> PlanEdit:
        return _DraftEdit(self._repository, self._session)


class _DraftEdit:
    def __init__(self, repository: Repository, session: SessionId) -> None:
        self._repository, self._session = repository, session
        self._draft: Path = answer.plan_draft(repository, session)

    def command(self) -> list[str]:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        return [*shlex.split(editor), str(self._draft)]

    def take_over(self) -> None:
        answer.take_over_plan(self._repository, self._session, self._draft)
