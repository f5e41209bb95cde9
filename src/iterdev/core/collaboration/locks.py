"""Resource locks: which task holds what, which task waits, and what follows from a request. Nothing here waits."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.policy import Policy
from iterdev.core.types import TaskId


class Lock(Struct, frozen=True, kw_only=True):
    task: TaskId
    role: str
    at: float
    """When it was granted or last renewed."""
    until: float
    """When it expires unless it is renewed."""


class Want(Struct, frozen=True):
    resource: str
    at: float
    until: float
    """Until when the task counts as waiting."""


T = TypeVar("T", Lock, Want)


class Locks(Struct, frozen=True, kw_only=True):
    held: Mapping[str, Lock] = {}
    wanted: Mapping[TaskId, Want] = {}
    """What each task was refused last, as long as another task holds it."""


class _OfTask(Struct, frozen=True, kw_only=True):
    resource: str
    task: TaskId


class LockRequest(_OfTask, frozen=True, kw_only=True):
    role: str


class LockGranted(_OfTask, frozen=True, kw_only=True, tag=True):
    role: str
    until: float


class LockRenewed(_OfTask, frozen=True, kw_only=True, tag=True):
    until: float


class LockRefused(_OfTask, frozen=True, kw_only=True, tag=True):
    role: str
    holder: TaskId
    until: float


class LockWaitEnded(_OfTask, frozen=True, kw_only=True, tag=True):
    """A task that was refused does not wait any more."""


class LockReleased(_OfTask, frozen=True, kw_only=True, tag=True):
    pass


class LockExpired(_OfTask, frozen=True, kw_only=True, tag=True):
    role: str


class DeadlockBroken(Struct, frozen=True, kw_only=True, tag=True):
    """Tasks waited for each other's locks; the youngest is aborted, and its locks are released before this."""

    task: TaskId
    others: tuple[TaskId, ...]
    resource: str
    """What the aborted task waited for."""


LockEvent = LockGranted | LockRenewed | LockRefused | LockWaitEnded | LockReleased | LockExpired | DeadlockBroken


def request(
    locks: Locks,
    ask: LockRequest,
    at: float,
    policy: Policy,
    *,
    started: Mapping[TaskId, float],
    dead: Collection[TaskId] = (),
) -> tuple[LockEvent, ...]:
    """What happens when a task asks for a resource; afterwards the task holds it, or another task does.

    `started` says since when the running tasks run; a task that does not run is as old as its oldest lock.
    """
    ended = cleaned_up(locks, at, dead)
    locks, until = _after(locks, ended, at), at + policy.lock_seconds
    granted = LockGranted(resource=ask.resource, task=ask.task, role=ask.role, until=until)
    lock = locks.held.get(ask.resource)
    if lock is None:
        return (*ended, granted)
    if lock.task == ask.task:
        return (*ended, LockRenewed(resource=ask.resource, task=ask.task, until=until))
    refused = LockRefused(resource=ask.resource, task=ask.task, role=ask.role, holder=lock.task, until=until)
    announced = () if _was_refused_lately(locks, ask, at, policy) else (refused,)
    cycle = _cycle(evolve(locks, refused, at), ask.task, at)
    if not cycle:
        return (*ended, *announced)
    broken = _broken(_after(locks, announced, at), cycle, started)
    return (*ended, *announced, *broken, *((granted,) if broken[-1].task == lock.task else ()))


def release(
    locks: Locks, resource: str, task: TaskId, at: float, *, dead: Collection[TaskId] = ()
) -> tuple[LockEvent, ...]:
    """Only the holder can release a lock; a task that waits for it stops waiting."""
    now = current(locks, at, dead)
    lock, want = now.held.get(resource), now.wanted.get(task)
    released = (LockReleased(resource=resource, task=task),) if lock and lock.task == task else ()
    ended = (LockWaitEnded(resource=resource, task=task),) if want and want.resource == resource else ()
    return (*cleaned_up(locks, at, dead), *released, *ended)


def cleaned_up(locks: Locks, at: float, dead: Collection[TaskId] = ()) -> tuple[LockEvent, ...]:
    """What ends by itself: the locks of tasks whose attempts died, and those that expired."""
    freed = tuple(release for task in dead for release in released_by(locks, task))
    return (*freed, *expired(_after(locks, freed, at), at))


def current(locks: Locks, at: float, dead: Collection[TaskId] = ()) -> Locks:
    """The locks that count now."""
    return _after(locks, cleaned_up(locks, at, dead), at)


def expired(locks: Locks, at: float) -> tuple[LockExpired, ...]:
    return tuple(
        LockExpired(resource=resource, task=lock.task, role=lock.role)
        for resource, lock in locks.held.items()
        if lock.until <= at
    )


def released_by(locks: Locks, task: TaskId) -> tuple[LockReleased, ...]:
    return tuple(LockReleased(resource=name, task=task) for name, lock in locks.held.items() if lock.task == task)


def task_ended(locks: Locks, task: TaskId) -> tuple[LockEvent, ...]:
    """A task that has ended holds no lock and waits for none."""
    want = locks.wanted.get(task)
    return *released_by(locks, task), *((LockWaitEnded(resource=want.resource, task=task),) if want else ())


def evolve(locks: Locks, event: LockEvent, at: float) -> Locks:
    match event:
        case LockGranted(resource=resource, task=task, role=role, until=until):
            held = {**locks.held, resource: Lock(task=task, role=role, at=at, until=until)}
            return Locks(held=held, wanted=without(locks.wanted, task))
        case LockRenewed(resource=resource, task=task, until=until):
            renewed = Lock(task=task, role=locks.held[resource].role, at=at, until=until)
            return Locks(held={**locks.held, resource: renewed}, wanted=locks.wanted)
        case LockRefused(resource=resource, task=task, until=until):
            return Locks(held=locks.held, wanted={**locks.wanted, task: Want(resource, at, until)})
        case LockWaitEnded(task=task) | DeadlockBroken(task=task):
            return Locks(held=locks.held, wanted=without(locks.wanted, task))
        case LockReleased(resource=resource) | LockExpired(resource=resource):
            wanted = {task: want for task, want in locks.wanted.items() if want.resource != resource}
            return Locks(held=without(locks.held, resource), wanted=wanted)
        case _:
            assert_never(event)


def moved(locks: Locks, seconds: float) -> Locks:
    """The locks after the clock moved: time in which the machine slept does not count towards their expiry."""

    def later(one: T) -> T:
        return replace(one, at=one.at + seconds, until=one.until + seconds)

    return Locks(
        held={resource: later(lock) for resource, lock in locks.held.items()},
        wanted={task: later(want) for task, want in locks.wanted.items()},
    )


def _was_refused_lately(locks: Locks, ask: LockRequest, at: float, policy: Policy) -> bool:
    """A waiting task asks often; the same refusal is recorded only now and then."""
    want = locks.wanted.get(ask.task)
    return want is not None and want.resource == ask.resource and at - want.at < policy.contention_seconds


def _cycle(locks: Locks, first: TaskId, at: float) -> list[TaskId]:
    """The tasks that wait for each other's locks, beginning with this one; none if its chain of holders ends.

    A task waits for one resource at a time, so only a refusal closes a cycle, and there is never more than one.
    """
    path = [first]
    while (want := locks.wanted.get(path[-1])) and at < want.until:
        holder = locks.held[want.resource].task
        if holder == first:
            return path
        if holder in path:
            break
        path.append(holder)
    return []


def _broken(
    locks: Locks, cycle: Sequence[TaskId], started: Mapping[TaskId, float]
) -> tuple[LockReleased | DeadlockBroken, ...]:
    def age(task: TaskId) -> tuple[float, TaskId]:
        oldest = min(lock.at for lock in locks.held.values() if lock.task == task)
        return started.get(task, oldest), task

    victim = max(cycle, key=age)
    others = tuple(task for task in cycle if task != victim)
    broken = DeadlockBroken(task=victim, others=others, resource=locks.wanted[victim].resource)
    return (*released_by(locks, victim), broken)


def _after(locks: Locks, events: Sequence[LockEvent], at: float) -> Locks:
    return reduce(lambda part, event: evolve(part, event, at), events, locks)
