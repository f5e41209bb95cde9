"""Looks at sessions: what is done, running and waiting, and why. Nothing here changes anything."""

from collections.abc import Iterator

from iterdev.core.errors import UserError
from iterdev.core.rules.replay_check import Replay, compare
from iterdev.core.types import SessionId, TaskId
from iterdev.core.views import report as reports
from iterdev.core.views import why as reasons
from iterdev.core.views.session import SessionLine, SessionView, session_line, session_view
from iterdev.engine.repository import Repository


def status(repository: Repository, session: SessionId) -> SessionView:
    state = repository.state(session)
    return session_view(state, repository.team(state), engine_alive=repository.engine_alive(state.session))


def statuses(repository: Repository) -> Iterator[SessionView]:
    """Every session, the newest last."""
    return (status(repository, session) for session in repository.sessions())


def summaries(repository: Repository) -> Iterator[SessionLine]:
    """Every session in one line each, the newest last; no session is folded."""
    found = repository.summaries()
    return (session_line(summary, engine_alive=repository.engine_alive(summary)) for summary in found)


def why(repository: Repository, session: SessionId, task: str) -> list[str]:
    """What the task waits for, down to the first cause."""
    state = repository.state(session)
    if task not in state.tasks.plan:
        raise UserError(f'There is no task "{task}" in {session}', hint=f"iterdev status {session}")
    return reasons.why(state, repository.team(state), TaskId(task), engine_alive=repository.engine_alive(state.session))


def report(repository: Repository, session: SessionId) -> str:
    """The report as Markdown."""
    state = repository.state(session)
    return reports.report(state, repository.team(state))


def replay(repository: Repository, session: SessionId) -> Replay:
    return compare(repository.journal.read(session), repository.team(repository.state(session)))
