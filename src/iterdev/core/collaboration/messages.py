"""Messages that agents and people put on the bus: how they are completed, who may send what, how they are found again.

What iterdev itself announces is in `bus`.
"""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from iterdev.core.session import consensus
from iterdev.core.session.announcements import COORDINATOR, EVERYBODY
from iterdev.core.session.events import MessageSent
from iterdev.core.session.state import Message, State
from iterdev.core.types import Role, TaskId

SHOWN = 20
Last = Annotated[int, Meta(ge=1, le=100)]

TYPES: Mapping[str, tuple[str, ...]] = {
    COORDINATOR: (
        *("sprint_started", "gc_loop_trigger", "sprint_complete", "task_unblocked", "error", "shutdown"),
        *("conflict_detected", "conflict_resolved", "resource_locked", "resource_unlocked", "resource_contention"),
        *("rollback_initiated", "rollback_completed", "rollback_failed", "dependency_mismatch"),
        *("dependency_update_needed", "context_checkpoint_saved", "context_restored", "user_feedback_received"),
        "tech_debt_identified",
    ),
    Role.architect: ("design_ready", "design_revision", "error"),
    Role.developer: ("dev_complete", "dev_progress", "error"),
    Role.tester: ("verify_passed", "verify_failed", "fix_required", "error"),
    Role.reviewer: ("review_passed", "review_revision", "review_critical", "error"),
}
"""Types that belong to somebody; any other type, such as `progress` or `blocker`, is everybody's."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which messages are asked for; what is empty fits all."""

    sender: str = ""
    to: str = ""
    kind: str = ""
    last: Last = SHOWN

    def fits(self, message: Message) -> bool:
        pairs = ((self.sender, message.sender), (self.to, message.to), (self.kind, message.type))
        return all(wanted in {"", found} for wanted, found in pairs)


class Member(Struct, frozen=True, kw_only=True):
    """Somebody who has sent messages."""

    name: str
    last_seen: float
    last_action: str
    count: int


def composed(
    sender: str,
    *,
    to: str = "",
    kind: str = "",
    summary: str = "",
    data: Mapping[str, object] | None = None,
    task: TaskId | None = None,
) -> MessageSent:
    """A whole message: what was left out is filled in, and the summary starts with the sender."""
    to, kind, tag = to or COORDINATOR, kind or "message", f"[{sender}]"
    text = summary.strip() or f"{kind} to {to}"
    return MessageSent(
        sender=sender,
        to=to,
        kind=kind,
        summary=text if text.startswith(tag) else f"{tag} {text}",
        data={**(data or {}), **({"task": task} if task else {})},
        task=task,
    )


def objection(role: Role, message: MessageSent) -> str:
    """Why the agent of a role may not send the message; empty when it may."""
    if message.to not in {COORDINATOR, EVERYBODY}:
        return f'the {role} writes to "{COORDINATOR}" or to "{EVERYBODY}", not to "{message.to}"'
    if message.kind == consensus.BLOCKED and consensus.severity(message.data) is None:
        return f'the "data" of a {message.kind} needs "severity", one of {", ".join(consensus.GRADES)}'
    owners = [owner for owner, types in TYPES.items() if message.kind in types]
    if owners and role not in owners:
        own = ", ".join(TYPES.get(role, ()))
        return f'"{message.kind}" is for the {owners[0]} to say; yours are {own}, and any that is nobody\'s'
    return ""


def listed(state: State, wanted: Wanted) -> list[Message]:
    """The last messages that fit, in their order."""
    return [message for message in state.messages if wanted.fits(message)][-wanted.last :]


def found(state: State, name: str) -> Message | None:
    """The message of an id such as MSG-007."""
    return next((message for message in state.messages if message.id == name), None)


def is_of(message: Message, role: str, task: TaskId) -> bool:
    """Whether the agent of a task sent the message."""
    return message.sender == role and message.data.get("task") == task


def members(state: State) -> list[Member]:
    """Everybody who has sent something, who was heard last first."""
    heard: dict[str, Member] = {}
    for message in state.messages:
        before = heard.pop(message.sender, None)
        heard[message.sender] = Member(
            name=message.sender,
            last_seen=message.ts,
            last_action=message.summary,
            count=before.count + 1 if before else 1,
        )
    return list(reversed(heard.values()))
