"""A session in a few fields: kept beside its journal, so that a list of sessions does not fold every one."""

from msgspec import Struct

from iterdev.core.session.events import Finished
from iterdev.core.session.state import State
from iterdev.core.types import Outcome, Phase, SessionId


class SessionSummary(Struct, frozen=True, kw_only=True):
    id: SessionId
    requirement: str
    folder: str
    phase: Phase
    completed: int
    tasks: int
    attempts: int = 0
    """Those that are open; without a living engine they are interrupted."""
    outcome: Outcome | None = None
    """None while there is work to do."""
    accepted: bool = False
    waiting: bool = False
    """A question is open."""

    @property
    def is_over(self) -> bool:
        return self.phase in {Phase.completed, Phase.archived}


def summarize(state: State, shortcomings: tuple[str, ...] = ()) -> SessionSummary:
    """The summary; the team may name shortcomings of a session whose tasks are all completed."""
    session = state.session
    return SessionSummary(
        id=session.id,
        requirement=session.requirement,
        folder=session.folder,
        phase=state.lifecycle.phase,
        completed=state.tasks.completed,
        tasks=len(state.tasks.plan),
        attempts=len(state.attempts.running),
        outcome=_outcome(state, shortcomings) if state.lifecycle.is_finished else None,
        accepted=bool(state.lifecycle.accepted),
        waiting=bool(state.gates.open),
    )


def _outcome(state: State, shortcomings: tuple[str, ...]) -> Outcome:
    if state.lifecycle.why and not state.lifecycle.kept:
        return Outcome.rejected if state.lifecycle.why == Finished.WHY_REJECTED else Outcome.stopped
    completed = state.tasks.completed == len(state.tasks.plan)
    return Outcome.completed if completed and not shortcomings else Outcome.failed
