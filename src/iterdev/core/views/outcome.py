"""How the work of a session ended: whether it succeeded, and what speaks against it."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.rules import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId


class OutcomeView(Struct, frozen=True, kw_only=True):
    is_over: bool
    is_finished: bool
    """The work is done, even if the session is kept active."""
    succeeded: bool
    """The work is done, every task is completed, and the team has nothing to say against it."""
    reasons: tuple[str, ...]
    """Why a session that is over did not succeed, one sentence each."""
    ended_early: bool
    not_landed: Mapping[TaskId, str]
    """Tasks whose work is not on the branch, and why."""
    exported: str
    """Where the deliverables were copied to, if they were."""


def outcome_view(state: State, shortcomings: tuple[str, ...]) -> OutcomeView:
    ended_early = bool(state.why) and not state.lifecycle.kept
    counts = {status: state.tasks.count(status) for status in (Status.failed, Status.skipped)}
    unsuccessful = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    reasons = (
        *((state.why,) if ended_early else ()),
        *((f"tasks: {unsuccessful}",) if unsuccessful else ()),
        *shortcomings,
    )
    completed = all(progress.status is Status.completed for progress in state.tasks.progress.values())
    return OutcomeView(
        is_over=state.lifecycle.is_over,
        is_finished=state.lifecycle.is_finished,
        succeeded=completed and state.lifecycle.is_finished and not reasons,
        reasons=reasons if state.lifecycle.is_over else (),
        ended_early=ended_early,
        not_landed={task: conflict_tasks.conflict_note(state, task) for task in conflict_tasks.not_landed(state)},
        exported=state.lifecycle.exported,
    )
