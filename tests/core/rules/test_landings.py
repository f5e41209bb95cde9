"""The landing queue: what lands next, what is tested together, and what is taken out."""

from collections.abc import Callable

import pytest
from tests.teams.toy import TOY, WRITERS, written

from iterdev.core.collaboration.tech_debt import DebtStatus
from iterdev.core.policy import Policy
from iterdev.core.results import Result
from iterdev.core.rules import landings, outcomes, rollback
from iterdev.core.rules.decide import decide
from iterdev.core.rules.record import record
from iterdev.core.rules.schedule import Land, Record, RunLandingTest, Start
from iterdev.core.session import events, fold
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Success
from iterdev.core.session.events import Entry, Event, Failed, Session
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestStarted
from iterdev.core.session.state import State
from iterdev.core.types import Engine, SessionId, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.core.views.why import why

Fails = Callable[[set[str]], bool]
"""Whether the tests fail with the work of these tasks."""


def name(number: int) -> TaskId:
    return TaskId(f"WRITE-{number:03d}")


class Queue:
    """A session whose tasks have all been begun on the same commit."""

    def __init__(self, count: int, fails: Fails = lambda _: False, *, engine: Engine = Engine.beat) -> None:
        session = Session(
            id=SessionId("toy-x"), team="writers", engine=engine, requirement="x", folder="f", base="b", branch="main"
        )
        policy = Policy(auto=True, concurrency=count, agents=dict.fromkeys(WRITERS.workers, "mine"))
        self.entries = [Entry(1, 1.0, events.SessionStarted(session, policy))]
        self.state: State = fold.replay(self.entries, WRITERS)
        self._fails = fails
        self.runs: list[tuple[TaskId, ...]] = []
        """The tasks that were tested together, run by run."""
        tasks = tuple(written(name(number)) for number in range(1, count + 1))
        self.happens(events.TasksAdded(tasks), events.EngineStarted(1, "b"))

    def happens(self, *happened: Event) -> None:
        entries, self.state = record(self.state, WRITERS, happened, 1.0)
        self.entries += entries

    def start(self, *tasks: TaskId) -> None:
        """Starts these tasks, or whatever is decided to start."""
        if self.state.session.engine is Engine.wave and not self.state.tasks.wave:
            self.happens(events.WaveStarted(1))
        starts = [one for one in decide(self.state, WRITERS, 1.0) if isinstance(one, Start)]
        for one in starts:
            if not tasks or one.task in tasks:
                self.happens(events.AttemptStarted(one.task, one.number, one.agent, self.state.branch.tip))

    def end(self, task: TaskId, outcome: Success | Failed | None = None) -> None:
        started = self.state.attempts.running[task]
        result = Result(id=task, status="completed", findings="done")
        done = Success(result=result, commit=f"{task}.{started.number}", changed=(f"{task}.txt",))
        number, fence = started.number, started.fence
        report = AttemptReport(task=task, number=number, fence=fence, requests=1, outcome=outcome or done)
        self.happens(*outcomes.attempt_ended(self.state, WRITERS, report, 1.0))

    def wait_for_landing(self) -> "Queue":
        """Starts everything; other work lands meanwhile, and then every task has something to land."""
        self.start()
        self.happens(events.TasksAdded((written(TaskId("OTHER")),)), events.EngineStarted(2, "b OTHER"))
        self.happens(events.TaskCompleted(TaskId("OTHER"), "by hand"))
        for task in list(self.state.attempts.running):
            self.end(task)
        return self

    def step(self) -> bool:
        """Carries out the next command about work that waits to land; False if nothing of it is left."""
        for command in landings.due(self.state, WRITERS):
            match command:
                case Land(task):
                    self.happens(*outcomes.landed(self.state, WRITERS, task, f"{self.state.branch.tip} {task}"))
                case RunLandingTest(tasks):
                    tip = self.state.branch.tip
                    self.happens(LandingTestStarted(tasks=tasks, tip=tip, commit=" ".join((tip, *tasks))))
                case Record(happened):
                    self.happens(*happened)
            return True
        return False

    def end_test(self, rate: float | None = None, *, interrupted: bool = False, host_died: bool = False) -> None:
        testing = self.state.landing_queue.testing
        assert testing
        self.runs.append(testing.tasks)
        rate = rate or (0.5 if self._fails({*testing.commit.split()}) else 1.0)
        failures = ("test_both",) if rate < 1 else ()
        found = Verification(pass_rate=rate, command="pytest", failures=failures, output="E assert 1 == 2")
        known = None if interrupted or host_died else found
        report = LandingTestReport(tasks=testing.tasks, verification=known, host_died=host_died)
        self.happens(*landings.tested(self.state, WRITERS, report))

    def land_all(self) -> "Queue":
        while self.step():
            if self.state.landing_queue.testing:
                self.end_test()
        return self

    @property
    def landed(self) -> list[TaskId]:
        return [entry.event.task for entry in self.entries if isinstance(entry.event, events.Landed)]

    @property
    def taken_out(self) -> list[TaskId]:
        return [entry.event.task for entry in self.entries if isinstance(entry.event, LandingTakenOut)]

    def status(self, task: TaskId) -> Status:
        return self.state.tasks.status(task)

    def why(self, task: TaskId) -> str:
        return why(self.state, WRITERS, task, engine_alive=True)[0]


def with_any(*bad: int) -> Fails:
    return lambda tasks: any(name(number) in tasks for number in bad)


def with_all(*bad: int) -> Fails:
    return lambda tasks: all(name(number) in tasks for number in bad)


def names(*numbers: int) -> list[TaskId]:
    return [name(number) for number in numbers]


def test_what_waits_is_tested_as_one_tree_and_lands_in_the_order_in_which_it_came() -> None:
    queue = Queue(8).wait_for_landing().land_all()

    assert queue.runs == [tuple(names(*range(1, 9)))]
    assert queue.landed == names(*range(1, 9))


@pytest.mark.parametrize("bad", range(1, 9))
def test_of_eight_landings_the_bad_one_is_found_with_at_most_five_test_runs(bad: int) -> None:
    queue = Queue(8, with_any(bad)).wait_for_landing().land_all()

    assert len(queue.runs) <= 5
    assert queue.taken_out == names(bad)
    assert queue.landed == names(*(number for number in range(1, 9) if number != bad))


@pytest.mark.parametrize("bad", [1, 23, 64])
def test_the_number_of_test_runs_grows_with_the_logarithm_of_the_queue(bad: int) -> None:
    queue = Queue(64, with_any(bad)).wait_for_landing().land_all()

    assert len(queue.runs) <= 8
    assert len(queue.landed) == 63


def test_of_two_changes_that_fail_together_the_later_one_is_taken_out() -> None:
    queue = Queue(6, with_all(2, 5)).wait_for_landing().land_all()

    assert queue.taken_out == names(5)
    assert queue.landed == names(1, 2, 3, 4, 6)


@pytest.mark.parametrize("seen", [lambda tasks: len(tasks) % 3 == 0, with_any(1, 3, 4), lambda _: True])
def test_only_what_was_tested_lands_however_the_tests_fail(seen: Fails) -> None:
    queue = Queue(7, seen).wait_for_landing()
    passed: set[tuple[str, ...]] = set()

    while queue.step():
        if testing := queue.state.landing_queue.testing:
            if not seen({*testing.commit.split()}):
                passed.add(tuple(testing.commit.split()))
            queue.end_test()
        tip = tuple(queue.state.branch.tip.split())
        assert len(tip) == 2 or any(one[: len(tip)] == tip for one in passed)

    assert sorted(queue.landed + queue.taken_out) == names(*range(1, 8))


def test_work_on_top_of_the_newest_commit_lands_without_another_test() -> None:
    queue = Queue(1)
    queue.start()
    queue.end(name(1))

    queue.land_all()

    assert queue.runs == []
    assert queue.landed == names(1)


def test_work_of_a_role_that_is_not_tested_lands_without_a_test() -> None:
    queue = Queue(2).wait_for_landing()

    assert landings.due(queue.state, TOY) == (Land(name(1)),)


def test_tests_that_say_nothing_do_not_keep_work_from_landing() -> None:
    queue = Queue(2).wait_for_landing()
    queue.step()

    report = LandingTestReport(tasks=tuple(names(1, 2)), verification=Verification(note="there are no tests"))
    queue.happens(*landings.tested(queue.state, WRITERS, report))

    assert landings.due(queue.state, WRITERS) == (Land(name(1)),)


@pytest.mark.parametrize("engine", Engine)
def test_work_that_is_taken_out_is_tried_once_more_with_the_failing_output_and_then_parked(engine: Engine) -> None:
    queue = Queue(3, with_any(2), engine=engine).wait_for_landing().land_all()
    again = queue.state.tasks.progress[name(2)]
    queue.start()
    queue.happens(events.TaskReported(task=TaskId("OTHER"), findings="", tip=f"{queue.state.branch.tip} MORE"))
    queue.end(name(2))

    queue.land_all()

    assert (again.status, again.commit, again.unmerged_commits) == (Status.pending, None, ("WRITE-002.1",))
    assert "test_both" in again.failure
    assert "E assert 1 == 2" in again.failure
    parked = queue.state.tasks.progress[name(2)]
    assert parked.status is Status.failed
    assert parked.unmerged_commits == ("WRITE-002.1", "WRITE-002.2")
    assert parked.error.endswith("the work is parked as refs/iterdev/toy-x/WRITE-002/2")
    (debt,) = queue.state.debt
    assert (debt.source_task_id, debt.status) == (name(2), DebtStatus.open)


def test_work_that_was_taken_out_is_parked_if_its_next_attempt_fails() -> None:
    queue = Queue(3, with_any(2)).wait_for_landing().land_all()
    queue.start()

    queue.end(name(2), Failed(error="the tests fail with the change", commit="c"))

    assert queue.status(name(2)) is Status.failed
    assert queue.state.tasks.progress[name(2)].error == (
        "the tests fail with the change; the work is parked as refs/iterdev/toy-x/WRITE-002/2"
    )
    assert ["the tests fail with the change" in debt.description for debt in queue.state.debt] == [True]


def test_a_failure_of_other_work_leaves_no_debt() -> None:
    queue = Queue(1)
    queue.start()

    queue.end(name(1), Failed(error="it broke"))

    assert list(queue.state.debt) == []


def test_work_that_comes_back_keeps_the_place_that_it_had() -> None:
    queue = Queue(5, with_any(1)).wait_for_landing()
    while not queue.taken_out:
        queue.step()
        if queue.state.landing_queue.testing:
            queue.end_test()
    queue.step()
    queue.start()
    queue.end(name(1))

    queue.end_test(interrupted=True)

    assert landings.waiting(queue.state) == names(1, 2, 3, 4, 5)


def test_what_comes_during_a_search_waits_for_its_end() -> None:
    queue = Queue(5, with_any(2))
    queue.start()
    queue.happens(events.TaskReported(task=name(5), findings="", tip="b OTHER"))
    for number in (1, 2, 3):
        queue.end(name(number))
    queue.step()
    queue.end(name(4))

    queue.end_test()
    waiting = landings.waiting(queue.state)
    queue.land_all()

    assert waiting == names(1, 2, 3, 4)
    assert queue.runs == [tuple(names(1, 2, 3)), tuple(names(1)), tuple(names(2)), tuple(names(3, 4))]
    assert queue.landed == names(1, 3, 4)


def test_other_tasks_start_while_the_tests_run() -> None:
    queue = Queue(3).wait_for_landing()
    queue.step()
    queue.happens(events.TasksAdded((written(name(9)),)))

    commands = decide(queue.state, WRITERS, 1.0)

    assert [one.task for one in commands if isinstance(one, Start)] == names(9)


def test_a_test_run_that_was_interrupted_is_repeated() -> None:
    queue = Queue(2).wait_for_landing()
    queue.step()

    queue.end_test(interrupted=True)

    assert landings.due(queue.state, WRITERS) == (RunLandingTest(tuple(names(1, 2))),)


def test_work_whose_test_runs_always_end_their_host_is_taken_out() -> None:
    queue = Queue(4).wait_for_landing()

    while queue.step():
        if testing := queue.state.landing_queue.testing:
            queue.end_test(host_died=name(3) in testing.tasks)

    assert queue.taken_out == names(3)
    assert queue.landed == names(1, 2, 4)
    assert "could not be completed: the host died during each of the last 3 test runs" in queue.state.warnings[-1]


def test_hosts_that_die_now_and_then_do_not_count_against_the_work() -> None:
    queue = Queue(2).wait_for_landing()

    for died in (True, True, False, True, True):
        queue.step()
        queue.end_test(rate=0.5, host_died=died)

    assert queue.taken_out == []


def test_a_new_engine_repeats_the_test_run_of_one_that_was_killed() -> None:
    queue = Queue(2).wait_for_landing()
    queue.step()

    queue.happens(events.EngineStarted(3, "b OTHER"))

    assert landings.due(queue.state, WRITERS) == (RunLandingTest(tuple(names(1, 2))),)


def test_what_passed_on_another_commit_is_tested_again() -> None:
    queue = Queue(2).wait_for_landing()
    queue.step()
    queue.end_test()

    queue.happens(events.TaskReported(task=TaskId("OTHER"), findings="", tip="b OTHER MORE"))

    assert landings.due(queue.state, WRITERS) == (RunLandingTest(tuple(names(1, 2))),)


def test_a_report_of_a_test_run_that_no_longer_counts_changes_nothing() -> None:
    queue = Queue(2).wait_for_landing()

    report = LandingTestReport(tasks=tuple(names(1, 2)), verification=Verification(pass_rate=1.0))

    assert landings.tested(queue.state, WRITERS, report) == ()


def test_a_retry_lets_parked_work_be_tried_as_often_as_new_work() -> None:
    queue = Queue(3, with_any(2)).wait_for_landing().land_all()
    queue.start()
    queue.end(name(2), Failed(error="no"))

    queue.happens(events.TasksReset((name(2),)))

    assert queue.state.landing_queue.taken_out == {}


def test_a_rollback_forgets_what_was_tested() -> None:
    queue = Queue(3, with_any(2)).wait_for_landing().land_all()

    queue.happens(*rollback.plan(queue.entries, WRITERS, name(1)))

    part = queue.state.landing_queue
    assert (part.testing, part.passed, part.failed, part.taken_out) == (None, None, None, {})
    assert queue.state.branch.tip == "b OTHER"
    assert {queue.status(task) for task in names(1, 2, 3)} == {Status.pending}


def test_why_says_what_work_that_waits_to_land_waits_for() -> None:
    queue = Queue(4, with_any(1))
    queue.start()
    queue.happens(events.TaskReported(task=name(4), findings="", tip="b OTHER"))
    queue.end(name(1))
    first = queue.why(name(1))
    queue.end(name(2))
    queue.step()
    queue.end(name(3))

    assert first == "WRITE-001 is landing: it lands next"
    assert queue.why(name(2)) == "WRITE-002 is landing: it is tested together with WRITE-001 on top of b OTHER"
    assert queue.why(name(3)) == (
        "WRITE-003 is landing: it waits in the landing queue behind WRITE-001, WRITE-002, because they came first, and "
        "the tests of WRITE-001, WRITE-002 are running"
    )

    queue.end_test()

    assert queue.why(name(3)) == (
        "WRITE-003 is landing: it waits in the landing queue behind WRITE-001, WRITE-002, because the tests fail with "
        "the work of WRITE-001, WRITE-002, and which of it is to blame has to be found first"
    )
