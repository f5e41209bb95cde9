"""The rules of the development team: what its results mean, and what follows when its tasks end."""

from collections.abc import Iterator, Sequence

from iterdev.core.collaboration import feedback
from iterdev.core.results import Discovery
from iterdev.core.rules.team_rules import Interpretation
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, Finished, Gate, GateOpened, TasksAdded, TasksReset, Warned
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId
from iterdev.teams.development import critic, pipelines, sprints
from iterdev.teams.development.events import (
    BaselineMeasured,
    ConvergenceForced,
    DesignAccepted,
    PipelineChosen,
    ReviewPassed,
    RoundStarted,
    SprintRestored,
)
from iterdev.teams.development.feedback_planning import uptake
from iterdev.teams.development.fields import Pipeline, Role, fields
from iterdev.teams.development.results import Design, Development, Review
from iterdev.teams.development.state import development, rows_of

NOTHING_LEFT = "nothing of the breakdown was left to do"


def plan(state: State) -> tuple[Event, ...]:
    """The pipeline that was named, or recommended and approved, and then its first tasks."""
    part = development(state)
    if part.pipeline:
        return (TasksAdded(pipelines.first_tasks(part.pipeline, state.scope, state.session.engine)),)
    match state.gates.answer(PIPELINE_GATE):
        case _ if state.policy.auto:
            return (PipelineChosen(part.analysis.pipeline),)
        case None:
            return (GateOpened(pipeline_gate(state)),)
        case choice:
            return (PipelineChosen(part.analysis.pipeline if choice == APPROVE else Pipeline(choice)),)


def before_work(state: State) -> tuple[Event, ...]:
    return sprints.staffing(state) or uptake(state)


def interpret(state: State, task: Task, success: Success) -> Interpretation:
    part = development(state)
    match success.result:
        case Design() as design:
            revised = sprints.design_of(state, fields(task).sprint) is not None
            accepted = DesignAccepted(task=task.id, design=design, revised=revised)
            return Interpretation(events=(accepted, *_unknown_feedback(state, task.id, design)))
        case Review() as review:
            return Interpretation(events=(critic.scored(task.id, review, part.thresholds),))
        case Development() as work:
            return Interpretation(dependencies=work.external_dependencies, resolved_debt=work.resolved_debt)
        case _ if measured := success.measured:
            tested = critic.measured(task.id, measured.verification, measured.iterations, part.thresholds)
            baseline = (BaselineMeasured(measured.baseline),) if measured.baseline else ()
            error = critic.patch_error(task, measured.verification, failed=tested.failed, thresholds=part.thresholds)
            return Interpretation(events=(tested, *baseline), error=error)
        case _:
            return Interpretation()


def _unknown_feedback(state: State, task: TaskId, design: Design) -> Iterator[Warned]:
    for name in (name for item in design.tasks for name in item.feedback):
        if feedback.by_id(state.feedback, name) is None:
            yield Warned(f'{task} takes up the feedback "{name}", which does not exist')


def completion_error(state: State, task: TaskId) -> str:
    part = development(state)
    run = part.test_runs.get(task)
    if run is None:
        return ""
    return critic.patch_error(state.tasks.plan[task], run.verification, failed=run.failed, thresholds=part.thresholds)


def finish(state: State) -> tuple[Event, ...]:
    """The end of a sprint or of the session, once the tests were run on what there is in the end."""
    if stale := _outdated_verification(state):
        return (TasksReset((stale,)),)
    if following := sprints.transition(state):
        return following
    if development(state).test_runs and not _is_tested(state):
        return (
            Warned("work landed after the tests were last run; what is on the branch is untested"),
            Finished(),
        )
    return (Finished(),)


def _outdated_verification(state: State) -> TaskId | None:
    """The test run to repeat: work landed after it, such as the fix of something that only a review had found.

    In a table made by hand, only what the table asks for is run; and a run that failed once is not repeated for ever.
    """
    if state.session.by_hand or _is_tested(state):
        return None
    part = development(state)
    last = next((task.id for task in reversed(rows_of(state, Role.tester, part.sprint))), None)
    run = part.test_runs.get(last) if last else None
    if last is None or run is None or state.tasks.status(last) is not Status.completed:
        return None
    return last if run.verification.pass_rate is not None else None


def _is_tested(state: State) -> bool:
    runs = (state.tasks.progress[task] for task in development(state).test_runs)
    done = (progress for progress in runs if progress.status is Status.completed)
    return any(state.branch.tip in {progress.base, progress.commit} for progress in done)


def rolled_back(before: State, now: State) -> tuple[Event, ...]:
    then, part = development(before), development(now)
    judged = (task for task in part.judged if task in before.tasks.plan)
    return (
        SprintRestored(
            sprint=then.sprint,
            rounds=then.rounds,
            forced=then.forced,
            unjudged=tuple(task for task in judged if task not in then.judged),
        ),
    )


def discoveries(state: State, events: Sequence[Event]) -> list[tuple[TaskId, Discovery]]:
    """What was decided after a round; round 0 is the first work. One decision for a round: a fix round goes first."""
    judged = [event for event in events if isinstance(event, RoundStarted | ConvergenceForced | ReviewPassed)]
    return [_gc_decision(state, event) for event in sorted(judged, key=lambda one: isinstance(one, ReviewPassed))]


def _gc_decision(state: State, event: RoundStarted | ConvergenceForced | ReviewPassed) -> tuple[TaskId, Discovery]:
    task = event.task if isinstance(event, ReviewPassed) else event.raised_by[0]
    verdict = development(state).verdicts.get(task)
    own = fields(state.tasks.plan[task])
    data: dict[str, object] = {
        "sprint": own.sprint,
        "round": own.round,
        "signal": "REVISION" if isinstance(event, RoundStarted) else "CONVERGE",
        "critical_count": critic.critical_count(verdict.review) if verdict and verdict.review else 0,
        "score": verdict.score if verdict else None,
    }
    return task, Discovery("gc_decision", data)


def has_output(state: State, task: Task) -> bool:
    """Whether what an attempt left still counts. A verdict is one on the work as it is now."""
    part, progress = development(state), state.tasks.progress[task.id]
    is_newest = state.branch.tip in {progress.base, progress.commit}
    match task.role:
        case Role.architect:
            return task.id in part.designs
        case Role.developer:
            return progress.commit is not None and task.id not in state.conflicts.by_task
        case Role.tester:
            run = part.test_runs.get(task.id)
            return is_newest and run is not None and not run.failed
        case Role.reviewer:
            return is_newest and task.id in part.reviews
        case _:
            return False


PIPELINE_GATE = "pipeline"
APPROVE = "approve"


def pipeline_gate(state: State) -> Gate:
    analysis = development(state).analysis
    tasks = pipelines.first_tasks(analysis.pipeline, state.scope, state.session.engine)
    roles = ", ".join(dict.fromkeys(task.role for task in tasks if task.role != Role.gc_controller))
    question = (
        f'"{state.session.requirement}": the {analysis.pipeline} pipeline is recommended '
        f"(score {analysis.score}, complexity {analysis.complexity.level}; roles: {roles})"
    )
    return Gate(kind=PIPELINE_GATE, question=question, choices=(APPROVE, *Pipeline))


def plan_note(state: State) -> str:
    several = development(state).pipeline is Pipeline.multi_sprint and not state.session.by_hand
    return "; this is the first sprint, and the design says how many there are" if several else ""
