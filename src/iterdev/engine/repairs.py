"""States that a crash, a full disk, an agent or a person can leave a repository in, and what repairs each of them.

A repair starts no agent and deletes nothing that could be work: that is kept under a ref, or moved to a named place.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.formatting import counted
from iterdev.core.rules.cleaning import RefFacts
from iterdev.core.session.events import Warned
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import Engine, SessionId
from iterdev.engine.effects import NO_EFFECTS
from iterdev.engine.recovery import complete_accept, complete_run
from iterdev.engine.repository import Repository
from iterdev.host import paths
from iterdev.host.git import full_disk, refs, session_branch, session_refs, worktrees
from iterdev.host.git.checkout import checkouts
from iterdev.host.git.refs import repository_lock
from iterdev.host.git.users_branch import interrupted_merge
from iterdev.store.session_log import Unfoldable

FIX = "iterdev doctor --fix"


class Repair(Struct, frozen=True, kw_only=True):
    subject: str
    problem: str
    hint: str
    """How a person repairs it."""
    fix: Callable[[], str]
    """Repairs it, and returns what was done."""


def needed(repository: Repository) -> Iterator[Repair]:
    """What has to be repaired, one after the other: a repair may be what the next one needs."""
    if repository.has_journal:
        yield from _journal(repository)
        yield from _sessions(repository)
        yield from _branches(repository)
    yield from _merges(repository)
    yield from _starts(repository)
    yield from _worktrees(repository.top)
    yield from _temporary_objects(repository.top)


def _journal(repository: Repository) -> Iterator[Repair]:
    if problems := [*repository.journal.problems(), *_contradictions(repository)]:

        def fix() -> str:
            return f"it was rebuilt from the session folders; the damaged one is {repository.rebuild_journal()}"

        yield Repair(subject="journal", problem="; ".join(problems[:3]), hint=FIX, fix=fix)


def _contradictions(repository: Repository) -> Iterator[str]:
    """What keeps sessions from being used although every entry of the journal can be read."""
    for session in repository.sessions():
        try:
            repository.state(session)
        except Unfoldable as error:
            yield f"{session}: {error.message}"


def _sessions(repository: Repository) -> Iterator[Repair]:
    incomplete = repository.incomplete()
    for summary in repository.summaries():
        if summary.id in incomplete or _is_cut_off(repository, summary):
            yield Repair(
                subject=f"session {summary.id}",
                problem="its engine died",
                hint=f"iterdev resume {summary.id}",
                fix=partial(_recover, repository, summary.id),
            )


def _is_cut_off(repository: Repository, summary: SessionSummary) -> bool:
    """Whether attempts are open that ended with their engine."""
    if not summary.attempts or repository.engine_alive(summary):
        return False
    return bool(repository.state(summary.id).attempts.of_engine)


def _recover(repository: Repository, session: SessionId) -> str:
    before = len(repository.state(session).warnings)
    complete_run(repository, session, NO_EFFECTS)
    warnings = repository.state(session).warnings[before:]
    return "; ".join(["the work of its attempts is kept, and its workspaces are removed", *warnings])


def _branches(repository: Repository) -> Iterator[Repair]:
    """Branches of unfinished sessions that do not have what has landed; commits on top of it are the user's."""
    for session in repository.unfinished():
        known = refs.resolve(repository.top, ids.tip_ref(session))
        found = session_branch.commit_of(repository.top, session) if known else None
        if not known or found == known or (found and refs.is_ancestor(repository.top, known, found)):
            continue
        problem = "its branch was moved away from what has landed" if found else "its branch was deleted"
        fix = partial(_put_back, repository, session)
        yield Repair(subject=f"branch of {session}", problem=problem, hint=f"iterdev resume {session}", fix=fix)


def _put_back(repository: Repository, session: SessionId) -> str:
    log = repository.log(session)
    with repository.lease(log):
        tip = log.state.branch.tip
        note = session_branch.position(repository.top, session, tip).note
        if note and note not in log.state.warnings:
            log.record(Warned(note))
        session_branch.require_free(repository.top, session)
    return note or f"it is at {tip[:12]}"


def _merges(repository: Repository) -> Iterator[Repair]:
    known = set(repository.sessions())
    for session in interrupted_merge.sessions(repository.top):
        if session in known:
            yield Repair(
                subject=f"accept of {session}",
                problem="it was cut off, and may have changed some of the files in the checkout",
                hint=f"iterdev accept {session}",
                fix=partial(_undo_merge, repository, session),
            )


def _undo_merge(repository: Repository, session: SessionId) -> str:
    done = complete_accept(repository, repository.log(session))
    return "git had finished it, and it is now in the journal" if done else "the checkout is as it was before"


def _starts(repository: Repository) -> Iterator[Repair]:
    """Of sessions that were cut off while they were created: an empty folder, and a branch without work."""
    folders, branches = _without_session(repository)
    for name in sorted({*(folder.name for folder in folders), *(branch.session for branch in branches)}):
        yield Repair(
            subject=f"session {name}",
            problem="it was cut off before it began",
            hint=FIX,
            fix=partial(_remove_start, repository, name),
        )


def _without_session(repository: Repository) -> tuple[list[Path], list[RefFacts]]:
    known, others = set(repository.sessions()), {repository.top, *checkouts(repository.top)}
    patterns = [ids.folder(engine, SessionId("*")) for engine in Engine]
    found = [folder for top in others for pattern in patterns for folder in top.glob(pattern)]
    empty = [folder for folder in found if folder.is_relative_to(repository.top) and not any(folder.iterdir())]
    used = known | {folder.name for folder in found if folder not in empty}
    listed = session_refs.list_refs(repository.top) if session_branch.names(repository.top) - used else []
    sole = [ref for ref in listed if [other.session for other in listed].count(ref.session) == 1]
    free = [ref for ref in sole if ref.name.startswith(session_branch.HEADS) and not ref.checked_out and ref.contained]
    return [folder for folder in empty if folder.name not in known], [ref for ref in free if ref.session not in used]


def _remove_start(repository: Repository, name: str) -> str:
    with repository_lock(repository.top):
        folders, branches = _without_session(repository)
        for folder in folders:
            if folder.name == name:
                folder.rmdir()
        for branch in branches:
            if branch.session == name:
                session_branch.discard(repository.top, SessionId(name), branch.commit)
    return "its empty folder and its branch without commits were removed"


def _worktrees(top: Path) -> Iterator[Repair]:
    home = paths.workspaces_of(top)
    if left := worktrees.forgotten(top, home):

        def fix() -> str:
            worktrees.forget_deleted(top, home)
            return "git does not list them any more"

        problem = f"git lists {counted(len(left), 'workspace')} that do not exist: {', '.join(left)}"
        yield Repair(subject="worktrees", problem=problem, hint=FIX, fix=fix)


def _temporary_objects(top: Path) -> Iterator[Repair]:
    objects = refs.common_dir(top) / "objects"
    if left := full_disk.abandoned_objects(objects):

        def fix() -> str:
            full_disk.remove(left)
            return "they were removed"

        problem = f"{counted(len(left), 'temporary object')} of an interrupted git command"
        yield Repair(subject="objects of git", problem=problem, hint=FIX, fix=fix)
