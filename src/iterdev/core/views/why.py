"""Why a task is not done: the exact things that it waits for, down to the first cause, and paused providers."""

from datetime import tzinfo

from msgspec import Struct

from iterdev.core.formatting import one_line
from iterdev.core.ids import ZONE, moment
from iterdev.core.limits import providers
from iterdev.core.rules import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.types import Phase, Status, TaskId
from iterdev.core.views.landings import landing_note
from iterdev.core.views.tasks import LEFT_OUT, asked_agent, host_of, lock_waits, waits_for
from iterdev.core.views.team import TeamViews

LANDS_NEXT = "lands next"


def why(state: State, team: TeamViews, task: TaskId, *, engine_alive: bool, zone: tzinfo = ZONE) -> list[str]:
    """One line for each cause, for each reason of its place in the plan, and for each thing its agents were denied."""
    denied = [f"asked for, and denied: {request}" for request in state.tasks.progress[task].denied]
    reasons = _reasons(state, team, task, engine_alive=engine_alive, zone=zone)
    return [*reasons, *team.order_reasons(state, task), *denied]


def _reasons(state: State, team: TeamViews, task: TaskId, *, engine_alive: bool, zone: tzinfo) -> list[str]:
    progress = state.tasks.progress[task]
    if progress.status.is_final:
        cause = LEFT_OUT if progress.left_out else one_line(progress.error) or conflict_tasks.conflict_note(state, task)
        reason = f": {cause}" if cause else ""
        return [f"{task} is {progress.status}{reason}"]
    if state.lifecycle.is_over:
        return [f"{task} is {progress.status}, and stays so: {state.why or 'the session is over'}"]
    if progress.status is not Status.pending:
        return _activity(state, team, task, engine_alive=engine_alive, zone=zone)
    lines = [f"{task} is pending: {waits_for(state, task, zone)}", *lock_waits(state, task, zone)]
    lines += [f"gate {gate.id}: {gate.question} ({', '.join(gate.choices)})" for gate in state.gates.open.values()]
    for link in chain(state, task):
        cause = _cause(state, team, link, engine_alive=engine_alive, zone=zone)
        lines.append(f"{link} is {state.tasks.progress[link].status}: {cause}")
    lines += [pause_text(pause) for pause in pauses(state, zone)]
    if state.lifecycle.phase is Phase.paused:
        lines.append(f"the session is paused: {state.why}")
    if not engine_alive:
        lines.append(f"no engine is running: `iterdev resume {state.session.id}`")
    return lines


def _activity(state: State, team: TeamViews, task: TaskId, *, engine_alive: bool, zone: tzinfo) -> list[str]:
    progress = state.tasks.progress[task]
    agent = asked_agent(progress, team.task_notes(state, task))
    said = state.attempts.last_message.get(task)
    lines = [
        _doing(state, task, agent),
        *lock_waits(state, task, zone),
        f"its agent last said: {said}" if said else "",
        "" if engine_alive else f"no engine is alive: run `iterdev resume {state.session.id}`",
    ]
    return list(filter(None, lines))


def _doing(state: State, task: TaskId, agent: str) -> str:
    progress = state.tasks.progress[task]
    if progress.status is Status.landing:
        return f"{task} is {progress.status}: it {landing_note(state, task) or LANDS_NEXT}"
    host = host_of(state, task)
    place = f" on {host}" if host else ", waits for a host" if host is None else ""
    return f"{task} is {progress.status}, attempt {progress.number + 1}{f' by {agent}' if agent else ''}{place}"


def _cause(state: State, team: TeamViews, task: TaskId, *, engine_alive: bool, zone: tzinfo) -> str:
    progress = state.tasks.progress[task]
    match progress.status:
        case Status.pending:
            return waits_for(state, task, zone)
        case Status.failed | Status.skipped:
            return one_line(progress.error)
        case _ if not engine_alive and not state.attempts.outlives_engine(task):
            return "interrupted"
        case Status.landing:
            return landing_note(state, task) or LANDS_NEXT
        case _:
            return asked_agent(progress, team.task_notes(state, task)) or "iterdev runs the tests"


def chain(state: State, task: TaskId) -> list[TaskId]:
    """The blockers of a task, and theirs, each once, nearest first."""
    seen: dict[TaskId, None] = {}
    queue = state.tasks.unmet(task)
    while queue:
        link = queue.pop(0)
        if link not in seen:
            seen[link] = None
            queue += state.tasks.unmet(link)
    return list(seen)


def stall(state: State, *, engine_alive: bool = True) -> str:
    """The chain of blockers when nothing is ready, nothing is running and something is pending; otherwise empty.

    This does not happen while an engine lives. Attempts of a dead engine do not run, unless they outlive it.
    """
    pending = [task for task, progress in state.tasks.progress.items() if progress.status is Status.pending]
    moves = (
        state.tasks.ready
        or state.tasks.blocked_by_failure
        or (engine_alive and (state.attempts.running or state.attempts.landing))
        or any(map(state.attempts.outlives_engine, state.attempts.running))
    )
    if state.lifecycle.is_over or not pending or moves:
        return ""
    first = pending[0]
    links = [f"{link} ({state.tasks.progress[link].status})" for link in chain(state, first)]
    return f"{first} is blocked by {' <- '.join(links)}"


class PauseView(Struct, frozen=True, kw_only=True):
    provider: str
    agents: tuple[str, ...]
    ends_at: float
    until: str
    why: str


def pauses(state: State, zone: tzinfo = ZONE) -> tuple[PauseView, ...]:
    """The pauses that were in force when something last happened."""
    return tuple(
        PauseView(
            provider=provider,
            agents=tuple(state.agents.clients(provider)),
            ends_at=pause.until,
            until=moment(pause.until, zone),
            why=pause.why,
        )
        for provider, pause in providers.in_force(state.providers, state.updated_at).items()
    )


def pause_text(pause: PauseView) -> str:
    return f"the provider of {', '.join(pause.agents)} is paused until {pause.until}: {pause.why}"
