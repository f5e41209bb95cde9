"""Has the failed tasks of a session run again."""

from collections.abc import Sequence

from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, TasksReset
from iterdev.core.session.state import State
from iterdev.core.types import LOST, SessionId
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_log import SessionLog


def reset_failed_tasks(repository: Repository, session: SessionId) -> None:
    """Makes the tasks pending again that failed, and those that were skipped because of them."""
    SessionLog(repository.journal, session, now=clock.now).transact(_reset)


def _reset(state: State, _: float) -> Sequence[Event]:
    again = tuple(task.id for task, progress in state.rows() if progress.status in LOST)
    if not again:
        session = state.session.id
        raise UserError(f'No task of "{session}" failed or was skipped', hint=f"iterdev status {session}")
    return [TasksReset(again)]
