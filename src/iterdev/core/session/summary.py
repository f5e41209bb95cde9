"""A session in a few fields: kept beside its journal, so that a list of sessions does not fold every one."""

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.types import Engine, Phase, SessionId


class SessionSummary(Struct, frozen=True, kw_only=True):
    id: SessionId
    team: str
    engine: Engine
    requirement: str
    folder: str
    phase: Phase
    finished: bool
    """The work is done, also if the session is kept active."""
    completed: int
    tasks: int
    running: bool
    """Attempts are open; without a living engine they are interrupted."""

    @property
    def is_over(self) -> bool:
        return self.phase in {Phase.completed, Phase.archived}


def summarize(state: State) -> SessionSummary:
    session = state.session
    return SessionSummary(
        id=session.id,
        team=session.team,
        engine=session.engine,
        requirement=session.requirement,
        folder=session.folder,
        phase=state.lifecycle.phase,
        finished=state.lifecycle.is_finished,
        completed=state.tasks.completed,
        tasks=len(state.tasks.plan),
        running=bool(state.attempts.running),
    )
