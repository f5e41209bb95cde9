"""The change of a session, of one of its tasks, or of a fix round."""

from msgspec import Struct

from iterdev.app.edits import require_task
from iterdev.core.errors import UserError
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.repository import Repository
from iterdev.host.git import diffs
from iterdev.host.git.diffs import FileChange
from iterdev.host.git.merge import merge_base


class Change(Struct, frozen=True, kw_only=True):
    base: str
    tip: str


class DiffView(Struct, frozen=True, kw_only=True):
    session: SessionId
    base: str
    tip: str
    files: tuple[FileChange, ...]
    diff: str


def change_of(repository: Repository, session: SessionId, task: str = "", round_: int | None = None) -> Change:
    """The two commits between which the change is; raises `UserError` if nothing was changed."""
    state = repository.state(session)
    if task and round_ is not None:
        raise UserError("A task and --round exclude each other", hint=f"iterdev diff {session} {task}")
    if task:
        return _of_tasks(repository, state, (require_task(state, task),), task)
    if round_ is not None:
        tasks = repository.team(state).tasks_of_round(state, round_)
        if not tasks:
            raise UserError(f'There is no fix round "{round_}" in {session}', hint=f"iterdev status {session}")
        return _of_tasks(repository, state, tasks, f"fix round {round_}")
    if state.branch.tip == state.branch.base:
        raise UserError(f'"{session}" has changed nothing', hint=f"iterdev report {session}")
    return Change(base=state.branch.base, tip=state.branch.tip)


def _of_tasks(repository: Repository, state: State, tasks: tuple[TaskId, ...], what: str) -> Change:
    """From what the first of them worked on to what the last of them left; work that did not land is shown too."""
    progress = [state.tasks.progress[task] for task in tasks]
    commits = [
        (one.base, one.commit or one.unmerged_commits[-1]) for one in progress if one.commit or one.unmerged_commits
    ]
    if not commits:
        raise UserError(f'"{what}" has changed nothing', hint=f"iterdev diff {state.session.id}")
    first, last = commits[0][0] or state.branch.base, commits[-1][1]
    return Change(base=merge_base(repository.top, first, last) or first, tip=last)


def diff(repository: Repository, session: SessionId, change: Change, file: str = "") -> DiffView:
    """The change of all files, or of one."""
    return DiffView(
        session=session,
        base=change.base,
        tip=change.tip,
        files=diffs.files(repository.top, change.base, change.tip, file),
        diff=diffs.text(repository.top, change.base, change.tip, file),
    )


def changed_files(repository: Repository, change: Change) -> tuple[FileChange, ...]:
    return diffs.files(repository.top, change.base, change.tip)


def file_diff(repository: Repository, change: Change, path: str) -> str:
    """The difference of one file, for surfaces that show a long change file by file."""
    return diffs.file_text(repository.top, change.base, change.tip, path)


def show(repository: Repository, change: Change, *, stat: bool = False, plain: bool = False) -> None:
    """Prints the change as git does: with the user's pager and colours, or `plain`."""
    diffs.show(repository.top, change.base, change.tip, stat=stat, plain=plain)
