"""The rules of the development team: what its results mean, and what follows when its tasks end."""

from collections.abc import Iterator, Sequence

from iterdev.core.collaboration import feedback
from iterdev.core.results import Discovery, shortened
from iterdev.core.rules.team_rules import Interpretation
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import (
    Event,
    Finished,
    Gate,
    GateOpened,
    TasksAdded,
    TasksReset,
    UpdateRequested,
    Warned,
)
from iterdev.core.session.gates import UnverifiedChoice
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId
from iterdev.teams.development import critic, events, pipelines, sprints
from iterdev.teams.development.results import Design, Development, Review
from iterdev.teams.development.roles import Pipeline, Role, fields
from iterdev.teams.development.state import Verdict, development, rows_of

PIPELINE_GATE = "pipeline"
UNVERIFIED_GATE = "unverified"
UNTESTED = "work landed after the tests were last run; what is on the branch is untested"
APPROVE = "approve"


def plan(state: State) -> tuple[Event, ...]:
    """The pipeline that was named, or recommended and approved, and then its first tasks."""
    part = development(state)
    if part.pipeline:
        return (TasksAdded(pipelines.first_tasks(part.pipeline, state.scope, state.session.engine)),)
    match state.gates.answer(PIPELINE_GATE):
        case _ if state.policy.auto:
            return (events.PipelineChosen(part.analysis.pipeline),)
        case None:
            return (GateOpened(pipeline_gate(state)),)
        case choice:
            return (events.PipelineChosen(part.analysis.pipeline if choice == APPROVE else Pipeline(choice)),)


def update_tasks(state: State, asked: UpdateRequested) -> tuple[Task, ...]:
    """A verification that is still to come looks at the update too."""
    part = development(state)
    pipeline = part.pipeline or part.analysis.pipeline
    new = pipelines.TaskFactory(
        pipeline, state.scope, sprint=part.sprint, round_=part.round, existing=state.tasks.plan.keys()
    )
    awaited = any(not state.tasks.status(task.id).is_final for task in state.tasks.of_role(Role.tester))
    return pipelines.update_tasks(new, f"Bring in {asked.branch} ({asked.commit[:12]})", verify=not awaited)


def before_work(state: State) -> tuple[Event, ...]:
    """More tasks for a long breakdown, titles after its items, or what became of feedback that was taken up."""
    planned = sprints.additional_tasks(state) or sprints.titled_tasks(state)
    if planned or not any(item.is_open for item in state.feedback):
        return planned
    return *_planned_feedback(state), *_addressed_feedback(state)


def _planned_feedback(state: State) -> Iterator[feedback.FeedbackPlanned]:
    """The feedback that open tasks take up; one that is over does not answer what the user says again."""
    for name, tasks in _plans(state).items():
        item = feedback.by_id(state.feedback, name)
        open_ = any(not state.tasks.status(task).is_final for task in tasks)
        if item and item.is_open and open_ and item.planned_in != tasks:
            yield feedback.FeedbackPlanned(feedback_id=name, tasks=tasks)


def _plans(state: State) -> dict[str, tuple[TaskId, ...]]:
    """The developers' rows of the sprint by the feedback that their items name."""
    sprint = development(state).sprint
    design = sprints.design_of(state, sprint)
    if design is None or not any(item.feedback for item in design.tasks):
        return {}
    plans: dict[str, tuple[TaskId, ...]] = {}
    for task in rows_of(state, Role.developer, sprint):
        for name in dict.fromkeys(name for item in sprints.items_of(state, task) for name in item.feedback):
            plans[name] = (*plans.get(name, ()), task.id)
    return plans


def _addressed_feedback(state: State) -> Iterator[feedback.FeedbackMoved]:
    for item in state.feedback:
        done = [state.tasks.status(task) is Status.completed for task in item.planned_in]
        if item.is_open and done and all(done):
            yield feedback.FeedbackMoved(feedback_id=item.feedback_id, status=feedback.FeedbackStatus.addressed)


def interpret(state: State, task: Task, success: Success) -> Interpretation:
    part = development(state)
    match success.result:
        case Design() as design:
            revised = sprints.design_of(state, fields(task).sprint) is not None
            accepted = events.DesignAccepted(task=task.id, design=design, revised=revised)
            return Interpretation(events=(accepted, *_unknown_feedback(state, task.id, design)))
        case Review() as review:
            lacking = [Warned(f"{task.id}: {review.omissions}, although it was asked for")] * bool(review.omissions)
            return Interpretation(events=(critic.scored(task.id, review, part.thresholds), *lacking))
        case Development() as work:
            return Interpretation(dependencies=work.external_dependencies, resolved_debt=work.resolved_debt)
        case _ if measured := success.measured:
            tested = success.commit or state.attempts.running[task.id].base
            run = critic.measured(task.id, measured, tested, part.thresholds)
            baseline = (events.BaselineMeasured(measured.baseline, state.branch.base),) if measured.baseline else ()
            return Interpretation(events=(run, *baseline), error=critic.patch_error(task, run, part.thresholds))
        case _:
            return Interpretation()


def _unknown_feedback(state: State, task: TaskId, design: Design) -> Iterator[Warned]:
    for name in (name for item in design.tasks for name in item.feedback):
        if feedback.by_id(state.feedback, name) is None:
            yield Warned(f'{task} takes up the feedback "{name}", which does not exist')


def completion_error(state: State, task: TaskId) -> str:
    part = development(state)
    run = part.test_runs.get(task)
    return critic.patch_error(state.tasks.plan[task], run, part.thresholds) if run else ""


def finish(state: State) -> tuple[Event, ...]:
    """The end of a sprint or of the session, once the tests were run on what there is in the end."""
    if raised := critic.follow_up(state):
        return raised
    if stale := _outdated_verification(state):
        return (TasksReset((stale,)),)
    if following := sprints.transition(state):
        return following
    if question := _unverified_patch(state):
        return (GateOpened(question),)
    return (Finished(),)


def _unverified_patch(state: State) -> Gate | None:
    """The question whether work counts as done that could not be verified: in a patch nobody reviewed it either.

    It is asked once for each state of the branch. In auto mode the session ends as not verified.
    """
    run = last_test_run(state)
    if state.policy.auto or run is None or run.verification.pass_rate is not None:
        return None
    if development(state).pipeline is not Pipeline.patch or state.branch.tip == state.branch.base:
        return None
    question = (
        f"Nothing could be verified: {run.verification.note} Does the work count as done all the same? "
        f"To have it verified, set `test` or `setup` under [project] in iterdev.toml, then: iterdev retry"
    )
    gate = Gate(kind=UNVERIFIED_GATE, subject=state.branch.tip[:12], question=question, choices=tuple(UnverifiedChoice))
    return None if state.gates.answer(gate.id) else gate


def shortcomings(state: State) -> tuple[str, ...]:
    """Why the session is no success although its tasks are completed, one sentence each."""
    part, run = development(state), last_test_run(state)
    forced = [f"convergence was forced in sprint-{number}" for number in part.forced]
    if run is None:
        return tuple(forced)
    found = run.verification
    if found.pass_rate is None:
        accepted = state.gates.chosen(UNVERIFIED_GATE, UnverifiedChoice.accept)
        return (*forced, *([] if accepted else [f"nothing could be verified: {found.note}"]))
    if run.failed and not forced:
        return (critic.failing_tests(found) or f"the tests fail: {critic.named(found.failures) or found.note}",)
    # A table made by hand says itself what is tested.
    return (*forced, *([] if state.session.by_hand or is_tested(state) else [UNTESTED]))


def last_test_run(state: State) -> events.TestsMeasured | None:
    """The newest run of the tests that still counts."""
    runs, progress = development(state).test_runs, state.tasks.progress
    ended = [task for task in runs if progress[task].status.is_final]
    return runs[max(ended, key=lambda task: progress[task].ended_at or 0)] if ended else None


def _outdated_verification(state: State) -> TaskId | None:
    """The test run to repeat: work landed after it, such as the fix of something that only a review had found.

    In a table made by hand, only what it asks for is run; a run that failed or measured nothing is not repeated.
    """
    if state.session.by_hand or is_tested(state):
        return None
    part = development(state)
    rows = rows_of(state, Role.tester, part.sprint)
    run = part.test_runs.get(rows[-1].id) if rows else None
    if run is None or run.verification.pass_rate is None:
        return None
    return run.task if state.tasks.status(run.task) is Status.completed else None


def is_tested(state: State) -> bool:
    return any(run.commit == state.branch.tip for run in development(state).test_runs.values())


def rolled_back(before: State, now: State) -> tuple[Event, ...]:
    then, part = development(before), development(now)
    judged = (task for task in part.judged if task in before.tasks.plan)
    unjudged = tuple(task for task in judged if task not in then.judged)
    return (events.SprintRestored(sprint=then.sprint, rounds=then.rounds, forced=then.forced, unjudged=unjudged),)


def discoveries(state: State, recorded: Sequence[Event]) -> list[tuple[TaskId, Discovery]]:
    """What was decided after a round; round 0 is the first work. One decision for a round: a fix round goes first."""
    raised = [event for event in recorded if isinstance(event, events.RoundStarted | events.ConvergenceForced)]
    passed = [event.task for event in recorded if isinstance(event, events.ReviewPassed)]
    revised = {event.raised_by[0] for event in raised if isinstance(event, events.RoundStarted)}
    found = []
    for task in (*(event.raised_by[0] for event in raised), *passed):
        verdict, own = development(state).verdicts.get(task, Verdict()), fields(state.tasks.plan[task])
        data: dict[str, object] = {
            "sprint": own.sprint,
            "round": own.round,
            "signal": "REVISION" if task in revised else "CONVERGE",
            "critical_count": critic.critical_count(verdict.review) if verdict.review else 0,
            "score": verdict.score,
        }
        found.append((task, Discovery("gc_decision", data)))
    return found


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


def pipeline_gate(state: State) -> Gate:
    analysis = development(state).analysis
    tasks = pipelines.first_tasks(analysis.pipeline, state.scope, state.session.engine)
    roles = ", ".join(dict.fromkeys(task.role for task in tasks if task.role != Role.gc_controller))
    question = (
        f'"{shortened(state.session.requirement)}": the {analysis.pipeline} pipeline is recommended '
        f"(score {analysis.score}, {_size(analysis.files)}, complexity {analysis.complexity.level}; roles: {roles})"
    )
    return Gate(kind=PIPELINE_GATE, question=question, choices=(APPROVE, *Pipeline))


def _size(files: int | None) -> str:
    return "number of files unknown" if files is None else f"about {files} file{'' if files == 1 else 's'}"


def plan_note(state: State) -> str:
    several = development(state).pipeline is Pipeline.multi_sprint and not state.session.by_hand
    return " This is the first sprint; the design says how many there are." if several else ""
