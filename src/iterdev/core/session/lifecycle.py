"""Where a session stands as a whole: active, paused, completed, kept, archived, accepted."""

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted, AcceptUndone
from iterdev.core.types import Phase, Role

KEPT = "kept active"

TIMELINE = "timeline.svg"
"""The picture of all attempts, which the report refers to."""
DELIVERABLES = ("context.md", TIMELINE, "results.csv", "task-ledger.json", "discoveries.ndjson", "wisdom")
"""The files and folders of a session that are exported, besides the folders of its team."""
PATCH = "changes.patch"
"""All that landed, as one patch on the session's base; exported with them."""

Moved = events.RollbackStarted | events.UpdateRequested | events.Landed
LifecycleEvent = events.EngineEvent | events.EndEvent | Moved | Accepted | AcceptUndone


class Lifecycle(Struct, frozen=True, kw_only=True):
    phase: Phase = Phase.active
    why: str = ""
    """Why the session is paused or ended early, without the gates that it waits for."""
    worker: Role | None = None
    """The role that the engine works for, if it is one worker."""
    detached: bool = False
    """The last engine ran in the background; an answer starts it again if it has ended."""
    finished_at: float | None = None
    kept: bool = False
    archived_at: float | None = None
    exported: str = ""
    accepted: str = ""
    """The commit of the user's branch that has all of the session's work."""

    @property
    def is_over(self) -> bool:
        return self.phase in {Phase.completed, Phase.archived}

    @property
    def is_finished(self) -> bool:
        """Whether the work is done, even if the session is kept active."""
        return self.is_over or self.kept


def evolve(part: Lifecycle, event: LifecycleEvent, at: float) -> Lifecycle:
    match event:
        case events.Landed() | AcceptUndone():
            return replace(part, accepted="") if part.accepted else part
        case events.EngineStarted(detached=detached):
            return Lifecycle(accepted=part.accepted, detached=detached)
        case events.WorkerStarted(role):
            return replace(part, worker=role)
        case events.WorkerEnded():
            return replace(part, worker=None)
        case Accepted(commit=commit):
            return replace(part, accepted=commit)
        case events.Paused(why):
            return replace(part, phase=Phase.paused, why=why)
        case events.Finished(why):
            return Lifecycle(phase=Phase.completed, why=why, finished_at=at, accepted=part.accepted, worker=part.worker)
        case events.RollbackStarted(target=target):
            return replace(part, phase=Phase.paused, why=f"rolled back to before {target}", accepted="", kept=False)
        case events.UpdateRequested(branch=branch):
            return replace(part, phase=Phase.paused, why=f"to be brought up to date with {branch}", kept=False)
        case events.RetryRequested():
            return replace(part, phase=Phase.paused, why="to be retried", kept=False)
        case events.Archived(exported):
            why, exported = "" if part.kept else part.why, exported or part.exported
            return replace(part, phase=Phase.archived, why=why, kept=False, archived_at=at, exported=exported)
        case events.Kept() | events.Reopened():
            return replace(part, phase=Phase.paused, why=KEPT, kept=True, archived_at=None)
