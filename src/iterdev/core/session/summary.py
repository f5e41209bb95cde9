"""A session in a few fields: kept beside its journal, so that a list of sessions does not fold every one."""

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.types import Phase, SessionId


class SessionSummary(Struct, frozen=True, kw_only=True):
    id: SessionId
    requirement: str
    folder: str
    phase: Phase
    completed: int
    tasks: int
    attempts: int = 0
    """Those that are open; without a living engine they are interrupted."""

    @property
    def is_over(self) -> bool:
        return self.phase in {Phase.completed, Phase.archived}


def summarize(state: State) -> SessionSummary:
    session = state.session
    return SessionSummary(
        id=session.id,
        requirement=session.requirement,
        folder=session.folder,
        phase=state.lifecycle.phase,
        completed=state.tasks.completed,
        tasks=len(state.tasks.plan),
        attempts=len(state.attempts.running),
    )
