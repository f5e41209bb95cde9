"""What to do next. Deciding never acts: it looks at the state and the time, and returns commands.

Both engines are here: `wave` finishes every task of one depth before it starts the next; `beat` starts whatever
is ready.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from iterdev.core.collaboration import external_packages, locks
from iterdev.core.limits import budget, providers
from iterdev.core.session import capability_gaps, conflict_tasks, consensus, events
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import LOST, Engine, Mode, Phase, Pipeline, Role, Status, TaskId
from iterdev.teams.development import critic, pipelines, sprints
from iterdev.teams.development.feedback_planning import uptake
from iterdev.teams.development.gates import APPROVE, PIPELINE_GATE, PLAN_GATE, pipeline_gate, plan_gate

RETRY, ABORT = "retry", "abort"
STOP, GO_ON = "stop", "go-on"
BUDGET_GATE = "budget"


class Record(Struct, frozen=True):
    """Something that is so from now on, and needs no effect but its place in the journal."""

    events: tuple[events.Event, ...]


class Start(Struct, frozen=True, kw_only=True):
    """Let an agent try a task."""

    task: TaskId
    number: int
    limit: float
    agent: str


class Land(Struct, frozen=True):
    """Merge a task's commit into the session's branch."""

    task: TaskId


class Cancel(Struct, frozen=True):
    """End the attempt at a task."""

    task: TaskId


class Wait(Struct, frozen=True):
    """Nothing can be done before this time."""

    until: float


Command = Record | Start | Land | Cancel | Wait


def decide(state: State, now: float) -> tuple[Command, ...]:
    """The commands that the state asks for; none means that something has to happen first, or that all is over."""
    if late := locks.expired(state.locks, now):
        return (Record(late),)
    return (*_next(state, now), *_beside(state))


def _beside(state: State) -> Iterator[Command]:
    """What is to be done about attempts that are under way."""
    yield from map(Cancel, state.aborted)
    if state.running and (end := locks.next_end(state.locks)):
        yield Wait(end)


def _next(state: State, now: float) -> tuple[Command, ...]:
    if state.phase is not Phase.active or state.gates:
        return ()
    if not state.tasks:
        return _plan(state)
    if question := _unasked_plan(state) or _dispute(state):
        return (question,)
    if state.colliding:
        return (Record(conflict_tasks.resolution(state, next(iter(state.colliding)))),)
    if freed := conflict_tasks.freed(state):
        return (Record(freed),)
    if longer := sprints.staffing(state):
        return (Record(longer),)
    if heard := uptake(state):
        return (Record(heard),)
    if state.landing:
        return (Land(next(iter(state.landing))),)
    if news := _of_dependencies(state):
        return (Record(news),)
    return _next_of_wave(state, now) if state.session.engine is Engine.wave else _next_of_beat(state, now)


def _plan(state: State) -> tuple[Command, ...]:
    if not state.pipeline:
        answer = state.answers.get(PIPELINE_GATE)
        recommended = state.session.analysis.pipeline
        if state.policy.auto or answer == APPROVE:
            return (Record((events.PipelineChosen(recommended),)),)
        if answer:
            return (Record((events.PipelineChosen(Pipeline(answer)),)),)
        return (Record((events.GateOpened(pipeline_gate(state)),)),)
    tasks = pipelines.first_tasks(state.pipeline, state.scope, state.session.engine)
    return (Record((events.TasksAdded(tasks),)),)


def _unasked_plan(state: State) -> Command | None:
    """The question whether the breakdown is right, before the first task starts; a no ends the session."""
    if state.policy.auto:
        return None
    match state.answers.get(PLAN_GATE):
        case None:
            return Record((events.GateOpened(plan_gate(state)),))
        case "reject":
            return Record((events.Finished(events.Finished.WHY_REJECTED),))
        case _:
            return None


def _dispute(state: State) -> Command | None:
    """The question what to do when the team does not agree, even with nobody to ask, or lacks something."""
    if unanswered := next(iter(state.disputes.items()), None):
        asks = capability_gaps.gate if capability_gaps.is_gap(unanswered[0]) else consensus.gate
        return Record((events.GateOpened(asks(*unanswered)),))
    ending = None if state.running else consensus.stopped(state.answers) or capability_gaps.stopped(state.answers)
    return Record(ending) if ending else None


def _of_dependencies(state: State) -> tuple[events.Event, ...]:
    """What follows from looks at packages: updates for the backlog, and for a blocked task a question."""
    if found := tuple(external_packages.updates(state.dependencies)):
        return tuple(map(external_packages.UpdateNeeded, found))
    for task in state.dependencies.blocked:
        if problems := state.dependencies.unsolved(task):
            return _blocked(state, task, problems)
    return ()


def _blocked(state: State, task: TaskId, problems: tuple[external_packages.Checked, ...]) -> tuple[events.Event, ...]:
    """Overriding is the default: with nobody to ask, the work goes on with a warning."""
    gate = f"dependencies-{task}"
    overridden = external_packages.DependenciesOverridden(task, problems)
    match state.answers.get(gate):
        case external_packages.OVERRIDE:
            return events.GateAnswered(gate, ""), overridden
        case external_packages.RECHECK:
            return events.GateAnswered(gate, ""), external_packages.DependenciesRechecked(task)
        case _ if state.policy.auto:
            return (overridden,)
        case _:
            words = "; ".join(problem.words for problem in problems)
            question = f"{task} needs packages that are not there as declared: {words}. Go on without, or look again?"
            choices = (external_packages.OVERRIDE, external_packages.RECHECK)
            return (events.GateOpened(events.Gate(id=gate, question=question, choices=choices)),)


def _next_of_beat(state: State, now: float) -> tuple[Command, ...]:
    if skips := _skips(state, state.doomed):
        return (Record(skips),)
    if verdict := critic.consequences(state):
        return (Record(verdict),)
    if not any(state.open_in_wave.values()):
        return (_finish(state),)
    ready = [state.tasks[task] for task in state.ready]
    if spared := _spared(state, ready):
        return (Record(spared),)
    if controller := next((task for task in ready if task.role is Role.gc_controller), None):
        return (Record(critic.decided_by(state, controller)),)
    return _starts(state, state.ready, now, state.policy.attempt_limit)


def _spared(state: State, ready: Iterable[Task]) -> tuple[events.NothingLeft, ...]:
    """Rows that have come to their turn without anything to do: no agent is asked for them."""
    return tuple(events.NothingLeft(task.id) for task in ready if sprints.has_nothing_left(state, task))


def _next_of_wave(state: State, now: float) -> tuple[Command, ...]:
    if not state.wave:
        following = min((wave for wave, count in state.open_in_wave.items() if count), default=None)
        return (_finish(state) if following is None else Record((events.WaveStarted(following),)),)
    if skips := _skips(state, (task for task in state.doomed if state.tasks[task].wave == state.wave)):
        return (Record(skips),)
    if _goes_back(state):
        return (Record((events.WaveMerged(state.wave),)),)
    if state.open_in_wave.get(state.wave):
        return _within_wave(state, now)
    return _end_of_wave(state)


def _goes_back(state: State) -> bool:
    """A fix of work that an earlier wave did may belong into a wave before this one."""
    return not state.running and any(count and wave < state.wave for wave, count in state.open_in_wave.items())


def _within_wave(state: State, now: float) -> tuple[Command, ...]:
    ready = [state.tasks[task] for task in state.ready if state.tasks[task].wave == state.wave]
    left = state.wave_started_at + state.policy.wave_limit - now
    if left <= 0 and ready:
        error = f"wave {state.wave} had used up its {state.policy.wave_limit:g} s before it could start"
        return (Record(tuple(events.TaskFailed(task.id, error) for task in ready)),)
    if spared := _spared(state, ready):
        return (Record(spared),)
    batch = [task.id for task in ready if task.mode is Mode.csv_wave and task.role is not Role.gc_controller]
    if batch or any(state.tasks[task].mode is Mode.csv_wave for task in state.running):
        return _starts(state, batch, now, min(state.policy.attempt_limit, left))
    if state.running or not ready:
        return ()
    return _interactive(state, min(ready, key=lambda task: state.order[task.id]), now)


def _interactive(state: State, task: Task, now: float) -> tuple[Command, ...]:
    if task.role is Role.gc_controller:
        return (Record(critic.decided_by(state, task)),)
    return _starts(state, [task.id], now, state.policy.attempt_limit)


def _end_of_wave(state: State) -> tuple[Command, ...]:
    gate = f"wave-{state.wave}"
    failed = _failed_wholly(state)
    if failed and not state.policy.auto:
        match state.answers.get(gate):
            case None | "":
                question = (
                    f"Every agent of wave {state.wave} failed ({', '.join(failed)}). Try again, or go on without?"
                )
                return (Record((events.GateOpened(events.Gate(id=gate, question=question, choices=(ABORT, RETRY))),)),)
            case "retry":
                answered = events.GateAnswered(gate, "")
                return (Record((answered, events.TasksReset(tuple(failed)))),)
            case _:
                pass
    if verdict := critic.consequences(state):
        return (Record(verdict),)
    return (Record((events.WaveMerged(state.wave),)),)


def _failed_wholly(state: State) -> list[TaskId]:
    """The tasks of a wave in which there were attempts, and every task that was tried has failed."""
    tried = [task.id for task, progress in state.rows() if task.wave == state.wave and progress.number]
    failed = [task for task in tried if state.progress[task].status is Status.failed]
    return failed if len(failed) == len(tried) else []


def _finish(state: State) -> Record:
    """The end of a sprint or of the session, once the tests were run on what there is in the end."""
    if stale := _outdated_verification(state):
        return Record((events.TasksReset((stale,)),))
    if following := sprints.transition(state):
        return Record(following)
    if state.verifications and not _is_tested(state):
        return Record(
            (
                events.Warned("work landed after the tests were last run; what is on the branch is untested"),
                events.Finished(),
            )
        )
    return Record((events.Finished(),))


def _outdated_verification(state: State) -> TaskId | None:
    """The test run to repeat: work landed after it, such as the fix of something that only a review had found.

    In a table made by hand, nothing is run that is not asked for; and a run that failed once is not repeated for ever.
    """
    if state.session.by_hand or _is_tested(state):
        return None
    last = next((task.id for task in reversed(state.of_role(Role.tester, state.sprint))), None)
    if last is None or last not in state.verifications or state.progress[last].status is not Status.completed:
        return None
    return last if state.verifications[last].pass_rate is not None else None


def _is_tested(state: State) -> bool:
    measured = (state.progress[task] for task in state.verifications)
    done = (progress for progress in measured if progress.status is Status.completed)
    return any(state.tip in {progress.base, progress.commit} for progress in done)


def _skips(state: State, doomed: Iterable[TaskId]) -> tuple[events.TaskSkipped, ...]:
    return tuple(events.TaskSkipped(task, _skip_reason(state, task)) for task in doomed)


def _skip_reason(state: State, task: TaskId) -> str:
    culprits = [dep for dep in state.tasks[task].deps if state.progress[dep].status in LOST]
    return f"Dependency failed or skipped: {', '.join(culprits)}"


def _starts(state: State, candidates: Collection[TaskId], now: float, limit: float) -> tuple[Command, ...]:
    """As many starts as there are free places, in the order of the table; or the time to wait for."""
    unpaid = budget.unpaid(state, candidates)
    if unpaid and len(unpaid) == len(candidates):
        return _without_budget(state, unpaid)
    choices = providers.choices(state, (task for task in candidates if task not in unpaid), now)
    places = state.policy.concurrency - len(state.running)
    possible = [task for task, choice in choices.items() if choice.not_before <= now]
    if possible:
        first = heapq.nsmallest(places, possible, key=state.order.__getitem__) if places > 0 else []
        return tuple(_start(state, {task: choices[task].agent for task in first}, limit))
    return (Wait(min(choice.not_before for choice in choices.values())),) if choices else ()


def _without_budget(state: State, unpaid: Mapping[TaskId, str]) -> tuple[Command, ...]:
    """Lets running agents finish, then asks whether to spend more; with nobody to ask, the rest fails."""
    if state.running:
        return ()
    if state.policy.auto or state.answers.get(BUDGET_GATE) == STOP:
        return (Record(tuple(events.TaskFailed(task, why) for task, why in unpaid.items())),)
    if state.answers.get(BUDGET_GATE) == GO_ON:
        return (Record((events.PolicyChanged(budget.lifted(state.policy)),)),)
    why = "; ".join(dict.fromkeys(unpaid.values()))
    gate = events.Gate(id=BUDGET_GATE, question=f"Stop here, or go on without a budget? {why}", choices=(STOP, GO_ON))
    return (Record((events.GateOpened(gate),)),)


def _start(state: State, agents: Mapping[TaskId, str], limit: float) -> Iterator[Start]:
    for task, agent in agents.items():
        yield Start(task=task, number=state.progress[task].number + 1, limit=limit, agent=agent)
