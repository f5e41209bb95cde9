"""What a command would do, before it does it; nothing is changed.

Each preview names the last entry of the journal that it knows. If there are newer ones, the preview has to be made
again.
"""

from collections.abc import Iterable

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import IterdevError
from iterdev.core.session import events
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId


class Refusal(Struct, frozen=True):
    """Why the command would be refused now, and what to do about it."""

    problem: str
    hint: str


def refusal(error: IterdevError) -> Refusal:
    return Refusal(error.message, error.hint or "")


class Preview(Struct, frozen=True, kw_only=True):
    session: SessionId
    seq: int
    """The last entry of the journal that it knows."""
    command: str
    refused: Refusal | None = None


class RetryPreview(Preview, frozen=True, kw_only=True):
    again: tuple[TaskId, ...] = ()
    """Tasks that are done again."""
    added: tuple[TaskId, ...] = ()
    """Tasks that join the table, such as a fix of what the last verdicts found."""
    follows: bool = False
    """The team adds what is needed when the session continues."""


class ResumePreview(Preview, frozen=True, kw_only=True):
    interrupted: tuple[TaskId, ...]
    """Tasks whose attempt was cut off; their work is kept, and shown to the next attempt."""
    left: int
    """Tasks that are not done."""


class RollbackPreview(Preview, frozen=True, kw_only=True):
    branch: str
    tip: str
    """Where the branch is; what is on it stays kept."""
    to: str = ""
    """Where it would be."""
    again: tuple[TaskId, ...] = ()
    """Tasks that are to be done again."""
    removed: tuple[TaskId, ...] = ()
    """Tasks that vanish from the table, because they did not exist then."""
    accepted: str = ""
    """The commit of the user's branch that keeps what was accepted."""


class ArchivePreview(Preview, frozen=True, kw_only=True):
    branch: str
    """It stays, with everything that landed."""
    unaccepted: bool
    """The branch has work that the user's branch does not have."""


class ReopenPreview(Preview, frozen=True, kw_only=True):
    branch: str
    """The session continues from what landed on it."""


class CleanItem(Struct, frozen=True, kw_only=True):
    kind: str
    """`ref`, `worktrees`, `temporary folder`, `environment`, `removed ref`."""
    name: str
    why: str = ""
    """Why it can go, or why it stays."""
    size: int = 0
    """Bytes on the disk."""


class CleanPreview(Preview, frozen=True, kw_only=True):
    removed: tuple[CleanItem, ...]
    kept: tuple[CleanItem, ...]


class ExportPreview(Preview, frozen=True, kw_only=True):
    target: str
    """The folder that is written."""
    names: tuple[str, ...] = ()
    """What is copied, and the patch; then the session is archived."""


class PullRequestPreview(Preview, frozen=True, kw_only=True):
    branch: str
    """It is pushed."""
    base: str = ""
    title: str = ""
    body: str = ""
    known: str = ""
    """The address of the one that is open already, whose text is replaced."""


class AcceptPreview(Preview, frozen=True, kw_only=True):
    into: str
    commits: int
    files: tuple[str, ...]
    fast_forward: bool
    """The user's branch only moves forward; otherwise there is a merge commit."""
    verdicts: tuple[str, ...]
    warnings: tuple[str, ...]
    reasons: tuple[str, ...]
    """Why the work may not be good enough, one sentence each; empty for a session that succeeded."""


def retry_preview(state: State, decided: Iterable[Event], refused: Refusal | None = None) -> RetryPreview:
    happening = list(decided)
    return RetryPreview(
        session=state.session.id,
        seq=state.seq,
        command=f"iterdev retry {state.session.id}",
        refused=refused,
        again=tuple(task for event in happening if isinstance(event, events.TasksReset) for task in event.tasks),
        added=tuple(task.id for event in happening if isinstance(event, events.TasksAdded) for task in event.tasks),
        follows=any(isinstance(event, events.TeamEvent) for event in happening),
    )


def resume_preview(state: State, refused: Refusal | None = None) -> ResumePreview:
    return ResumePreview(
        session=state.session.id,
        seq=state.seq,
        command=f"iterdev resume --detach {state.session.id}",
        refused=refused,
        interrupted=tuple(state.attempts.running),
        left=sum(not one.status.is_final for one in state.tasks.progress.values()),
    )


def rollback_preview(
    state: State, target: str, planned: Iterable[Event] = (), refused: Refusal | None = None
) -> RollbackPreview:
    started = next((event for event in planned if isinstance(event, events.RollbackStarted)), None)
    return RollbackPreview(
        session=state.session.id,
        seq=state.seq,
        command=f"iterdev rollback {state.session.id} {target}",
        refused=refused,
        branch=ids.branch(state.session.id),
        tip=state.branch.tip,
        to=started.tip if started else "",
        again=tuple(row.id for row in started.rows) if started else (),
        removed=started.removed if started else (),
        accepted=state.lifecycle.accepted,
    )


def archive_preview(state: State, refused: Refusal | None = None) -> ArchivePreview:
    changed = state.branch.tip != state.branch.base
    return ArchivePreview(
        session=state.session.id,
        seq=state.seq,
        command=f"iterdev archive {state.session.id}",
        refused=refused,
        branch=ids.branch(state.session.id),
        unaccepted=changed and not state.lifecycle.accepted,
    )


def reopen_preview(state: State, refused: Refusal | None = None) -> ReopenPreview:
    return ReopenPreview(
        session=state.session.id,
        seq=state.seq,
        command=f"iterdev reopen {state.session.id}",
        refused=refused,
        branch=ids.branch(state.session.id),
    )
