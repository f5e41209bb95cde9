"""One task as every surface shows it: its status, what it left, and what it waits for."""

import heapq
from datetime import tzinfo
from itertools import chain, islice

from msgspec import Struct

from iterdev.core.formatting import one_line
from iterdev.core.ids import ZONE, moment
from iterdev.core.rules import conflict_tasks
from iterdev.core.rules.schedule import agent_choices
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.types import Engine, Role, Status, TaskId
from iterdev.core.views.landings import landing_note
from iterdev.core.views.team import TaskNotes, TeamViews

MARKS = {
    Status.completed: "[DONE]",
    Status.in_progress: "[RUN]",
    Status.landing: "[RUN]",
    Status.pending: "[WAIT]",
    Status.failed: "[FAIL]",
    Status.skipped: "[SKIP]",
}

GLYPHS = {
    Status.pending: "·",
    Status.in_progress: "▸",
    Status.landing: "▸",
    Status.completed: "✓",
    Status.failed: "✗",
    Status.skipped: "-",
}
ASKS_FOR_MORE = "!"

LEFT_OUT = "left out in tasks.csv; tasks that depend on it run without it"


class TaskResult(Struct, frozen=True, kw_only=True):
    findings: str
    error: str
    notes: TaskNotes
    """What the team says about it."""
    conflict: str
    """What became of work that could not land; empty for all other work."""


class TaskView(Struct, frozen=True, kw_only=True):
    id: TaskId
    role: Role
    title: str
    wave: int
    deps: tuple[TaskId, ...]
    status: Status
    effective_status: Status
    """That of the task that brings in work which could not land; pending for work without a living engine."""
    note: str
    """The artifact, the activity, the blocker or the error."""
    agent: str
    host: str | None
    """The host of the attempt that is under way: empty for this machine, None while it waits for one."""
    attempt: int
    """The number of the attempt that is under way, or of the next one."""
    requests: int
    started_at: float | None
    ended_at: float | None
    cost_usd: float
    tokens: int
    result: TaskResult

    @property
    def mark(self) -> str:
        return MARKS[self.effective_status]

    @property
    def activity(self) -> str:
        """Who works on it, and where."""
        return working(self.agent, self.host)

    @property
    def asks_for_more(self) -> bool:
        """A verdict that asks for a fix round is done, but no success."""
        return self.result.notes.unfavourable and self.effective_status is Status.completed

    @property
    def glyph(self) -> str:
        return ASKS_FOR_MORE if self.asks_for_more else GLYPHS[self.effective_status]


def task_view(
    state: State, team: TeamViews, name: TaskId, *, engine_alive: bool = True, zone: tzinfo = ZONE
) -> TaskView:
    task, progress, notes = state.tasks.plan[name], state.tasks.progress[name], team.task_notes(state, name)
    deciding = conflict_tasks.conflict_task_of(state, name) or name
    effective = state.tasks.status(deciding)
    goes_on = engine_alive or state.attempts.outlives_engine(deciding)
    return TaskView(
        id=task.id,
        role=task.role,
        title=task.title,
        wave=task.wave,
        deps=task.deps,
        status=progress.status,
        effective_status=effective if goes_on or effective.is_final else Status.pending,
        note=_note(state, name, notes, engine_alive=engine_alive, zone=zone),
        agent=asked_agent(progress, notes),
        host=host_of(state, name),
        attempt=progress.number + 1,
        requests=progress.requests,
        started_at=progress.started_at,
        ended_at=progress.ended_at,
        cost_usd=progress.usage.cost_usd,
        tokens=progress.usage.tokens,
        result=TaskResult(
            findings=progress.findings,
            error=LEFT_OUT if progress.left_out else progress.error,
            notes=notes,
            conflict=conflict_tasks.conflict_note(state, name),
        ),
    )


def _note(state: State, task: TaskId, notes: TaskNotes, *, engine_alive: bool, zone: tzinfo) -> str:
    match state.tasks.status(task):
        case Status.completed:
            return conflict_tasks.conflict_note(state, task) or notes.artifact
        case Status.in_progress if not engine_alive and state.attempts.outlives_engine(task):
            return f"runs without an engine; wait for it with `iterdev resume {state.session.id}`"
        case Status.in_progress | Status.landing if not engine_alive:
            return f"interrupted; continue with `iterdev resume {state.session.id}`"
        case Status.in_progress:
            host, said = host_of(state, task), state.attempts.last_message.get(task, "working...")
            if host is None:
                return working(state.tasks.progress[task].agent, host)
            return f"{f'on {host}: ' if host else ''}{'; '.join(lock_waits(state, task, zone)) or one_line(said)}"
        case Status.landing:
            return landing_note(state, task) or "landing..."
        case Status.pending:
            return waits_for(state, task, zone)
        case _:
            progress = state.tasks.progress[task]
            return LEFT_OUT if progress.left_out else one_line(progress.error)


def host_of(state: State, task: TaskId) -> str | None:
    """The host of the attempt at a task: empty for this machine, None while it waits for one."""
    return None if task in state.tasks.unplaced else state.attempts.hosts.get(task, "")


def working(agent: str, host: str | None) -> str:
    if host is None:
        return f"waits for a host{f' that offers {agent}' if agent else ''}"
    return f"{agent or 'iterdev'} is working{f' on {host}' if host else ''}"


def waits_for(state: State, task: TaskId, zone: tzinfo) -> str:
    """What a pending task needs next, in a few words."""
    unmet = state.tasks.unmet(task)
    if unmet:
        return f"blocked by {', '.join(unmet)}"
    if state.gates.open:
        return f"waiting for an answer to {', '.join(state.gates.open)}"
    choice = agent_choices(state, [task], state.updated_at)[task]
    if choice.not_before > state.updated_at:
        until = moment(choice.not_before, zone)
        return f"the provider of {choice.agent} has reached its limit and is paused until {until}"
    if state.session.engine is Engine.wave and state.tasks.wave and state.tasks.plan[task].wave > state.tasks.wave:
        return f"waiting for wave {state.tasks.wave} to end"
    return "ready"


def lock_waits(state: State, task: TaskId, zone: tzinfo) -> list[str]:
    """The lock that a task was refused, and who holds it, if there is one."""
    want = state.locks.wanted.get(task)
    if want is None:
        return []
    lock = state.locks.held[want.resource]
    since = moment(lock.at, zone)
    return [f'waits for the lock on "{want.resource}", held by {lock.task} ({lock.role}) since {since}']


def asked_agent(progress: Progress, notes: TaskNotes) -> str:
    """The agent that was or is asked; empty while iterdev itself does the work."""
    return progress.agent if progress.requests or notes.asks_agent else ""


def excerpt(state: State, room: int) -> list[TaskId]:
    """As many tasks as there is room for, in the order of the table.

    First those under way, then those that failed; the rest of the room is for what was done last and what comes next.
    """
    if len(state.tasks.order) <= room:
        return list(state.tasks.order)
    failed = (task for task, progress in state.tasks.progress.items() if progress.status is Status.failed)
    urgent = list(islice(chain(state.attempts.running, state.attempts.landing, failed), room))
    left = room - len(urgent)
    following = _following(state, left - len(_done_last(state, left // 2)))
    done = _done_last(state, left - len(following))
    return sorted((*urgent, *following, *done), key=state.tasks.order.__getitem__)


def _following(state: State, count: int) -> list[TaskId]:
    """What is ready, in the order in which it will be started, and then what waits."""
    ready = heapq.nsmallest(count, state.tasks.ready, key=state.tasks.order.__getitem__)
    pending = (task for task, progress in state.tasks.progress.items() if progress.status is Status.pending)
    waiting = (task for task in pending if task not in state.tasks.ready)
    return [*ready, *islice(waiting, count - len(ready))]


def _done_last(state: State, count: int) -> list[TaskId]:
    done = (
        (progress.ended_at or 0, task)
        for task, progress in state.tasks.progress.items()
        if progress.status in {Status.completed, Status.skipped}
    )
    return [task for _, task in heapq.nlargest(count, done)]
