"""Resource locks: single requests, what they mean for tasks, and crowds of holders."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st
from tests.core.conftest import Outcome, Story, done, task

from iterdev.core.collaboration import locks
from iterdev.core.collaboration.locks import (
    DeadlockBroken,
    Lock,
    LockEvent,
    LockExpired,
    LockGranted,
    LockRefused,
    LockReleased,
    LockRenewed,
    LockRequest,
    Locks,
)
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.policy import Policy
from iterdev.core.rules.schedule import Cancel, Record, Wait
from iterdev.core.session.events import Failed, Interrupted, Limited, TaskFailed, TasksReset, WaveStarted
from iterdev.core.types import Engine, TaskId
from iterdev.core.views.session import session_view
from iterdev.core.views.why import why
from iterdev.teams.development.team import DEVELOPMENT

POLICY = Policy()
AGE, REPEAT = POLICY.lock_seconds, POLICY.contention_seconds
ONE, TWO, THREE = TaskId("DEV-001"), TaskId("DEV-002"), TaskId("DEV-003")


def ask(resource: str, name: TaskId = ONE) -> LockRequest:
    return LockRequest(resource=resource, task=name, role="developer")


class Desk:
    """Locks that are asked for one after the other, as the journal would hold them."""

    def __init__(self) -> None:
        self.now, self.locks, self.told = 1000.0, Locks(), list[LockEvent]()

    def asks(
        self,
        name: TaskId,
        resource: str,
        started: dict[TaskId, float] | None = None,
        dead: Sequence[TaskId] = (),
    ) -> bool:
        self._happens(
            locks.request(self.locks, ask(resource, name), self.now, POLICY, started=started or {}, dead=dead)
        )
        return self.locks.held[resource].task == name

    def releases(self, name: TaskId, resource: str) -> None:
        self._happens(locks.release(self.locks, resource, name, self.now))

    def broken(self) -> list[TaskId]:
        """The tasks that were aborted."""
        return [event.task for event in self.told if isinstance(event, DeadlockBroken)]

    def _happens(self, events: Sequence[LockEvent]) -> None:
        for event in events:
            self.locks = locks.evolve(self.locks, event, self.now)
            self.told.append(event)


@pytest.mark.requirement("R124")
def test_a_free_lock_is_granted_and_kept_with_task_time_and_role() -> None:
    desk = Desk()

    assert desk.asks(ONE, "a")

    assert desk.locks.held == {"a": Lock(task=ONE, role="developer", at=1000.0, until=1000.0 + AGE)}
    assert desk.told == [LockGranted(resource="a", task=ONE, role="developer", until=1000.0 + AGE)]


@pytest.mark.requirement("R125")
def test_a_lock_that_another_task_holds_is_refused_with_the_holder_s_id() -> None:
    desk = Desk()
    desk.asks(ONE, "a")

    assert not desk.asks(TWO, "a")

    assert desk.told[1:] == [LockRefused(resource="a", task=TWO, role="developer", holder=ONE, until=1000.0 + AGE)]
    assert desk.locks.held["a"].task == ONE


@pytest.mark.requirement("R126")
def test_the_holder_may_ask_again_and_its_lock_is_as_new() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.now += 200

    assert desk.asks(ONE, "a")

    assert desk.told[1:] == [LockRenewed(resource="a", task=ONE, until=1200.0 + AGE)]
    assert desk.locks.held["a"].at == 1200.0


@pytest.mark.requirement("R126")
def test_only_the_holder_can_release_a_lock() -> None:
    desk = Desk()
    desk.asks(ONE, "a")

    desk.releases(TWO, "a")
    still = dict(desk.locks.held)
    desk.releases(ONE, "a")

    assert list(still) == ["a"]
    assert desk.locks.held == {}
    assert desk.told[1:] == [LockReleased(resource="a", task=ONE)]
    assert desk.asks(TWO, "a")


@pytest.mark.requirement("R127")
@pytest.mark.parametrize(("age", "granted"), [(AGE - 1, False), (AGE, True), (5000, True)])
def test_a_lock_that_is_5_minutes_old_is_taken_away(age: float, granted: bool) -> None:  # noqa: FBT001 - a column
    desk = Desk()
    desk.asks(ONE, "a")
    desk.now += age

    assert AGE == 5 * 60
    assert desk.asks(TWO, "a") is granted
    assert (LockExpired(resource="a", task=ONE, role="developer") in desk.told) is granted


@pytest.mark.requirement("R128")
@pytest.mark.parametrize(("victim", "other"), [(ONE, TWO), (TWO, ONE)])
def test_of_two_tasks_that_wait_for_each_other_the_one_that_was_started_last_is_aborted(
    victim: TaskId, other: TaskId
) -> None:
    desk = Desk()
    started = {other: 1.0, victim: 2.0}
    desk.asks(ONE, "a", started)
    desk.asks(TWO, "b", started)
    desk.asks(ONE, "b", started)

    granted = desk.asks(TWO, "a", started)

    (broken,) = [event for event in desk.told if isinstance(event, DeadlockBroken)]
    assert (broken.task, broken.others) == (victim, (other,))
    assert granted is (victim == ONE)
    assert victim not in {lock.task for lock in desk.locks.held.values()}
    assert victim not in desk.locks.wanted


@pytest.mark.requirement("R128")
def test_a_circle_of_three_is_found_when_it_closes_and_only_one_task_is_aborted() -> None:
    desk = Desk()
    started = {ONE: 1.0, TWO: 2.0, THREE: 3.0}
    for name, resource in ((ONE, "a"), (TWO, "b"), (THREE, "c"), (ONE, "b"), (TWO, "c"), (THREE, "a")):
        desk.asks(name, resource, started)

    broken = [event for event in desk.told if isinstance(event, DeadlockBroken)]
    assert [event.task for event in broken] == [THREE]
    assert set(broken[0].others) == {ONE, TWO}
    assert desk.asks(TWO, "c", started)


def test_tasks_that_do_not_run_are_as_old_as_their_oldest_lock() -> None:
    desk = Desk()
    desk.asks(TWO, "b")
    desk.now += 1
    desk.asks(ONE, "a")
    desk.asks(TWO, "a")
    desk.asks(ONE, "b")

    assert desk.broken() == [ONE]


def test_a_task_that_was_refused_long_ago_does_not_wait_any_more() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.asks(TWO, "b")
    desk.asks(ONE, "b")
    for name, resource in ((TWO, "b"), (ONE, "a"), (TWO, "b")):
        desk.now += AGE / 2
        desk.asks(name, resource)

    assert not desk.asks(TWO, "a")
    assert not desk.broken()

    assert not desk.asks(ONE, "b", {ONE: 2, TWO: 1})
    assert desk.broken() == [ONE]


def test_a_task_that_releases_what_it_was_refused_does_not_wait_any_more() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.asks(TWO, "b")
    desk.asks(ONE, "b")
    desk.releases(ONE, "b")

    assert not desk.asks(TWO, "a")
    assert not desk.broken()
    assert desk.locks.held["b"].task == TWO


@pytest.mark.parametrize("pause", [20, 59, 61, 119, 150, 299])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_tasks_that_keep_their_locks_and_wait_for_each_other_are_found_however_seldom_they_ask(
    pause: float, share: float
) -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.asks(TWO, "b")
    for _ in range(3):
        desk.now += pause * share
        desk.asks(ONE, "a")
        desk.asks(ONE, "b")
        desk.now += pause * (1 - share)
        if not desk.broken():
            desk.asks(TWO, "b")
            desk.asks(TWO, "a")

    assert len(desk.broken()) == 1


def test_a_task_that_took_something_else_does_not_wait_any_more() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.asks(TWO, "b")
    desk.asks(ONE, "b")
    desk.asks(ONE, "c")

    assert not desk.asks(TWO, "a")
    assert not desk.broken()


def test_whoever_asks_again_and_again_is_heard_only_now_and_then() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    for _ in range(120):
        desk.now += 1
        desk.asks(TWO, "a")

    refusals = [event for event in desk.told if isinstance(event, LockRefused)]
    assert len(refusals) == 120 / REPEAT


def test_the_locks_of_a_task_whose_attempt_died_are_free_for_the_next_who_asks() -> None:
    desk = Desk()
    desk.asks(ONE, "a")
    desk.asks(ONE, "b")

    assert desk.asks(TWO, "a", dead=[ONE])
    assert list(desk.locks.held) == ["a"]


# What locks mean for the tasks of a session.


def side_by_side(engine: Engine = Engine.beat) -> Story:
    """Two developers at work, the second one started later."""
    story = Story(task("DEV-001"), task("DEV-002"), engine=engine)
    if engine is Engine.wave:
        story.happens(WaveStarted(1))
    story.starts("DEV-001")
    story.now += 1
    story.starts("DEV-002")
    return story


def asks(story: Story, name: TaskId, resource: str) -> None:
    state = story.state
    story.happens(*locks.request(state.locks, ask(resource, name), story.now, state.policy, started=state.started))


def deadlocked(engine: Engine = Engine.beat) -> Story:
    story = side_by_side(engine)
    for name, resource in ((ONE, "a"), (TWO, "b"), (ONE, "b"), (TWO, "a")):
        asks(story, name, resource)
    return story


def told(story: Story, kind: str) -> list[str]:
    return [message.summary for message in story.state.messages.sent if message.type == kind]


@pytest.mark.requirement("R126")
@pytest.mark.parametrize(
    "outcome",
    [
        done("done"),
        done("done", commit="c1"),
        Failed(error="broke"),
        Limited(error="429", reset_at=5000),
        Interrupted(),
    ],
    ids=["done", "landing", "failed", "limited", "interrupted"],
)
def test_when_an_attempt_ends_its_locks_are_free_at_once_and_everybody_is_told(outcome: Outcome) -> None:
    story = side_by_side()
    asks(story, ONE, "a")
    asks(story, TWO, "b")
    asks(story, ONE, "b")

    story.ends("DEV-001", outcome)

    assert list(story.state.locks.held) == ["b"]
    assert story.state.locks.wanted == {}
    assert told(story, "resource_unlocked") == ['[coordinator] DEV-001 released "a"']
    assert {message.to for message in story.state.messages.sent if message.type == "resource_unlocked"} == {"all"}


def test_the_locks_of_a_task_that_never_starts_are_free_when_it_fails() -> None:
    story = Story(task("DEV-001"))
    asks(story, ONE, "a")

    story.happens(TaskFailed(ONE, "no time left"))

    assert story.state.locks == Locks()


@pytest.mark.requirement("R127")
def test_the_engine_takes_an_old_lock_away_and_looks_again_just_when_it_is_due() -> None:
    story = side_by_side()
    asks(story, ONE, "a")

    before = story.decides()
    story.now += AGE
    (record,) = story.decides()
    story.happens(*record.events)

    assert Wait(story.now) in before
    assert record == Record((LockExpired(resource="a", task=ONE, role="developer"),))
    assert story.state.locks.held == {}
    (message,) = [message for message in story.state.messages.sent if message.data.get("forced")]
    assert (message.type, message.to, message.data["task"]) == ("resource_unlocked", "all", ONE)
    assert "DEV-001" in message.summary
    assert any('"a"' in warning for warning in story.state.warnings)


@pytest.mark.requirement("R128")
@pytest.mark.parametrize("engine", list(Engine))
@pytest.mark.parametrize("outcome", [Interrupted(commit="kept"), Limited(error="429", reset_at=1)])
def test_the_attempt_of_an_aborted_task_is_cancelled_and_the_task_fails(engine: Engine, outcome: Outcome) -> None:
    story = deadlocked(engine)

    commands = story.decides()
    story.ends("DEV-002", outcome)

    assert Cancel(TWO) in commands
    assert [story.status(name) for name in ("DEV-001", "DEV-002")] == ["in_progress", "failed"]
    assert "DEV-001" in story.state.tasks.progress[TWO].error
    assert Cancel(TWO) not in story.decides()
    assert [message.data["task"] for message in story.state.messages.sent if message.data.get("deadlock")] == [TWO]
    assert "DEV-002 was aborted" in told(story, "error")[0]


def test_work_that_an_aborted_task_handed_in_before_it_was_ended_counts() -> None:
    story = deadlocked()

    story.ends("DEV-002", done("just in time"))

    assert story.status("DEV-002") == "completed"
    assert story.state.attempts.aborted == {}


def test_an_aborted_task_can_be_run_again() -> None:
    story = deadlocked()
    story.ends("DEV-002", Interrupted())
    story.happens(TasksReset((TWO,)))

    story.does("DEV-002")

    assert story.status("DEV-002") == "completed"


def test_a_task_that_is_not_running_loses_its_locks_in_a_deadlock_and_nothing_else() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), engine=Engine.beat)
    for name, resource in ((ONE, "a"), (TWO, "b"), (ONE, "b"), (TWO, "a")):
        asks(story, name, resource)

    story.does("DEV-002")

    assert story.status("DEV-002") == "completed"


# Crowds.


class Worker:
    """A task that needs some resources at once, works for a while, gives them back, and is done."""

    def __init__(self, name: TaskId, wants: list[str], work: int, *, hangs: bool, dies: bool) -> None:
        self.name, self.wants, self.work, self.hangs, self.dies = name, wants, work, hangs, dies
        self.holds: set[str] = set()
        self.waits_for = ""
        self.is_over = False


class Crowd:
    """Workers that take turns as chance will have it, and check with a record of their own that nobody cheats."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.now = 1000.0
        self.locks = Locks()
        self.aborted = 0
        names = [f"r{number}" for number in range(chance.randint(1, 4))]
        self.workers = {
            name: Worker(
                name,
                chance.sample(names, chance.randint(1, len(names))),
                chance.randint(0, 5),
                hangs=chance.random() < 0.15,
                dies=chance.random() < 0.15,
            )
            for name in (TaskId(f"DEV-{number:03d}") for number in range(chance.randint(2, 8)))
        }
        self.started = {name: chance.uniform(0, 1000) for name in self.workers if chance.random() < 0.8}

    def live(self) -> None:
        """Everybody is over in the end, and no later than if each had waited for all of the others to time out."""
        end = self.now + 2 * AGE * (len(self.workers) + 1)
        while left := [worker for worker in self.workers.values() if not worker.is_over]:
            assert self.now < end, [worker.name for worker in left]
            for worker in self.chance.sample(left, len(left)):
                self.now += self.chance.choice((0, 1, 5, 30))
                self.happens(locks.expired(self.locks, self.now))
                if not worker.is_over:
                    self.turn(worker)

    def turn(self, worker: Worker) -> None:
        if worker.hangs and worker.holds:
            # It never says another word; what it holds stays locked until it is too old.
            worker.is_over = True
        elif worker.dies and worker.holds:
            self.ends(worker)
        elif missing := [resource for resource in worker.wants if resource not in worker.holds]:
            self.asks(worker, missing[0])
        elif worker.work:
            worker.work -= 1
        else:
            self.gives_back(worker)
        for resource in sorted(worker.holds):
            self.asks(worker, resource)

    def asks(self, worker: Worker, resource: str) -> None:
        if worker.is_over:
            return
        request = ask(resource, worker.name)
        worker.waits_for = worker.waits_for if resource in worker.holds else resource
        self.happens(locks.request(self.locks, request, self.now, POLICY, started=self.started))
        assert (resource in worker.holds) == (self.locks.held[resource].task == worker.name)

    def gives_back(self, worker: Worker) -> None:
        for resource in list(worker.holds):
            self.happens(locks.release(self.locks, resource, worker.name, self.now))
        assert not worker.holds
        worker.is_over = True

    def ends(self, worker: Worker) -> None:
        """Its attempt died: its locks are released."""
        self.happens(locks.task_ended(self.locks, worker.name))
        worker.holds.clear()
        worker.is_over = True

    def happens(self, events: Sequence[LockEvent]) -> None:
        before = {name: frozenset(worker.holds) for name, worker in self.workers.items()}
        for event in events:
            self.check(event, before)
            self.locks = locks.evolve(self.locks, event, self.now)

    def check(self, event: LockEvent, before: dict[TaskId, frozenset[str]]) -> None:
        """Told in the order of the journal, no resource has two holders, and nobody is aborted without need."""
        match event:
            case LockGranted(resource=resource, task=name):
                assert not [other for other in self.workers.values() if resource in other.holds]
                self.workers[name].holds.add(resource)
                self.workers[name].waits_for = ""
            case LockReleased(resource=resource, task=name) | LockExpired(resource=resource, task=name):
                self.workers[name].holds.remove(resource)
            case DeadlockBroken(task=name, others=others):
                circle = {name, *others}
                for member in circle:
                    held_by_the_rest = frozenset().union(*(before[other] for other in circle - {member}))
                    assert self.workers[member].waits_for in held_by_the_rest
                assert not self.workers[name].holds
                self.workers[name].is_over = True
                self.aborted += 1


crowds = chosen(max_examples=1000, derandomize=True, deadline=None, database=None)


@pytest.mark.requirement("R124", "R125", "R126", "R127", "R128")
@crowds
@given(st.randoms(use_true_random=True))
def test_a_crowd_never_has_two_holders_and_nobody_waits_for_ever(chance: Random) -> None:
    Crowd(chance).live()


def test_the_crowds_of_the_property_do_meet_deadlocks() -> None:
    crowds_seen = [Crowd(Random(seed)) for seed in range(100)]
    for crowd in crowds_seen:
        crowd.live()

    assert sum(crowd.aborted for crowd in crowds_seen) > 20


def test_why_names_the_lock_that_a_task_waits_for_and_who_holds_it() -> None:
    story = side_by_side()
    asks(story, ONE, "src/a.py")
    asks(story, TWO, "src/a.py")

    waiting = why(story.state, DEVELOPMENT, TWO, engine_alive=True)
    holding = why(story.state, DEVELOPMENT, ONE, engine_alive=True)
    (line,) = [line for line in session_view(story.state, DEVELOPMENT).tasks if line.id == TWO]

    assert any('the lock on "src/a.py", held by DEV-001 (developer)' in text for text in waiting)
    assert not any("lock" in text for text in holding)
    assert "DEV-001" in line.note


def test_a_machine_that_slept_takes_no_lock_from_its_task() -> None:
    story = Story(task("DEV-001"))
    story.goes_on()
    story.starts("DEV-001")
    story.happens(*locks.request(Locks(), ask("db"), story.now, POLICY, started={}))
    story.now += 10 * AGE
    story.happens(ClockChanged(10 * AGE))

    assert locks.expired(story.state.locks, story.now + AGE - 1) == ()
    assert locks.expired(story.state.locks, story.now + AGE)
