"""The list of a repository's sessions: one line for each."""

from msgspec import Struct

from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import SessionId


class SessionLine(Struct, frozen=True, kw_only=True):
    id: SessionId
    standing: str
    """The phase, or that an engine is running."""
    completed: int
    tasks: int
    requirement: str


def session_line(summary: SessionSummary, *, engine_alive: bool) -> SessionLine:
    return SessionLine(
        id=summary.id,
        standing="running" if engine_alive else summary.phase.value,
        completed=summary.completed,
        tasks=summary.tasks,
        requirement=summary.requirement,
    )
