"""The list of a repository's sessions: one line for each."""

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.types import SessionId, Status


class SessionSummary(Struct, frozen=True, kw_only=True):
    id: SessionId
    standing: str
    """The phase, or that an engine is running."""
    completed: int
    tasks: int
    requirement: str


def session_summary(state: State, *, engine_alive: bool) -> SessionSummary:
    return SessionSummary(
        id=state.session.id,
        standing="running" if engine_alive else state.phase.value,
        completed=state.count(Status.completed),
        tasks=len(state.tasks),
        requirement=state.session.requirement,
    )
