"""Which message each event puts on the bus: who tells whom what, in one sentence that starts with the role."""

import msgspec

from iterdev.core.session import events
from iterdev.core.session.state import Message, State
from iterdev.core.task_description import has_inner_loop
from iterdev.core.types import Role, Severity, Status, TaskId
from iterdev.teams.development import critic

COORDINATOR = "coordinator"
EVERYBODY = "all"


def announcement(event: events.Event, state: State, at: float) -> Message | None:
    """The message that the event is worth, seen from the state after it."""
    match event:
        # At once, because a long journal is made of them.
        case events.AttemptStarted():
            return None
        case events.AttemptEnded() | events.Landed():
            return _of_work(event, state, at)
        case _:
            speakers = (_of_work, _of_rounds, _of_rollbacks, _of_session)
            return next((message for speaker in speakers if (message := speaker(event, state, at))), None)


def _of_work(event: events.Event, state: State, at: float) -> Message | None:
    match event:
        case events.AttemptEnded(outcome=events.Done() as done):
            return _worked(state, event.task, done, at)
        case events.TaskReported(task=task, findings=findings):
            left = events.Done(
                findings=findings, review=state.reviews.get(task), verification=state.verifications.get(task)
            )
            return _worked(state, task, left, at)
        case events.AttemptEnded(task, _, _, events.Failed(error=error)) | events.TaskFailed(task, error):
            became = "needs another agent" if state.progress[task].status is Status.pending else "failed"
            return _worker(state, task, at, "error", f"{task} {became}: {error}")
        case events.AttemptEnded(task, _, _, events.Interrupted(commit=kept) | events.Limited(commit=kept)):
            return _interrupted(state, task, kept, at)
        case events.AttemptEnded(task, _, _, events.Unmet()):
            return _unmet(state, task, at)
        case events.Landed(task) | events.LandingRefused(task) if task in state.colliding:
            return _collided(state, task, at)
        case events.LandingRefused(task, files):
            return _worker(state, task, at, "error", f"{task} does not merge with what landed: {', '.join(files)}")
        case events.ConflictResolved(task=task, strategy=strategy, fix=fix):
            data: dict[str, object] = {"task": task, "strategy": strategy, "resolved_by": fix}
            how = f"is to be resolved by {fix}" if fix else f"is resolved with {strategy}"
            return _coordinator(at, "conflict_resolved", f"the conflict of {task} {how}", data)
        case _:
            return None


def _of_rounds(event: events.Event, state: State, at: float) -> Message | None:
    match event:
        case events.SprintStarted(sprint, goal):
            return _coordinator(at, "sprint_started", f"sprint-{sprint} started: {goal}")
        case events.SprintEnded(sprint, record):
            text = f"sprint-{sprint} complete: {record.velocity} tasks, {record.expected} were planned"
            return _coordinator(at, "sprint_complete", text)
        case events.NothingLeft(task):
            text = f"nothing of the breakdown is left for {task}, the pipeline goes on"
            return _coordinator(at, "task_unblocked", text, {"task": task})
        case events.RoundStarted(number=number, raised_by=raised_by, why=why):
            data: dict[str, object] = {"round": number, "raised_by": list(raised_by)}
            return _coordinator(at, "gc_loop_trigger", f"fix round {number}: {why}", data)
        case events.ReviewPassed(task, _):
            return _coordinator(at, "task_unblocked", f"{task} passed, the pipeline goes on", {"task": task})
        case events.ConvergenceForced(sprint=sprint, problems=problems):
            used = state.rounds.get(sprint, 0)
            text = f"convergence of sprint-{sprint} forced after {used} rounds, {len(problems)} problems left"
            return _coordinator(at, "task_unblocked", text, {"forced": True, "problems": list(problems)})
        case _:
            return None


def _of_rollbacks(event: events.Event, _: State, at: float) -> Message | None:
    match event:
        case events.RollbackStarted(target=target, snapshot=snapshot, removed=removed, rows=rows, reason=reason):
            undone = [*(row.id for row in rows), *removed]
            data: dict[str, object] = {"snapshot_id": snapshot, "undone": undone, "reason": reason}
            because = f" because {reason}" if reason else ""
            text = f"going back to before {target}{because}; undone: {', '.join(undone)}"
            return _coordinator(at, "rollback_initiated", text, data)
        case events.RollbackCompleted(snapshot):
            return _coordinator(at, "rollback_completed", f"went back to {snapshot}", {"snapshot_id": snapshot})
        case events.RollbackFailed(snapshot, error):
            text = f"could not go back to {snapshot}: {error}"
            return _coordinator(at, "rollback_failed", text, {"snapshot_id": snapshot, "error": error})
        case _:
            return None


def _of_session(event: events.Event, state: State, at: float) -> Message | None:
    match event:
        case events.SessionStarted():
            return _started(state, at)
        case events.TasksAdded(tasks) if len(tasks) == len(state.tasks):
            return _coordinator(at, "sprint_started", f"sprint-{state.sprint} started: {state.session.requirement}")
        case events.PipelineChosen(pipeline) if pipeline is not state.session.analysis.pipeline:
            text = f"the {pipeline} pipeline was chosen"
            return _coordinator(at, "state_update", text, {"pipeline_mode": pipeline})
        case events.WorkerEnded(role, tasks):
            return _last_word(state, role, tasks, at)
        case events.Warned(text):
            return _coordinator(at, "error", f"warning: {text}")
        case events.MessageSent():
            return _sent(event, at)
        case events.Finished(why) if why:
            return _coordinator(at, "shutdown", f"ended before sprint-{state.sprint} was complete: {why}")
        case events.Finished() if state.sprints:
            return _coordinator(at, "shutdown", f"{len(state.sprints)} sprints complete")
        case events.Finished():
            return _coordinator(at, "sprint_complete", f"sprint-{state.sprint} complete")
        case _:
            return None


def _sent(sent: events.MessageSent, at: float) -> Message:
    return Message(
        ts=sent.sent_at or at,
        sender=sent.sender,
        to=sent.to,
        type=sent.kind,
        summary=sent.summary,
        data=sent.data,
        number=sent.number,
    )


def _started(state: State, at: float) -> Message:
    workers = [role.value for role in Role if role is not Role.gc_controller]
    data: dict[str, object] = {
        "pipeline_mode": state.pipeline or state.session.analysis.pipeline,
        "pipeline_stages": workers,
        "roles": [COORDINATOR, *workers],
        "team_name": state.session.team_name,
    }
    return _coordinator(at, "state_update", f"session {state.session.id} started", data)


def _interrupted(state: State, task: TaskId, kept: str | None, at: float) -> Message | None:
    """An attempt that does not count: worth a word if it was the last one, or if a developer left something."""
    progress = state.progress[task]
    if progress.status is Status.failed:
        return _worker(state, task, at, "error", f"{task} failed: {progress.error}")
    if kept is None or state.tasks[task].role is not Role.developer:
        return None
    text = f"{task} was interrupted, and its work so far is kept as {kept[:7]}"
    return _worker(state, task, at, "dev_progress", text, {"ref": kept})


def _unmet(state: State, task: TaskId, at: float) -> Message:
    packages = [problem.name for problem in state.dependencies.unsolved(task)]
    text = f"{task} needs packages that are not there as declared: {', '.join(packages)}"
    return _coordinator(at, "dependency_mismatch", text, {"task": task, "packages": packages})


def _collided(state: State, task: TaskId, at: float) -> Message:
    conflict = state.conflicts[task]
    text = f"{task} and {', '.join(conflict.others) or 'earlier work'} changed {', '.join(conflict.files)}"
    data: dict[str, object] = {"task": task, "others": list(conflict.others), "files": list(conflict.files)}
    return _coordinator(at, "conflict_detected", text, data)


def _worked(state: State, task: TaskId, done: events.Done, at: float) -> Message:
    data: dict[str, object] = {"ref": done.commit} if done.commit else {}
    if state.worker is state.tasks[task].role and has_inner_loop(state.worker):
        return _loop_step(state, task, done, at)
    return _worker(state, task, at, _kind(state, task, done), f"{task} {_news(state, task, done)}", data)


def _loop_step(state: State, task: TaskId, done: events.Done, at: float) -> Message:
    """A worker that goes on shares what it did, and has its say when it is done with everything."""
    data: dict[str, object] = {
        "status": "completed",
        "ref": done.commit,
        "key_findings": done.findings,
        "files_modified": list(done.changed),
    }
    step = _worker(state, task, at, "state_update", f"{task} {_news(state, task, done)}", data)
    return msgspec.structs.replace(step, to=EVERYBODY)


def _last_word(state: State, role: Role, tasks: tuple[TaskId, ...], at: float) -> Message | None:
    """The one message with which a worker that loops ends; any other one has said it with its only task."""
    if not tasks or not has_inner_loop(role):
        return None
    done = [task for task in tasks if state.progress[task].status is Status.completed]
    left = [f"{task} ({state.progress[task].status})" for task in tasks if task not in done]
    parts = [f"completed {', '.join(done)}"] * bool(done) + [f"not done: {', '.join(left)}"] * bool(left)
    stands = f"{state.count(Status.completed)} of {len(state.tasks)} tasks of the session are completed"
    kind = "dev_complete" if done else "error"
    data: dict[str, object] = {"tasks": list(tasks), "completed": done}
    summary = f"[{role}] {'; '.join([*parts, stands])}"
    return Message(ts=at, sender=role, to=COORDINATOR, type=kind, summary=summary, data=data)


def _kind(state: State, task: TaskId, done: events.Done) -> str:
    match state.tasks[task].role:
        case Role.architect:
            return "design_revision" if task in state.revised else "design_ready"
        case Role.developer:
            return "dev_complete"
        case Role.tester:
            return _verify_kind(done)
        case Role.reviewer:
            return _review_kind(state, task, done)
        case Role.gc_controller:
            return "state_update"


def _verify_kind(done: events.Done) -> str:
    """Passed; or still failing after an agent tried to mend it; or failing with nobody trying."""
    if done.verification is None or not critic.fails(done.verification):
        return "verify_passed"
    return "fix_required" if done.iterations else "verify_failed"


def _review_kind(state: State, task: TaskId, done: events.Done) -> str:
    issues = done.review.issues if done.review else ()
    if any(issue.grade is Severity.critical for issue in issues):
        return "review_critical"
    passed = state.progress[task].signal != "REVISION_NEEDED"
    return "review_passed" if passed else "review_revision"


def _news(state: State, task: TaskId, done: events.Done) -> str:
    if done.review:
        return f"scored {state.progress[task].score}: {done.findings}"
    if done.verification and done.verification.pass_rate is not None:
        return f"pass rate {done.verification.pass_rate:.0%}: {done.findings}"
    return f"completed: {done.findings}"


def _worker(
    state: State, task: TaskId, at: float, kind: str, text: str, data: dict[str, object] | None = None
) -> Message:
    role = state.tasks[task].role
    return Message(
        ts=at, sender=role, to=COORDINATOR, type=kind, summary=f"[{role}] {text}", data={"task": task, **(data or {})}
    )


def _coordinator(at: float, kind: str, text: str, data: dict[str, object] | None = None) -> Message:
    return Message(
        ts=at, sender=COORDINATOR, to=EVERYBODY, type=kind, summary=f"[{COORDINATOR}] {text}", data=data or {}
    )
