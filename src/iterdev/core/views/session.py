"""What every surface shows of a session: the picture of its tasks, what waits for what, and why."""

import heapq
from itertools import chain as chained
from itertools import islice

from msgspec import Struct

from iterdev.core.collaboration import feedback, tech_debt
from iterdev.core.ids import moment
from iterdev.core.limits import providers
from iterdev.core.limits.spending import Spending, spending
from iterdev.core.results import Usage
from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Phase, Role, Severity, Status, TaskId
from iterdev.teams.development import sprints

MARKS = {
    Status.completed: "[DONE]",
    Status.in_progress: "[RUN]",
    Status.landing: "[RUN]",
    Status.pending: "[WAIT]",
    Status.failed: "[FAIL]",
    Status.skipped: "[SKIP]",
}


class Line(Struct, frozen=True, kw_only=True):
    """One task as it is shown."""

    id: TaskId
    role: Role
    title: str
    wave: int
    status: Status
    mark: str
    note: str
    """The artifact, the activity, the blocker or the error."""
    agent: str = ""
    score: float | None = None
    requests: int = 0
    started_at: float | None = None
    ended_at: float | None = None


class PausedProvider(Struct, frozen=True, kw_only=True):
    """A provider that answers nobody for a while."""

    provider: str
    agents: tuple[str, ...]
    until: str
    why: str


class Picture(Struct, frozen=True, kw_only=True):
    session: str
    requirement: str
    pipeline: str
    engine: Engine
    phase: Phase
    why: str
    lines: tuple[Line, ...]
    gates: tuple[str, ...]
    counts: dict[str, int]
    round: int
    rounds: int
    sprint: str
    sprints: int
    """How many there will be, as far as is known."""
    goals: tuple[str, ...]
    """What each of them is for."""
    branch: str
    tip: str
    folder: str
    usage: Usage
    spending: Spending
    pauses: tuple[PausedProvider, ...]
    warnings: tuple[str, ...]
    stall: str
    accepted: str
    feedback: str = ""
    """How much feedback is open, in a few words; empty if there is none."""
    debt: str = ""


def picture(state: State, *, engine_alive: bool = True) -> Picture:
    """The session as it is; without a living engine, what is called running is not."""
    return Picture(
        session=state.session.id,
        requirement=state.session.requirement,
        pipeline=state.pipeline or "",
        engine=state.session.engine,
        phase=state.phase,
        why=state.why,
        lines=tuple(_line(state, task, progress, engine_alive=engine_alive) for task, progress in state.rows()),
        gates=tuple(state.gates),
        counts={status.value: state.count(status) for status in Status},
        round=state.round,
        rounds=state.policy.rounds,
        sprint=f"sprint-{state.sprint}",
        sprints=sprints.total(state),
        goals=tuple(sprints.goals(state)),
        branch=f"iterdev/{state.session.id}",
        tip=state.tip,
        folder=state.session.folder,
        usage=state.spent,
        spending=spending(state),
        pauses=pauses(state),
        warnings=state.warnings,
        stall=stall(state, engine_alive=engine_alive),
        accepted=state.accepted,
        feedback=open_feedback(state),
        debt=open_debt(state),
    )


def pauses(state: State) -> tuple[PausedProvider, ...]:
    """The pauses that were in force when something last happened."""
    return tuple(
        PausedProvider(
            provider=provider,
            agents=tuple(providers.clients(state, provider)),
            until=moment(pause.until),
            why=pause.why,
        )
        for provider, pause in providers.in_force(state, state.updated_at).items()
    )


def paused_provider(pause: PausedProvider) -> str:
    return f"the provider of {', '.join(pause.agents)} is paused until {pause.until}: {pause.why}"


def _line(state: State, task: Task, progress: Progress, *, engine_alive: bool) -> Line:
    return Line(
        id=task.id,
        role=task.role,
        title=task.title,
        wave=task.wave,
        status=progress.status,
        mark=_mark(state, task, engine_alive=engine_alive),
        note=_note(state, task, progress, engine_alive=engine_alive),
        agent=asked_agent(task, progress),
        score=progress.score,
        requests=progress.requests,
        started_at=progress.started_at,
        ended_at=progress.ended_at,
    )


def _mark(state: State, task: Task, *, engine_alive: bool) -> str:
    """Work that could not land stands as the task does that brings it in."""
    status = state.progress[conflict_tasks.resolver(state, task.id) or task.id].status
    return MARKS[status if engine_alive or status.is_final else Status.pending]


def _note(state: State, task: Task, progress: Progress, *, engine_alive: bool) -> str:
    match progress.status:
        case Status.completed:
            return conflict_tasks.collision(state, task.id) or artifact(state, task)
        case Status.in_progress | Status.landing if not engine_alive:
            return f"interrupted; go on with `iterdev resume {state.session.id}`"
        case Status.in_progress:
            return "; ".join(_lock_waits(state, task.id)) or state.last_words.get(task.id, "working...")
        case Status.landing:
            return "landing..."
        case Status.pending:
            return waits_for(state, task.id)
        case _:
            return progress.error


def artifact(state: State, task: Task) -> str:
    """The file that a completed task left, relative to the session folder."""
    number = task.id.rsplit("-", 1)[-1]
    match task.role:
        case Role.architect:
            return f"design/design-{number}.md"
        case Role.developer:
            return "code/dev-log.md"
        case Role.tester:
            return f"verify/verify-{number}.json"
        case Role.reviewer:
            score = state.progress[task.id].score
            return f"review/review-{number}.md" + (f" (score {score:g})" if score is not None else "")
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


def why(state: State, task: TaskId, *, engine_alive: bool) -> list[str]:
    """The exact things that a task waits for, down to the first cause, and what its agents were denied."""
    denied = [f"asked for, and denied: {wish}" for wish in state.progress[task].denied]
    return _reasons(state, task, engine_alive=engine_alive) + denied


def _reasons(state: State, task: TaskId, *, engine_alive: bool) -> list[str]:
    progress = state.progress[task]
    if progress.status.is_final:
        cause = progress.error or conflict_tasks.collision(state, task)
        reason = f": {cause}" if cause else ""
        return [f"{task} is {progress.status}{reason}"]
    if state.is_over:
        return [f"{task} is {progress.status}, and stays so: {state.why or 'the session is over'}"]
    if progress.status is not Status.pending:
        agent = asked_agent(state.tasks[task], progress)
        lines = [
            f"{task} is {progress.status}, attempt {progress.number + 1}" + (f" by {agent}" if agent else ""),
            *_lock_waits(state, task),
        ]
        lines += [f"its agent last said: {state.last_words[task]}"] if task in state.last_words else []
        return lines + ([] if engine_alive else [f"no engine is alive: run `iterdev resume {state.session.id}`"])
    lines = [f"{task} is pending: {waits_for(state, task)}", *_lock_waits(state, task)]
    lines += [f"gate {gate.id}: {gate.question} ({', '.join(gate.choices)})" for gate in state.gates.values()]
    for link in chain(state, task):
        lines.append(f"{link} is {state.progress[link].status}: {_cause(state, link, engine_alive=engine_alive)}")
    lines += [paused_provider(pause) for pause in pauses(state)]
    if state.phase is Phase.paused:
        lines.append(f"the session is paused: {state.why}")
    if not engine_alive and not state.is_over:
        lines.append(f"no engine is running: `iterdev resume {state.session.id}`")
    return lines


def asked_agent(task: Task, progress: Progress) -> str:
    """The agent that was or is asked. iterdev runs the tests itself, and a tester's agent is asked if they fail."""
    return progress.agent if progress.requests or task.role is not Role.tester else ""


def _lock_waits(state: State, task: TaskId) -> list[str]:
    """The lock that a task was refused, and who holds it, if there is one."""
    want = state.locks.wanted.get(task)
    if want is None:
        return []
    lock = state.locks.held[want.resource]
    return [f'waits for the lock on "{want.resource}", held by {lock.task} ({lock.role}) since {moment(lock.at)}']


def open_feedback(state: State) -> str:
    count = sum(item.is_open for item in state.feedback)
    urgent = len(feedback.urgent(state.feedback))
    return f"{count} open, {urgent} of high or critical severity" if count else ""


def open_debt(state: State) -> str:
    """The debt by severity, the gravest first."""
    unsettled = tech_debt.unsettled(state.debt)
    counts = {severity: sum(item.severity is severity for item in unsettled) for severity in Severity}
    parts = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    return f"{len(unsettled)} open ({parts})" if unsettled else ""


def _cause(state: State, task: TaskId, *, engine_alive: bool) -> str:
    progress = state.progress[task]
    match progress.status:
        case Status.pending:
            return waits_for(state, task)
        case Status.failed | Status.skipped:
            return progress.error
        case _ if not engine_alive:
            return "interrupted"
        case _:
            return asked_agent(state.tasks[task], progress) or "iterdev runs the tests"


def chain(state: State, task: TaskId) -> list[TaskId]:
    """The blockers of a task, and theirs, each once, nearest first."""
    seen: dict[TaskId, None] = {}
    queue = state.unmet(task)
    while queue:
        link = queue.pop(0)
        if link not in seen:
            seen[link] = None
            queue += state.unmet(link)
    return list(seen)


def stall(state: State, *, engine_alive: bool = True) -> str:
    """Nothing ready, nothing running, something pending: which chain of blockers holds it up.

    While an engine lives it does not come to that. What a dead one left running does not run.
    """
    pending = [task for task, progress in state.progress.items() if progress.status is Status.pending]
    moves = state.ready or state.doomed or (engine_alive and (state.running or state.landing))
    if state.is_over or not pending or moves:
        return ""
    first = pending[0]
    links = [f"{link} ({state.progress[link].status})" for link in chain(state, first)]
    return f"{first} is blocked by {' <- '.join(links)}"


def excerpt(state: State, room: int) -> list[TaskId]:
    """As many tasks as there is room for, in the order of the table.

    First those under way, then those that failed; the rest of the room is for what was done last and what comes next.
    """
    if len(state.order) <= room:
        return list(state.order)
    failed = (task for task, progress in state.progress.items() if progress.status is Status.failed)
    urgent = list(islice(chained(state.running, state.landing, failed), room))
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
    done = ((progress.ended_at or 0, task) for task, progress in state.progress.items() if _is_done(progress.status))
    return [task for _, task in heapq.nlargest(count, done)]


def _is_done(status: Status) -> bool:
    return status in {Status.completed, Status.skipped}
