"""Resource locks: who holds what, who waits for whom, and what follows from a request. It answers; it never waits."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TypeVar, assert_never

from msgspec import Struct

from iterdev.core.types import TaskId

Key = TypeVar("Key")
Value = TypeVar("Value")

AGE = 300.0
"""Seconds after which a lock that was not renewed is taken away, and a task that was refused waits no more.

It is one number on purpose: who lets more time pass between two requests cannot keep its own locks meanwhile, so
tasks that wait for each other are always found."""
REPEAT = 60.0
"""Seconds within which a refusal is not told again."""


class Lock(Struct, frozen=True, kw_only=True):
    task: TaskId
    role: str
    at: float
    """When it was granted or last renewed."""

    @property
    def ends_at(self) -> float:
        return self.at + AGE


class Want(Struct, frozen=True):
    """A resource that a task was refused."""

    resource: str
    at: float


class Locks(Struct, frozen=True, kw_only=True):
    held: Mapping[str, Lock] = {}
    wanted: Mapping[TaskId, Want] = {}
    """What each task was refused last, as long as somebody holds it."""


class Ask(Struct, frozen=True, kw_only=True):
    resource: str
    task: TaskId
    role: str


class LockGranted(Struct, frozen=True, kw_only=True, tag=True):
    resource: str
    task: TaskId
    role: str


class LockRenewed(Struct, frozen=True, kw_only=True, tag=True):
    """The holder asked again."""

    resource: str
    task: TaskId


class LockRefused(Struct, frozen=True, kw_only=True, tag=True):
    resource: str
    task: TaskId
    role: str
    holder: TaskId


class LockForgone(Struct, frozen=True, kw_only=True, tag=True):
    """A task that was refused does not wait any more."""

    resource: str
    task: TaskId


class LockReleased(Struct, frozen=True, kw_only=True, tag=True):
    resource: str
    task: TaskId


class LockExpired(Struct, frozen=True, kw_only=True, tag=True):
    """It was taken away because it had not been renewed for too long."""

    resource: str
    task: TaskId
    role: str


class DeadlockBroken(Struct, frozen=True, kw_only=True, tag=True):
    """Tasks waited for each other's locks; the youngest is aborted, and its locks are released before this."""

    task: TaskId
    others: tuple[TaskId, ...]
    resource: str
    """What the aborted task waited for."""


LockEvent = LockGranted | LockRenewed | LockRefused | LockForgone | LockReleased | LockExpired | DeadlockBroken


def request(
    locks: Locks, ask: Ask, at: float, *, started: Mapping[TaskId, float], dead: Collection[TaskId] = ()
) -> tuple[LockEvent, ...]:
    """What happens when a task asks for a resource; afterwards the task holds it, or somebody else does.

    `started` says since when the running tasks run; a task that does not run is as old as its oldest lock.
    """
    return (*tidied(locks, at, dead), *_answered(current(locks, at, dead), ask, at, started))


def release(
    locks: Locks, resource: str, task: TaskId, at: float, *, dead: Collection[TaskId] = ()
) -> tuple[LockEvent, ...]:
    """Only the holder can release a lock; somebody who waits for it thereby stops waiting."""
    now = current(locks, at, dead)
    lock, want = now.held.get(resource), now.wanted.get(task)
    released = (LockReleased(resource=resource, task=task),) if lock and lock.task == task else ()
    forgone = (LockForgone(resource=resource, task=task),) if want and want.resource == resource else ()
    return (*tidied(locks, at, dead), *released, *forgone)


def tidied(locks: Locks, at: float, dead: Collection[TaskId] = ()) -> tuple[LockEvent, ...]:
    """What ends by itself: the locks of tasks whose attempts died, and those that are too old."""
    freed = tuple(release for task in dead for release in released_by(locks, task))
    return (*freed, *expired(_after(locks, freed, at), at))


def current(locks: Locks, at: float, dead: Collection[TaskId] = ()) -> Locks:
    """The locks that count now."""
    return _after(locks, tidied(locks, at, dead), at)


def expired(locks: Locks, at: float) -> tuple[LockExpired, ...]:
    return tuple(
        LockExpired(resource=resource, task=lock.task, role=lock.role)
        for resource, lock in locks.held.items()
        if lock.ends_at <= at
    )


def next_end(locks: Locks) -> float | None:
    """When the next lock becomes too old."""
    return min((lock.ends_at for lock in locks.held.values()), default=None)


def released_by(locks: Locks, task: TaskId) -> tuple[LockReleased, ...]:
    """Every lock of a task that is over."""
    return tuple(LockReleased(resource=name, task=task) for name, lock in locks.held.items() if lock.task == task)


def evolve(locks: Locks, event: LockEvent, at: float) -> Locks:
    match event:
        case LockGranted(resource=resource, task=task, role=role):
            held = {**locks.held, resource: Lock(task=task, role=role, at=at)}
            return Locks(held=held, wanted=_without(locks.wanted, task))
        case LockRenewed(resource=resource, task=task):
            lock = locks.held[resource]
            return Locks(held={**locks.held, resource: Lock(task=task, role=lock.role, at=at)}, wanted=locks.wanted)
        case LockRefused(resource=resource, task=task):
            return Locks(held=locks.held, wanted={**locks.wanted, task: Want(resource, at)})
        case LockForgone(task=task):
            return Locks(held=locks.held, wanted=_without(locks.wanted, task))
        case LockReleased(resource=resource) | LockExpired(resource=resource):
            wanted = {task: want for task, want in locks.wanted.items() if want.resource != resource}
            return Locks(held=_without(locks.held, resource), wanted=wanted)
        case DeadlockBroken(task=task):
            return ended(locks, task)
        case _:
            assert_never(event)


def ended(locks: Locks, task: TaskId) -> Locks:
    """A task that is over holds nothing and waits for nothing."""
    return _after(Locks(held=locks.held, wanted=_without(locks.wanted, task)), released_by(locks, task), 0)


def _answered(locks: Locks, ask: Ask, at: float, started: Mapping[TaskId, float]) -> tuple[LockEvent, ...]:
    lock = locks.held.get(ask.resource)
    if lock is None:
        return (LockGranted(resource=ask.resource, task=ask.task, role=ask.role),)
    if lock.task == ask.task:
        return (LockRenewed(resource=ask.resource, task=ask.task),)
    refused = LockRefused(resource=ask.resource, task=ask.task, role=ask.role, holder=lock.task)
    told = () if _is_known(locks, ask, at) else (refused,)
    circle = _circle(evolve(locks, refused, at), ask.task, at)
    if not circle:
        return told
    broken = _broken(_after(locks, told, at), circle, started)
    again = (LockGranted(resource=ask.resource, task=ask.task, role=ask.role),)
    return (*told, *broken, *(again if broken[-1].task == lock.task else ()))


def _is_known(locks: Locks, ask: Ask, at: float) -> bool:
    """Who waits asks often; once in a while is enough for everybody to hear."""
    want = locks.wanted.get(ask.task)
    return want is not None and want.resource == ask.resource and at - want.at < REPEAT


def _circle(locks: Locks, first: TaskId, at: float) -> list[TaskId]:
    """The tasks that wait for each other's locks, beginning with this one; none if its chain of holders ends.

    A task waits for one resource at a time, so only a refusal closes a circle, and there is never more than one.
    """
    path = [first]
    while (want := locks.wanted.get(path[-1])) and at < want.at + AGE:
        holder = locks.held[want.resource].task
        if holder == first:
            return path
        if holder in path:
            break
        path.append(holder)
    return []


def _broken(
    locks: Locks, circle: Sequence[TaskId], started: Mapping[TaskId, float]
) -> tuple[LockReleased | DeadlockBroken, ...]:
    def born(task: TaskId) -> tuple[float, TaskId]:
        oldest = min(lock.at for lock in locks.held.values() if lock.task == task)
        return started.get(task, oldest), task

    victim = max(circle, key=born)
    others = tuple(task for task in circle if task != victim)
    broken = DeadlockBroken(task=victim, others=others, resource=locks.wanted[victim].resource)
    return (*released_by(locks, victim), broken)


def _after(locks: Locks, events: Sequence[LockEvent], at: float) -> Locks:
    return reduce(lambda part, event: evolve(part, event, at), events, locks)


def _without(mapping: Mapping[Key, Value], key: Key) -> Mapping[Key, Value]:
    return {name: value for name, value in mapping.items() if name != key}
