"""What to do next. Deciding never acts: it looks at the state and the time, and returns commands.

Both engines are here: `wave` finishes every task of one depth before it starts the next; `beat` starts whatever
is ready. What a task means, and what follows from it, the team says.
"""

from collections.abc import Collection, Iterable, Iterator

from iterdev.core.collaboration import external_packages, locks
from iterdev.core.formatting import duration
from iterdev.core.rules import branch_updates, conflict_tasks, landings
from iterdev.core.rules.escalations import stopped
from iterdev.core.rules.role_limits import within_role_limits
from iterdev.core.rules.schedule import Cancel, Command, Record, Wait, starts
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Event
from iterdev.core.session.gates import GateKind, PackageChoice, PlanChoice, WaveChoice, plan_gate
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Queue, queue_of
from iterdev.core.types import Engine, Mode, Phase, Status, TaskId, TaskKind


def decide(state: State, team: TeamRules, now: float) -> tuple[Command, ...]:
    """The commands that the state asks for; none means that something has to happen first, or that all is over."""
    if expired := locks.expired(state.locks, now):
        return (Record(expired),)
    return (*_next(state, team, now), *_meanwhile(state))


def _meanwhile(state: State) -> Iterator[Command]:
    """What is to be done about attempts that are under way."""
    yield from map(Cancel, state.attempts.aborted)
    if state.attempts.running and (held := state.locks.held.values()):
        yield Wait(min(lock.until for lock in held))


def _next(state: State, team: TeamRules, now: float) -> tuple[Command, ...]:
    if state.lifecycle.phase is not Phase.active or state.gates.open:
        return ()
    if first := _before_starts(state, team):
        return (Record(first),)
    if landing := landings.due(state, team):
        return landing
    if first := _packages(state):
        return (Record(first),)
    return _next_of_wave(state, team, now) if state.session.engine is Engine.wave else _next_of_beat(state, team, now)


def _before_starts(state: State, team: TeamRules) -> tuple[Event, ...]:
    """What has to be recorded first: the plan, its approval, the user's stop, conflicts, changes of the plan."""
    if not state.tasks.plan:
        return team.plan(state)
    if question := _unapproved_plan(state, team):
        return question
    if not state.attempts.running and (ending := stopped(state.gates)):
        return ending
    if state.conflicts.unresolved:
        return conflict_tasks.resolution(state, team, next(iter(state.conflicts.unresolved)))
    return branch_updates.due(state, team) or conflict_tasks.freed(state) or team.before_work(state)


def _unapproved_plan(state: State, team: TeamRules) -> tuple[Event, ...]:
    """The question whether the plan is right, before the first task starts; a rejection ends the session."""
    if state.policy.auto:
        return ()
    match state.gates.answer(GateKind.plan):
        case None:
            return (events.GateOpened(plan_gate(team.plan_note(state))),)
        case PlanChoice.reject:
            return (events.Finished(events.Finished.WHY_REJECTED),)
        case _:
            return ()


def _packages(state: State) -> tuple[Event, ...]:
    """What follows from checks of packages: updates for the backlog, and for a blocked task a question."""
    if found := tuple(external_packages.updates(state.packages)):
        return tuple(map(external_packages.PackageUpdateFound, found))
    for task in state.packages.blocked:
        if problems := state.packages.unsolved(task):
            return _blocked(state, task, problems)
    return ()


def _blocked(state: State, task: TaskId, problems: tuple[external_packages.PackageCheck, ...]) -> tuple[Event, ...]:
    """Overriding is the default: in auto mode the work continues with a warning."""
    missing = "; ".join(check.problem for check in problems)
    overridden = (
        external_packages.PackagesOverridden(task, problems),
        events.Warned(f"{task} goes on although {missing}", announced=False),
    )
    question = f"{task} needs packages that are not there as declared: {missing}. Go on without, or look again?"
    gate = events.Gate(kind=GateKind.packages, subject=task, question=question, choices=tuple(PackageChoice))
    match state.gates.answer(gate.id):
        case PackageChoice.override:
            return events.AnswerApplied(gate.id), *overridden
        case PackageChoice.recheck:
            return events.AnswerApplied(gate.id), external_packages.PackagesRechecked(task)
        case _:
            return overridden if state.policy.auto else (events.GateOpened(gate),)


def _next_of_beat(state: State, team: TeamRules, now: float) -> tuple[Command, ...]:
    tasks = state.tasks
    if skips := _skips(state, tasks.blocked_by_failure):
        return (Record(skips),)
    if first := team.follow_up(state):
        return (Record(first),)
    if not tasks.lowest_wave:
        return (Record(team.finish(state)),)
    if completed := _without_work(state, team, tasks.queues):
        return (Record(completed),)
    if TaskKind.decision in {queue.kind for queue in tasks.queues}:
        due = next(task for name in tasks.ready if (task := tasks.plan[name]).kind is TaskKind.decision)
        return (Record(team.decision(state, due)),)
    return starts(state, within_role_limits(state, team.roles, tasks.queues), now, state.policy.attempt_limit)


def _without_work(state: State, team: TeamRules, queues: Collection[Queue]) -> tuple[events.TaskCompleted, ...]:
    """Tasks that are ready and leave nothing to do: no agent is asked for them."""
    if not any(map(team.may_have_nothing_to_do, queues)):
        return ()
    ready = (task for name in state.tasks.ready if queue_of(task := state.tasks.plan[name]) in queues)
    return tuple(events.TaskCompleted(task.id, why) for task in ready if (why := team.nothing_to_do(state, task)))


def _next_of_wave(state: State, team: TeamRules, now: float) -> tuple[Command, ...]:
    tasks = state.tasks
    if not tasks.wave:
        return (Record(_start_of_wave(state, tasks.lowest_wave) if tasks.lowest_wave else team.finish(state)),)
    if skips := _skips_of_wave(state, tasks.wave):
        return (Record(skips),)
    # A fix of the work of an earlier wave may belong into a wave before this one.
    if not state.attempts.running and 0 < tasks.lowest_wave < tasks.wave:
        return (Record((events.WaveMerged(tasks.wave),)),)
    if tasks.open_in_wave.get(tasks.wave):
        return _within_wave(state, team, now)
    return (Record(_end_of_wave(state, team)),)


def _start_of_wave(state: State, wave: int) -> tuple[Event, ...]:
    """What cannot run is skipped together with the start, so that no wave file shows it as open."""
    return events.WaveStarted(wave), *_skips_of_wave(state, wave)


def _within_wave(state: State, team: TeamRules, now: float) -> tuple[Command, ...]:
    tasks, policy = state.tasks, state.policy
    queues = [queue for queue in tasks.queues if queue.wave == tasks.wave]
    left = tasks.wave_started_at + policy.wave_limit - tasks.wave_clock(now)
    if left <= 0 and queues:
        error = f"wave {tasks.wave} had used up its {duration(policy.wave_limit)} before it could start"
        late = (events.TaskFailed(task, error) for task in tasks.ready if tasks.plan[task].wave == tasks.wave)
        return (Record((*late,)),)
    if completed := _without_work(state, team, queues):
        return (Record(completed),)
    running = {tasks.plan[task].mode for task in state.attempts.running}
    batch = [queue for queue in queues if queue.mode is Mode.csv_wave and queue.kind is not TaskKind.decision]
    conversations = [queue for queue in queues if queue not in batch]
    before = [queue for queue in conversations if queue.mode is Mode.pre_wave]
    if not before and Mode.pre_wave not in running and (batch or Mode.csv_wave in running):
        admitted = within_role_limits(state, team.roles, batch)
        return starts(state, admitted, now, min(policy.attempt_limit, left))
    if running or not conversations:
        return ()
    first = tasks.plan[next(tasks.in_order(before or conversations))]
    if first.kind is TaskKind.decision:
        return (Record(team.decision(state, first)),)
    return starts(state, iter((first.id,)), now, policy.attempt_limit)


def _end_of_wave(state: State, team: TeamRules) -> tuple[Event, ...]:
    wave = state.tasks.wave
    if not state.policy.auto and (failed := _failed_completely(state)):
        question = f"Every agent of wave {wave} failed ({', '.join(failed)}). Try again, or go on without?"
        gate = events.Gate(kind=GateKind.wave, subject=str(wave), question=question, choices=tuple(WaveChoice))
        match state.gates.answer(gate.id):
            case None:
                return (events.GateOpened(gate),)
            case WaveChoice.retry:
                return events.AnswerApplied(gate.id), events.TasksReset(tuple(failed))
            case _:
                pass
    return team.follow_up(state) or (events.WaveMerged(wave),)


def _failed_completely(state: State) -> list[TaskId]:
    """The tasks of a wave in which there were attempts, and every task that was tried has failed."""
    rows = state.tasks.rows()
    tried = [task.id for task, progress in rows if task.wave == state.tasks.wave and progress.number]
    failed = [task for task in tried if state.tasks.status(task) is Status.failed]
    return failed if len(failed) == len(tried) else []


def _skips_of_wave(state: State, wave: int) -> tuple[events.TaskSkipped, ...]:
    return _skips(state, (task for task in state.tasks.blocked_by_failure if state.tasks.plan[task].wave == wave))


def _skips(state: State, blocked: Iterable[TaskId]) -> tuple[events.TaskSkipped, ...]:
    def reason(task: TaskId) -> str:
        failed = [dep for dep in state.tasks.plan[task].deps if state.tasks.progress[dep].is_lost]
        return f"Dependency failed or skipped: {', '.join(failed)}"

    return tuple(events.TaskSkipped(task, reason(task)) for task in blocked)
