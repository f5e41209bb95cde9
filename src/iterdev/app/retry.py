"""Has the failed tasks of a session run again."""

from collections.abc import Sequence

from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, TasksReset
from iterdev.core.session.state import State
from iterdev.core.types import UNSUCCESSFUL, SessionId
from iterdev.engine.repository import Repository


def reset_failed_tasks(repository: Repository, session: SessionId) -> None:
    """Makes the tasks pending again that failed, and those that were skipped because of them."""
    repository.log(session).transact(_reset)


def _reset(state: State, _: float) -> Sequence[Event]:
    again = tuple(task.id for task, progress in state.tasks.rows() if progress.status in UNSUCCESSFUL)
    if not again:
        session = state.session.id
        raise UserError(f'No task of "{session}" failed or was skipped', hint=f"iterdev status {session}")
    return [TasksReset(again)]
