"""Which message each event of a protocol puts on the bus, from locks and feedback to packages and completion.

What concerns the tasks themselves is in `bus`.
"""

from iterdev.core.collaboration import checkpoints, external_packages, feedback, locks, tech_debt, wisdom
from iterdev.core.ids import moment
from iterdev.core.session import archive
from iterdev.core.session.announcements import COORDINATOR, EVERYBODY
from iterdev.core.session.events import ProtocolEvent
from iterdev.core.session.state import Message

SHOWN = 50
"""Characters of a text that a summary quotes."""


def notice(event: ProtocolEvent, at: float) -> Message | None:
    if isinstance(event, locks.LockEvent):
        return _of_lock(event, at)
    match event:
        case checkpoints.CheckpointSaved(task=task, pointer=pointer):
            data: dict[str, object] = {"task": task, "ref": pointer}
            return _message(at, "context_checkpoint_saved", f"checkpoint of {task} saved", data)
        case checkpoints.CheckpointRestored(task=task, pointer=pointer, saved_at=saved_at):
            text = f"context of {task} restored from {moment(saved_at)}"
            return _message(at, "context_restored", text, {"task": task, "ref": pointer})
        case feedback.FeedbackGiven(item):
            text = f"user feedback received: {item.severity} - {item.description[:SHOWN]}"
            return _message(at, "user_feedback_received", text, {"ref": item.feedback_id, "severity": item.severity})
        case tech_debt.DebtIdentified(found):
            text = f"technical debt identified: {found.category} - {found.description[:SHOWN]}"
            return _message(at, "tech_debt_identified", text, {"ref": found.debt_id, "task": found.source_task_id})
        case external_packages.UpdateNeeded(update):
            text = f"{update.name} {update.newest} is out, and {update.version_range} does not allow it"
            return _message(at, "dependency_update_needed", text, {"package": update.name, "newest": update.newest})
        case archive.Archived():
            return _message(at, "shutdown", "the session is archived", {})
        case archive.Reopened():
            return _message(at, "state_update", "the session is open again", {})
        case feedback.FeedbackLinked() | feedback.FeedbackTakenUp() | feedback.FeedbackMoved() | tech_debt.DebtMoved():
            return None
        case external_packages.DependenciesOverridden(task=task):
            text = f"{task} goes on without the packages that it needs"
            return _message(at, "task_unblocked", text, {"task": task})
        case external_packages.DependenciesRechecked():
            return None
        case archive.Kept() | wisdom.WisdomInherited() | wisdom.WisdomRejected():
            return None


def _of_lock(event: locks.LockEvent, at: float) -> Message | None:
    match event:
        case locks.LockGranted(resource=resource, task=task, role=role):
            data: dict[str, object] = {"resource": resource, "task": task, "role": role}
            return _message(at, "resource_locked", f'{task} ({role}) locked "{resource}"', data)
        case locks.LockRefused(resource=resource, task=task, holder=holder):
            data = {"resource": resource, "task": task, "holder": holder}
            return _message(at, "resource_contention", f'{task} wants "{resource}", which {holder} holds', data)
        case locks.LockReleased(resource=resource, task=task):
            return _message(
                at, "resource_unlocked", f'{task} released "{resource}"', {"resource": resource, "task": task}
            )
        case locks.LockExpired(resource=resource, task=task, role=role):
            data = {"resource": resource, "task": task, "role": role, "forced": True}
            minutes = f"{locks.AGE / 60:g} minutes"
            text = f'warning: "{resource}" was taken from {task} ({role}), which had not renewed its lock for {minutes}'
            return _message(at, "resource_unlocked", text, data)
        case locks.DeadlockBroken(task=task, others=others, resource=resource):
            data = {"task": task, "others": list(others), "resource": resource, "deadlock": True}
            text = f"deadlock: {task} and {', '.join(others)} waited for each other's locks; {task} was aborted"
            return _message(at, "error", text, data)
        case locks.LockRenewed() | locks.LockForgone():
            return None


def _message(at: float, kind: str, text: str, data: dict[str, object]) -> Message:
    return Message(ts=at, sender=COORDINATOR, to=EVERYBODY, type=kind, summary=f"[{COORDINATOR}] {text}", data=data)
