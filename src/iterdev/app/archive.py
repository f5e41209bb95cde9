"""Archives, keeps, exports and reopens a finished session. Refs and branches are never touched."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iterdev.core.errors import HostError, UserError
from iterdev.core.session.archive import DELIVERABLES, PATCH, Archived, CompletionEvent, Kept, Reopened
from iterdev.core.session.state import State
from iterdev.core.types import Phase, SessionId
from iterdev.engine.collaboration import project
from iterdev.engine.repository import Repository
from iterdev.host import clock, paths, session_lease
from iterdev.host.git import commits
from iterdev.host.workspaces.pool import Pool
from iterdev.store.session_log import SessionLog


def archive(repository: Repository, session: SessionId, *, exported: str = "") -> State:
    """Removes the session's worktrees and temporary files, and puts it away."""
    with _finished(repository, session) as log:
        Pool(repository.top, paths.workspaces_of(repository.top) / session, paths.temps()).close()
        return _append(repository, log, Archived(exported))


def keep(repository: Repository, session: SessionId) -> State:
    with _finished(repository, session) as log:
        return log.state if log.state.completion.kept else _append(repository, log, Kept())


def reopen(repository: Repository, session: SessionId) -> State:
    with _finished(repository, session) as log:
        if log.state.phase is not Phase.archived:
            raise UserError(f'"{session}" is not archived', hint=f"iterdev status {session}")
        return _append(repository, log, Reopened())


def export(repository: Repository, session: SessionId, target: Path) -> State:
    """Copies what the session made to a folder, then archives it; nothing that is there is overwritten."""
    with _finished(repository, session) as log:
        project(repository, log)
        _copy(repository, log.state, target)
    return archive(repository, session, exported=str(target))


def _append(repository: Repository, log: SessionLog, event: CompletionEvent) -> State:
    log.record(event)
    project(repository, log)
    return log.state


@contextmanager
def _finished(repository: Repository, session: SessionId) -> Iterator[SessionLog]:
    """A session whose work is done, and that no engine can take up meanwhile."""
    log = SessionLog(repository.journal, session, now=clock.now)
    try:
        with session_lease.lease(repository.folder(log.state), wait=lambda: False):
            log.refresh()
            if not log.state.is_finished:
                raise UserError(f'"{session}" is not finished', hint=f"iterdev resume {session}")
            yield log
    except session_lease.Held:
        raise UserError(f'"{session}" is still running', hint=f"iterdev status {session}") from None


def _copy(repository: Repository, state: State, target: Path) -> None:
    folder = repository.folder(state)
    names = [name for name in DELIVERABLES if (folder / name).exists()]
    taken = [name for name in (*names, PATCH) if (target / name).exists()]
    if taken or (target.exists() and not target.is_dir()):
        what = target / taken[0] if taken else target
        raise UserError(f'"{what}" is already there', hint="name a folder that is empty or not there yet")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy_one(folder / name, target / name)
    except OSError as error:
        raise HostError(f'Cannot write to "{target}": {error.strerror or error}', hint="name another folder") from error
    commits.write_patch(repository.top, state.session.base, state.tip, (target / PATCH).absolute())


def _copy_one(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
