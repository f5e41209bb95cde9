"""What the tasks of a session share: locks, conflicts, messages, and what they learned."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.collaboration.messages import Message, SharedData
from iterdev.core.collaboration.wisdom import Note
from iterdev.core.session.state import State
from iterdev.core.types import TaskId

SIZE = 200
"""Messages of a page."""


class LockView(Struct, frozen=True, kw_only=True):
    resource: str
    task: TaskId
    role: str
    since: float
    until: float
    waiting: tuple[TaskId, ...]


class ConflictView(Struct, frozen=True, kw_only=True):
    task: TaskId
    files: tuple[str, ...]
    others: tuple[TaskId, ...]
    merged: bool
    """Git could merge it."""
    strategy: str
    resolved_by: TaskId | None


class MessagePage(Struct, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    """The newest first."""
    matching: int
    total: int
    page: int
    pages: int
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    types: tuple[str, ...]
    shared: Mapping[str, SharedData]


def lock_views(state: State) -> tuple[LockView, ...]:
    wanted = state.locks.wanted
    return tuple(
        LockView(
            resource=resource,
            task=lock.task,
            role=lock.role,
            since=lock.at,
            until=lock.until,
            waiting=tuple(task for task, want in wanted.items() if want.resource == resource),
        )
        for resource, lock in state.locks.held.items()
    )


def conflict_views(state: State) -> tuple[ConflictView, ...]:
    return tuple(
        ConflictView(
            task=task,
            files=one.found.files,
            others=one.found.others,
            merged=one.found.merged,
            strategy=one.strategy or "",
            resolved_by=one.resolved_by,
        )
        for task, one in state.conflicts.by_task.items()
    )


def message_page(state: State, *, sender: str = "", to: str = "", kind: str = "", page: int = 1) -> MessagePage:
    sent = list(state.messages.sent)
    found = [
        one for one in reversed(sent) if sender in {"", one.sender} and to in {"", one.to} and kind in {"", one.type}
    ]
    pages = max(-(-len(found) // SIZE), 1)
    shown = min(max(page, 1), pages)
    return MessagePage(
        messages=tuple(found[(shown - 1) * SIZE : shown * SIZE]),
        matching=len(found),
        total=len(sent),
        page=shown,
        pages=pages,
        senders=tuple(dict.fromkeys(one.sender for one in sent)),
        receivers=tuple(dict.fromkeys(one.to for one in sent)),
        types=tuple(sorted({one.type for one in sent})),
        shared=state.messages.shared,
    )


def notes(state: State) -> tuple[Note, ...]:
    """What the session learned, and then what it was told by earlier ones."""
    return (*state.wisdom.notes, *state.wisdom.inherited)
