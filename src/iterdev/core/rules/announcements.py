"""What iterdev itself puts on the message bus: which event is announced, in one sentence that starts with the sender.

The team is asked first; what it does not announce is announced here.
"""

from msgspec.structs import replace

from iterdev.core.collaboration import checkpoints, external_packages, feedback, locks, tech_debt
from iterdev.core.collaboration.messages import COORDINATOR, EVERYONE, STATE_UPDATE, Announced
from iterdev.core.formatting import counted, shown_name
from iterdev.core.ids import moment
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Event
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.types import ConflictStrategy, Role, Status, TaskId

QUOTED = 50
"""Characters of a text that a summary quotes."""


def announcement(event: Event, state: State, team: TeamRules) -> Announced | None:
    """The announcement of the event, if there is one; the state is the one after it."""
    # At once, because a long journal is made of them.
    if isinstance(event, (events.AttemptStarted, Announced)):  # a union takes three times as long
        return None
    return team.announce(event, state) or _of_work(event, state) or _of_session(event) or _of_parts(event)


def coordinator(kind: str, text: str, /, **data: object) -> Announced:
    return Announced(sender=COORDINATOR, to=EVERYONE, kind=kind, summary=f"[{COORDINATOR}] {text}", data=data)


def worker(state: State, task: TaskId, kind: str, text: str, /, **data: object) -> Announced:
    return from_role(state.tasks.plan[task].role, kind, text, task=task, **data)


def from_role(role: Role, kind: str, text: str, /, **data: object) -> Announced:
    return Announced(sender=role, to=COORDINATOR, kind=kind, summary=f"[{role}] {text}", data=data)


def step_of_worker(state: State, task: TaskId, text: str) -> Announced:
    """What a worker with further tasks shares about one of them; its last message comes when all are done."""
    progress = state.tasks.progress[task]
    data: dict[str, object] = {
        "status": "completed",
        "ref": progress.commit,
        "key_findings": progress.findings,
        "files_modified": list(progress.changed),
    }
    return replace(worker(state, task, STATE_UPDATE, text, **data), to=EVERYONE)


def end_of_worker(state: State, role: Role, tasks: tuple[TaskId, ...], kind: str) -> Announced:
    """The one message with which a worker ends that went on from task to task; `kind` if it completed any."""
    done = [task for task in tasks if state.tasks.status(task) is Status.completed]
    left = [f"{task} ({state.tasks.status(task)})" for task in tasks if task not in done]
    parts = [f"completed {', '.join(done)}"] * bool(done) + [f"not done: {', '.join(left)}"] * bool(left)
    count = (
        f"{state.tasks.count(Status.completed)} of {counted(len(state.tasks.plan), 'task')} of the session completed"
    )
    text = "; ".join([*parts, count])
    return from_role(role, kind if done else "error", text, tasks=list(tasks), completed=done)


def _of_work(event: Event, state: State) -> Announced | None:
    match event:
        case events.AttemptEnded(task=task, outcome=events.Failed(error=error)) | events.TaskFailed(task, error):
            became = "needs another agent" if state.tasks.status(task) is Status.pending else "failed"
            return worker(state, task, "error", f"{task} {became}: {error}")
        case events.AttemptEnded(task=task, status=Status.failed, error=error):
            return worker(state, task, "error", f"{task} failed: {error}")
        case events.AttemptEnded(task=task, outcome=events.Unmet()):
            packages = [problem.name for problem in state.packages.unsolved(task)]
            text = f"{task} needs packages that are not there as declared: {', '.join(packages)}"
            return coordinator("dependency_mismatch", text, task=task, packages=packages)
        case (
            events.Landed(task=task, conflict=events.Conflict() as conflict)
            | events.LandingRefused(task=task, conflict=events.Conflict() as conflict)
        ):
            others, files = list(conflict.others), list(conflict.files)
            text = f"{task} and {', '.join(others) or 'earlier work'} changed {', '.join(map(shown_name, files))}"
            return coordinator("conflict_detected", text, task=task, others=others, files=files)
        case events.LandingRefused(task=task, files=refused):
            return worker(state, task, "error", f"{task} does not merge with what landed: {', '.join(refused)}")
        case LandingTakenOut(task=task, error=error, status=status):
            became = "is tried once more" if status is Status.pending else "failed"
            return worker(state, task, "error", f"{task} {became}: {error}")
        case events.ConflictResolved(task=task, fix=None, error=error):
            return worker(state, task, "error", f"{task} failed: {error}")
        case events.ConflictResolved(task=task, strategy=strategy, fix=fix):
            how = "git merged both changes, see" if strategy is ConflictStrategy.auto_merge else "it is resolved by"
            text = f"conflict of {task}: {how} {fix}"
            told = coordinator("conflict_resolved", text, task=task, strategy=strategy, resolved_by=fix, ref=fix)
            return replace(told, to=state.tasks.plan[task].role)
        case _:
            return None


def _of_session(event: Event) -> Announced | None:
    match event:
        case events.RollbackStarted(target=target, snapshot=snapshot, reason=reason):
            because = f" because {reason}" if reason else ""
            text = f"rolling back to before {target}{because}; undone: {', '.join(event.undone)}"
            return coordinator(
                "rollback_initiated", text, snapshot_id=snapshot, ref=snapshot, undone=list(event.undone), reason=reason
            )
        case events.RollbackCompleted(snapshot):
            return coordinator("rollback_completed", f"rolled back to {snapshot}", snapshot_id=snapshot, ref=snapshot)
        case events.RollbackFailed(snapshot, error):
            text = f"could not roll back to {snapshot}: {error}"
            return coordinator("rollback_failed", text, snapshot_id=snapshot, ref=snapshot, error=error)
        case events.Warned(text, announced=True):
            return coordinator("error", f"warning: {text}")
        case events.Archived():
            return coordinator("shutdown", "the session is archived")
        case events.Reopened():
            return coordinator("state_update", "the session is open again")
        case _:
            return None


def _of_parts(event: Event) -> Announced | None:
    match event:
        case checkpoints.CheckpointSaved(task=task, pointer=pointer):
            return coordinator("context_checkpoint_saved", f"checkpoint of {task} saved", task=task, ref=pointer)
        case checkpoints.CheckpointRestored(task=task, pointer=pointer, saved_at=saved_at):
            text = f"context of {task} restored from {moment(saved_at)}"
            return coordinator("context_restored", text, task=task, ref=pointer)
        case feedback.FeedbackGiven(item):
            text = f"user feedback received: {item.severity} - {item.description[:QUOTED]}"
            return coordinator("user_feedback_received", text, ref=item.feedback_id, severity=item.severity)
        case tech_debt.DebtIdentified(found):
            text = f"technical debt identified: {found.category} - {found.description[:QUOTED]}"
            return coordinator("tech_debt_identified", text, ref=found.debt_id, task=found.source_task_id)
        case external_packages.PackageUpdateFound(update):
            text = f"{update.name} {update.newest} is out, and {update.version_range} does not allow it"
            return coordinator("dependency_update_needed", text, package=update.name, newest=update.newest)
        case external_packages.PackagesOverridden(task):
            return coordinator("task_unblocked", f"{task} goes on without the packages that it needs", task=task)
        case locks.LockGranted(resource=resource, task=task, role=role):
            text = f'{task} locked "{resource}"'
            return from_role(role, "resource_locked", text, resource=resource, task=task, role=role, ref=task)
        case locks.LockRefused(resource=resource, task=task, holder=holder):
            text = f'{task} wants "{resource}", which {holder} holds'
            return coordinator("resource_contention", text, resource=resource, task=task, holder=holder)
        case locks.LockReleased(resource=resource, task=task):
            return coordinator("resource_unlocked", f'{task} released "{resource}"', resource=resource, task=task)
        case locks.LockExpired(resource=resource, task=task, role=role):
            text = f'warning: the lock of {task} ({role}) on "{resource}" expired, because it was not renewed'
            return coordinator("resource_unlocked", text, resource=resource, task=task, role=role, forced=True)
        case locks.DeadlockBroken(task=task, others=others, resource=resource):
            text = f"deadlock: {task} and {', '.join(others)} waited for each other's locks; {task} was aborted"
            return coordinator("error", text, task=task, others=list(others), resource=resource, deadlock=True)
        case _:
            return None
