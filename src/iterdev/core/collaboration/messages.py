"""The message bus: messages of agents, people and iterdev itself, who may send which, and how they are read.

The texts of iterdev's own announcements are in `core/rules/announcements.py` and in the team.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Annotated, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from iterdev.core.append_only import AppendOnly
from iterdev.core.types import Role, Severity, TaskId

COORDINATOR = "coordinator"
EVERYONE = "all"
STATE_UPDATE = "state_update"
"""The type of a message whose data is shared with the team."""

DEFAULT_LAST = 20
Last = Annotated[int, Meta(ge=1, le=100)]

COORDINATOR_TYPES = (
    *("task_unblocked", "error", "shutdown"),
    *("conflict_detected", "conflict_resolved", "resource_locked", "resource_unlocked", "resource_contention"),
    *("rollback_initiated", "rollback_completed", "rollback_failed", "dependency_mismatch"),
    *("dependency_update_needed", "context_checkpoint_saved", "context_restored", "user_feedback_received"),
    "tech_debt_identified",
)
"""Types that only the coordinator may send, in every team; a team adds its own."""


class Escalation(StrEnum):
    """Messages that may stop the session until the user has decided."""

    consensus_blocked = "consensus_blocked"
    """The team does not agree."""
    capability_gap = "capability_gap"
    """The team lacks something."""


class Message(Struct, frozen=True, kw_only=True, gc=False):
    ts: float
    sender: str
    to: str
    type: str
    summary: str
    data: Mapping[str, object] = {}
    number: int = 0

    @property
    def id(self) -> str:
        return f"MSG-{self.number:03d}"


class SharedData(Struct, frozen=True, kw_only=True):
    """What a sender shares with the team: the data of all its messages of type `state_update`, merged."""

    at: float
    data: Mapping[str, object]


class Messages(Struct, frozen=True, kw_only=True):
    sent: AppendOnly[Message] = AppendOnly[Message]()
    shared: Mapping[str, SharedData] = {}
    """By sender."""


class _OnBus(Struct, frozen=True, kw_only=True, gc=False):
    sender: str
    to: str
    kind: str
    summary: str
    data: Mapping[str, object] = {}
    number: int = 0


class MessageSent(_OnBus, frozen=True, kw_only=True, tag=True):
    """An agent or a person sent a message."""

    task: TaskId | None = None
    """The task whose agent it was."""
    sent_at: float | None = None
    """When it was sent, if that was before this journal."""


class Announced(_OnBus, frozen=True, kw_only=True, tag=True, gc=False):
    """iterdev itself put a message on the bus."""


class MessageDeleted(Struct, frozen=True, tag=True):
    number: int


class MessagesCleared(Struct, frozen=True, tag=True):
    """The bus is empty again, and so is what was shared on it."""


MessageEvent = MessageSent | Announced | MessageDeleted | MessagesCleared


def evolve(part: Messages, event: MessageEvent, at: float) -> Messages:
    match event:
        case Announced():
            return replace(part, sent=part.sent.extended((_message(event, at),)))
        case MessageSent():
            sent_at = event.sent_at or at
            return _with_shared(replace(part, sent=part.sent.extended((_message(event, sent_at),))), event, sent_at)
        case MessageDeleted(number):
            return replace(part, sent=AppendOnly(message for message in part.sent if message.number != number))
        case MessagesCleared():
            return Messages()
        case _:
            assert_never(event)


def _message(event: MessageSent | Announced, at: float) -> Message:
    return Message(
        ts=at,
        sender=event.sender,
        to=event.to,
        type=event.kind,
        summary=event.summary,
        data=event.data,
        number=event.number,
    )


def _with_shared(part: Messages, message: MessageSent, at: float) -> Messages:
    if message.kind != STATE_UPDATE or not message.data:
        return part
    before = part.shared.get(message.sender)
    data = {**(before.data if before else {}), **message.data}
    return replace(part, shared={**part.shared, message.sender: SharedData(at=at, data=data)})


def next_number(part: Messages) -> int:
    return part.sent[-1].number + 1 if part.sent else 1


class Member(Struct, frozen=True, kw_only=True):
    name: str
    last_seen: float
    last_action: str
    count: int


def compose(
    sender: str,
    *,
    to: str = "",
    kind: str = "",
    summary: str = "",
    data: Mapping[str, object] | None = None,
    task: TaskId | None = None,
) -> MessageSent:
    """A complete message: what was left out gets its default, and the summary starts with the sender."""
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


def severity(data: Mapping[str, object]) -> Severity | None:
    """The severity that the data of a message names, in letters of any case."""
    word = str(data.get("severity", "")).lower()
    return next((known for known in Severity if known == word), None)


def objection(role: Role, message: MessageSent, types: Mapping[str, Collection[str]]) -> str:
    """Why the agent of a role may not send the message; empty when it may. `types` belong to one sender each."""
    if message.to not in {COORDINATOR, EVERYONE}:
        return f'the {role} writes to "{COORDINATOR}" or to "{EVERYONE}", not to "{message.to}"'
    if message.kind == Escalation.consensus_blocked and severity(message.data) is None:
        return f'the "data" of a {message.kind} needs "severity", one of HIGH, MEDIUM, LOW'
    owners = [owner for owner, own in types.items() if message.kind in own]
    if owners and role not in owners:
        own = ", ".join(types.get(role, ()))
        return f'"{message.kind}" is a message of the {owners[0]}; yours are {own}, and any that belongs to no role'
    return ""


def find(part: Messages, *, sender: str = "", to: str = "", kind: str = "", last: int = DEFAULT_LAST) -> list[Message]:
    """The last messages that match, in their order; an empty word matches all."""
    found = [
        message
        for message in part.sent
        if sender in {"", message.sender} and to in {"", message.to} and kind in {"", message.type}
    ]
    return found[-last:]


def by_id(part: Messages, name: str) -> Message | None:
    return next((message for message in part.sent if message.id == name), None)


def members(part: Messages) -> list[Member]:
    """Every sender, the one of the newest message first."""
    senders: dict[str, Member] = {}
    for message in part.sent:
        name, before = message.sender, senders.pop(message.sender, None)
        count = before.count + 1 if before else 1
        senders[name] = Member(name=name, last_seen=message.ts, last_action=message.summary, count=count)
    return list(reversed(senders.values()))
