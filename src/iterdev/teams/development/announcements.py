"""What the development team announces on the message bus."""

from iterdev.core.collaboration.messages import COORDINATOR, COORDINATOR_TYPES, STATE_UPDATE, Announced
from iterdev.core.formatting import counted, percent
from iterdev.core.rules.announcements import coordinator, end_of_worker, step_of_worker, worker
from iterdev.core.session import events
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.core.verification import TEST_FIXES
from iterdev.teams.development import critic
from iterdev.teams.development import events as team_events
from iterdev.teams.development.events import DesignAccepted, ReviewScored, TestsMeasured
from iterdev.teams.development.roles import ROLES, WORKERS, Part, Role, Signal, fields
from iterdev.teams.development.state import Verdict, development

MESSAGE_TYPES: dict[str, tuple[str, ...]] = {
    COORDINATOR: ("sprint_started", "gc_loop_trigger", "sprint_complete", *COORDINATOR_TYPES),
    Role.architect: ("design_ready", "design_revision", "error"),
    Role.developer: ("dev_complete", "dev_progress", "error"),
    Role.tester: ("verify_passed", "verify_failed", "fix_required", "error"),
    Role.reviewer: ("review_passed", "review_revision", "review_critical", "error"),
}
"""Types that belong to one sender; any other type, such as `progress` or `blocker`, is open to all."""


def announce(event: Event, state: State) -> Announced | None:
    match event:
        case DesignAccepted() | ReviewScored() | TestsMeasured() | events.TaskReported():
            return _work(state, event.task)
        case events.AttemptEnded(task=task, outcome=events.Done()):
            # For the other roles, an event with the result follows.
            return _work(state, task) if state.tasks.plan[task].role == Role.developer else None
        case events.AttemptEnded(
            task=task, outcome=events.Interrupted(commit=kept) | events.Limited(commit=kept), status=Status.pending
        ):
            # An attempt that does not count is announced if a developer left something.
            if kept is None or state.tasks.plan[task].role != Role.developer:
                return None
            text = f"{task} was interrupted, and its work so far is kept as {kept[:7]}"
            return worker(state, task, "dev_progress", text, ref=kept)
        case events.TaskCompleted(task) if fields(state.tasks.plan[task]).part is Part.rest:
            text = f"nothing of the breakdown is left for {task}, the pipeline goes on"
            return coordinator("task_unblocked", text, task=task)
        case team_events.RoundStarted(number=number, raised_by=raised_by, why=why) if raised_by:
            text = f"fix round {number}: {why}"
            return coordinator("gc_loop_trigger", text, round=number, raised_by=list(raised_by))
        case team_events.ReviewPassed(task):
            return coordinator("task_unblocked", f"{task} passed, the pipeline goes on", task=task)
        case team_events.ConvergenceForced(sprint=sprint, problems=problems, rounds=rounds):
            left = f"{counted(len(problems), 'problem')} left"
            text = f"convergence of sprint-{sprint} forced after {counted(rounds, 'round')}, {left}"
            return coordinator("task_unblocked", text, forced=True, problems=list(problems))
        case team_events.SprintStarted(sprint, goal):
            return coordinator("sprint_started", f"sprint-{sprint} started: {goal}")
        case team_events.SprintEnded(sprint, record):
            text = f"sprint-{sprint} complete: {counted(record.velocity, 'task')}, {record.expected} planned"
            return coordinator("sprint_complete", text)
        case _:
            return _session(event, state)


def _work(state: State, task: TaskId) -> Announced:
    progress, role = state.tasks.progress[task], state.tasks.plan[task].role
    text = f"{task} {_news(state, task)}"
    if state.lifecycle.worker == role and ROLES[role].loops:
        return step_of_worker(state, task, text)
    return worker(state, task, _kind(state, task), text, **({"ref": progress.commit} if progress.commit else {}))


def _news(state: State, task: TaskId) -> str:
    part, findings = development(state), state.tasks.progress[task].findings
    if verdict := part.verdicts.get(task):
        return f"scored {verdict.score}: {findings}"
    if run := part.test_runs.get(task):
        rate = run.verification.pass_rate
        return f"could not verify: {findings}" if rate is None else f"pass rate {percent(rate):.1f}%: {findings}"
    return f"completed: {findings}"


def _kind(state: State, task: TaskId) -> str:
    part = development(state)
    match state.tasks.plan[task].role:
        case Role.architect:
            return "design_revision" if task in part.revised else "design_ready"
        case Role.developer:
            return "dev_complete"
        case Role.tester:
            return _verify_kind(part.test_runs.get(task))
        case Role.reviewer:
            verdict = part.verdicts.get(task, Verdict())
            if verdict.review and critic.critical_count(verdict.review):
                return "review_critical"
            return "review_revision" if verdict.signal is Signal.revision_needed else "review_passed"
        case _:
            return STATE_UPDATE


def _verify_kind(run: TestsMeasured | None) -> str:
    """A verification fails when the agent gives up or nothing could be measured; a fix is required after all tries."""
    if run is None or (run.verification.pass_rate is not None and not run.failed):
        return "verify_passed"
    return "fix_required" if run.iterations >= TEST_FIXES else "verify_failed"


def _session(event: Event, state: State) -> Announced | None:
    part = development(state)
    match event:
        case team_events.TeamStarted(analysis=analysis, pipeline=pipeline):
            data = {"pipeline_mode": pipeline or analysis.pipeline, "pipeline_stages": list(WORKERS)}
            data |= {"roles": [COORDINATOR, *WORKERS], "team_name": state.session.team_name}
            return coordinator(STATE_UPDATE, f"session {state.session.id} started", **data)
        case events.TasksAdded(tasks) if len(tasks) == len(state.tasks.plan):
            return coordinator("sprint_started", f"sprint-{part.sprint} started: {state.session.requirement}")
        case team_events.PipelineChosen(pipeline) if pipeline is not part.analysis.pipeline:
            return coordinator(STATE_UPDATE, f"the {pipeline} pipeline was chosen", pipeline_mode=pipeline)
        case events.WorkerEnded(role, tasks):
            return _worker_ended(state, role, tasks)
        case events.Finished(why) if why:
            return coordinator("shutdown", f"ended before sprint-{part.sprint} was complete: {why}")
        case events.Finished() if part.sprints:
            return coordinator("shutdown", f"{counted(len(part.sprints), 'sprint')} complete")
        case events.Finished():
            return coordinator("sprint_complete", f"sprint-{part.sprint} complete")
        case _:
            return None


def _worker_ended(state: State, role: str, tasks: tuple[TaskId, ...]) -> Announced | None:
    """A worker that loops says at its end what it did; any other one has said it with its only task."""
    return end_of_worker(state, role, tasks, "dev_complete") if tasks and ROLES[role].loops else None
