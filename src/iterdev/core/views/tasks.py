"""One task as every surface shows it: its status, what it left, and what it waits for."""

import heapq
from itertools import chain, islice

from msgspec import Struct

from iterdev.core.ids import moment, number_of
from iterdev.core.limits import providers
from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Role, Signal, Status, TaskId
from iterdev.core.views import team

MARKS = {
    Status.completed: "[DONE]",
    Status.in_progress: "[RUN]",
    Status.landing: "[RUN]",
    Status.pending: "[WAIT]",
    Status.failed: "[FAIL]",
    Status.skipped: "[SKIP]",
}


class TaskResult(Struct, frozen=True, kw_only=True):
    """What became of a task so far."""

    findings: str
    error: str
    score: float | None
    signal: Signal | None
    needs_revision: bool
    """The task is a review or a test run that asks for a fix round."""
    conflict: str
    """What became of work that could not land; empty for all other work."""


class TaskView(Struct, frozen=True, kw_only=True):
    id: TaskId
    role: Role
    title: str
    wave: int
    status: Status
    effective_status: Status
    """That of the task that brings in work which could not land; pending for work without a living engine."""
    note: str
    """The artifact, the activity, the blocker or the error."""
    agent: str
    attempt: int
    """The number of the attempt that is under way, or of the next one."""
    requests: int
    started_at: float | None
    ended_at: float | None
    cost_usd: float
    result: TaskResult

    @property
    def mark(self) -> str:
        return MARKS[self.effective_status]


def task_view(state: State, name: TaskId, *, engine_alive: bool = True) -> TaskView:
    task, progress = state.tasks[name], state.progress[name]
    return TaskView(
        id=task.id,
        role=task.role,
        title=task.title,
        wave=task.wave,
        status=progress.status,
        effective_status=_effective_status(state, name, engine_alive=engine_alive),
        note=_note(state, task, progress, engine_alive=engine_alive),
        agent=asked_agent(task, progress),
        attempt=progress.number + 1,
        requests=progress.requests,
        started_at=progress.started_at,
        ended_at=progress.ended_at,
        cost_usd=progress.usage.cost_usd,
        result=TaskResult(
            findings=progress.findings,
            error=progress.error,
            score=progress.score,
            signal=progress.signal,
            needs_revision=team.needs_revision(state, name),
            conflict=conflict_tasks.collision(state, name),
        ),
    )


def _effective_status(state: State, task: TaskId, *, engine_alive: bool) -> Status:
    status = state.progress[conflict_tasks.resolver(state, task) or task].status
    return status if engine_alive or status.is_final else Status.pending


def _note(state: State, task: Task, progress: Progress, *, engine_alive: bool) -> str:
    match progress.status:
        case Status.completed:
            return conflict_tasks.collision(state, task.id) or artifact(task, progress)
        case Status.in_progress | Status.landing if not engine_alive:
            return f"interrupted; go on with `iterdev resume {state.session.id}`"
        case Status.in_progress:
            return "; ".join(lock_waits(state, task.id)) or state.last_words.get(task.id, "working...")
        case Status.landing:
            return "landing..."
        case Status.pending:
            return waits_for(state, task.id)
        case _:
            return progress.error


def artifact(task: Task, progress: Progress) -> str:
    """The file that a completed task left, relative to the session folder."""
    number = number_of(task.id)
    match task.role:
        case Role.architect:
            return f"design/design-{number}.md"
        case Role.developer:
            return "code/dev-log.md"
        case Role.tester:
            return f"verify/verify-{number}.json"
        case Role.reviewer:
            score = f" (score {progress.score:g})" if progress.score is not None else ""
            return f"review/review-{number}.md{score}"
        case Role.gc_controller:
            return f"interactive/{task.id}-result.json"


def waits_for(state: State, task: TaskId) -> str:
    """What a pending task needs next, in a few words."""
    unmet = state.unmet(task)
    if unmet:
        return f"blocked by {', '.join(unmet)}"
    if state.gates:
        return f"waiting for an answer to {', '.join(state.gates)}"
    choice = providers.choices(state, [task], state.updated_at)[task]
    if choice.not_before > state.updated_at:
        return f"the provider of {choice.agent} has reached its limit and is paused until {moment(choice.not_before)}"
    if state.session.engine is Engine.wave and state.wave and state.tasks[task].wave > state.wave:
        return f"waiting for wave {state.wave} to end"
    return "ready"


def lock_waits(state: State, task: TaskId) -> list[str]:
    """The lock that a task was refused, and who holds it, if there is one."""
    want = state.locks.wanted.get(task)
    if want is None:
        return []
    lock = state.locks.held[want.resource]
    return [f'waits for the lock on "{want.resource}", held by {lock.task} ({lock.role}) since {moment(lock.at)}']


def asked_agent(task: Task, progress: Progress) -> str:
    """The agent that was or is asked. iterdev runs the tests itself, and a tester's agent is asked if they fail."""
    return progress.agent if progress.requests or task.role is not Role.tester else ""


def excerpt(state: State, room: int) -> list[TaskId]:
    """As many tasks as there is room for, in the order of the table.

    First those under way, then those that failed; the rest of the room is for what was done last and what comes next.
    """
    if len(state.order) <= room:
        return list(state.order)
    failed = (task for task, progress in state.progress.items() if progress.status is Status.failed)
    urgent = list(islice(chain(state.running, state.landing, failed), room))
    left = room - len(urgent)
    following = _following(state, left - len(_done_last(state, left // 2)))
    done = _done_last(state, left - len(following))
    return sorted((*urgent, *following, *done), key=state.order.__getitem__)


def _following(state: State, count: int) -> list[TaskId]:
    """What is ready, in the order in which it will be started, and then what waits."""
    ready = heapq.nsmallest(count, state.ready, key=state.order.__getitem__)
    pending = (task for task, progress in state.progress.items() if progress.status is Status.pending)
    waiting = (task for task in pending if task not in state.ready)
    return [*ready, *islice(waiting, count - len(ready))]


def _done_last(state: State, count: int) -> list[TaskId]:
    done = (
        (progress.ended_at or 0, task)
        for task, progress in state.progress.items()
        if progress.status in {Status.completed, Status.skipped}
    )
    return [task for _, task in heapq.nlargest(count, done)]
