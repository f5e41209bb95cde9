"""Removes what is provably not needed any more, says what stays and why, and restores refs that were removed.

Session folders and the journal always stay. For one session, only its refs and worktrees are looked at.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.core.rules.cleaning import DAYS_KEPT, RefFacts, reason_to_keep
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import Phase, SessionId
from iterdev.core.views.previews import CleanItem, CleanPreview, Refusal
from iterdev.engine.repository import Repository
from iterdev.host import clock, paths
from iterdev.host.environments.cache import Cache, Entry
from iterdev.host.git import session_refs, worktrees
from iterdev.host.git.session_refs import RemovedRef
from iterdev.host.git.users_branch import acceptance

DAY = 24 * 60 * 60
CONTAINED = "all its commits are on a branch of yours"
ANALYSIS = "analysis-"
"""Begins the name of the analyzer's workspaces; the number of its process follows."""


class Cleaning(Struct, frozen=True, kw_only=True):
    removed: tuple[CleanItem, ...]
    kept: tuple[CleanItem, ...]

    @property
    def freed(self) -> int:
        return sum(item.size for item in self.removed)


class Restored(Struct, frozen=True, kw_only=True):
    refs: tuple[str, ...]
    taken: tuple[str, ...]
    """Refs that exist again, and were left as they are."""


class _Plan(Struct, frozen=True, kw_only=True):
    refs: tuple[RefFacts, ...]
    pools: tuple[str, ...]
    expired: tuple[RemovedRef, ...] = ()
    temps: tuple[Path, ...] = ()
    environments: tuple[Entry, ...] = ()
    cleaning: Cleaning


def clean(repository: Repository, session: SessionId | None = None, *, dry_run: bool = False) -> Cleaning:
    """What was removed and what stays; with `dry_run`, what would be."""
    plan = _plan(repository, session)
    if dry_run:
        return plan.cleaning
    session_refs.remove(repository.top, plan.refs, int(clock.now()))
    session_refs.purge(repository.top, plan.expired)
    for name in plan.pools:
        _close_pool(repository, name)
    for folder in plan.temps:
        worktrees.delete(folder, ignore_errors=True)
    for entry in plan.environments:
        Cache(paths.environments()).remove(entry.key)
    return plan.cleaning


def preview_clean(repository: Repository, session: SessionId) -> CleanPreview:
    """What a cleaning of one session would remove now, and what would stay. Nothing is changed."""
    state, planned = repository.state(session), clean(repository, session, dry_run=True)
    return CleanPreview(
        session=session,
        seq=state.seq,
        command=f"iterdev clean {session}",
        refused=None if planned.removed else _refusal(session, planned),
        removed=planned.removed,
        kept=planned.kept,
    )


def _refusal(session: SessionId, planned: Cleaning) -> Refusal:
    if not planned.kept:
        return Refusal(f'Nothing is left to remove of "{session}"', f"iterdev clean --undo {session}")
    reasons = "; ".join(dict.fromkeys(item.why for item in planned.kept))
    return Refusal(f'Nothing of "{session}" can be removed: {reasons}', f"iterdev status {session}")


def _close_pool(repository: Repository, name: str) -> None:
    """An engine that was started meanwhile keeps its worktrees."""
    with ExitStack() as stack:
        if name in repository.sessions():
            try:
                stack.enter_context(repository.lease(repository.log(SessionId(name))))
            except UserError:
                return
        repository.workspaces(name).close()


def undo(repository: Repository, session: SessionId | None = None) -> Restored:
    """Gives the refs their names back that were removed in the last 30 days."""
    removed = (ref for ref in session_refs.removed(repository.top) if session in {None, session_refs.session(ref.name)})
    found = [ref for ref in removed if not _is_expired(ref)]
    if not found:
        what = f'Nothing of "{session}"' if session else "Nothing"
        raise UserError(f"{what} was removed in the last {DAYS_KEPT} days", hint="iterdev clean --dry-run")
    # The newest first: an older one of the same name stays in the trash.
    restored = {ref: session_refs.restore(repository.top, ref) for ref in reversed(found)}
    return Restored(
        refs=tuple(ref.name for ref, done in restored.items() if done),
        taken=tuple(ref.name for ref, done in restored.items() if not done),
    )


def _plan(repository: Repository, session: SessionId | None) -> _Plan:
    summaries = {summary.id: summary for summary in repository.summaries()}
    running = {name for name, summary in summaries.items() if repository.engine_alive(summary)}
    found = [ref for ref in session_refs.list_refs(repository.top) if session in {None, ref.session}]
    refs, ref_items, kept = _refs(repository, found, summaries, running)
    folders = sorted(paths.workspaces_of(repository.top).glob("*"))
    pools, pool_items, kept_pools = _pools(repository, [one for one in folders if session in {None, one.name}], running)
    if session:
        return _Plan(
            refs=refs, pools=pools, cleaning=Cleaning(removed=(*ref_items, *pool_items), kept=(*kept, *kept_pools))
        )
    temps, environments = tuple(_stray_temps()), tuple(_unused_environments())
    expired = tuple(ref for ref in session_refs.removed(repository.top) if _is_expired(ref))
    old = f"it was removed more than {DAYS_KEPT} days ago"
    items = (
        *ref_items,
        *pool_items,
        *(
            CleanItem(kind="temporary folder", name=str(path), why="its workspace is gone", size=_size(path))
            for path in temps
        ),
        *(
            CleanItem(
                kind="environment", name=str(entry.folder), why=f"not used for {DAYS_KEPT} days", size=entry.size()
            )
            for entry in environments
        ),
        *(CleanItem(kind="removed ref", name=ref.name, why=old) for ref in expired),
    )
    cleaning = Cleaning(removed=items, kept=(*kept, *kept_pools))
    return _Plan(refs=refs, expired=expired, pools=pools, temps=temps, environments=environments, cleaning=cleaning)


def _refs(
    repository: Repository,
    found: Iterable[RefFacts],
    summaries: dict[SessionId, SessionSummary],
    running: set[SessionId],
) -> tuple[tuple[RefFacts, ...], list[CleanItem], list[CleanItem]]:
    removable, items, kept = list[RefFacts](), list[CleanItem](), list[CleanItem]()
    accepted: dict[str, bool] = {}
    for ref in found:
        summary = summaries.get(SessionId(ref.session))
        if summary and ref.session not in accepted:
            accepted[ref.session] = summary.phase is not Phase.archived and _is_accepted(repository, summary)
        known, proof = (ref, CONTAINED) if ref.contained or not summary else _by_files(repository, ref, summary)
        why = reason_to_keep(known, summary, running=ref.session in running, accepted=accepted.get(ref.session, False))
        if why:
            kept.append(CleanItem(kind="ref", name=ref.name, why=why))
        else:
            removable.append(ref)
            items.append(CleanItem(kind="ref", name=ref.name, why=proof))
    return tuple(removable), items, kept


def _by_files(repository: Repository, ref: RefFacts, summary: SessionSummary) -> tuple[RefFacts, str]:
    """The ref, with what is known of work that was accepted as other commits, and the proof that the user has it."""
    accepted = repository.state(summary.id).delivery.accepted
    if accepted is None or not acceptance.has_change(repository.top, accepted, ref.commit):
        return ref, ""
    proof = f"its change is on {accepted.branch}, accepted as {accepted.commit[:12]}"
    return msgspec.structs.replace(ref, contained=True), proof


def _is_accepted(repository: Repository, summary: SessionSummary) -> bool:
    return summary.is_over and bool(repository.state(summary.id).lifecycle.accepted)


def _pools(
    repository: Repository, folders: Iterable[Path], running: set[SessionId]
) -> tuple[tuple[str, ...], list[CleanItem], list[CleanItem]]:
    """The worktrees of sessions that are not running; `resume` saves the work that a dead engine left in some."""
    removable, items, kept = list[str](), list[CleanItem](), list[CleanItem]()
    for folder in folders:
        if why := _pool_in_use(repository, folder.name, running):
            kept.append(CleanItem(kind="worktrees", name=str(folder), why=why, size=_size(folder)))
        else:
            removable.append(folder.name)
            items.append(CleanItem(kind="worktrees", name=str(folder), why="no engine uses them", size=_size(folder)))
    return tuple(removable), items, kept


def _pool_in_use(repository: Repository, name: str, running: set[SessionId]) -> str:
    if name.startswith(ANALYSIS):
        process = name.removeprefix(ANALYSIS)
        alive = process.isdecimal() and Path("/proc", process).exists()
        return "an analyzer is at work" if alive else ""
    if name in running:
        return "the session is running"
    unsaved = any(True for _ in repository.workspaces(name).leftovers())
    return f"work in it is not saved yet: iterdev resume {name}" if unsaved else ""


def _stray_temps() -> Iterator[Path]:
    """Temporary folders whose workspace does not exist any more; a workspace is made before its folder."""
    listed = sorted(paths.temps().glob("*"))
    slots = paths.state_root().glob("*/*/*")
    used = {hashlib.sha256(str(slot).encode()).hexdigest()[:12] for slot in slots}
    return (path for path in listed if path.name not in used)


def _unused_environments() -> Iterator[Entry]:
    """Environments are recreated when they are needed."""
    for entry in Cache(paths.environments()).entries():
        with suppress(OSError):
            if entry.last_use < clock.now() - DAYS_KEPT * DAY:
                yield entry


def _is_expired(ref: RemovedRef) -> bool:
    return ref.at < clock.now() - DAYS_KEPT * DAY


def _size(folder: Path) -> int:
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512  # noqa: PTH118 - called for every file
    return total
