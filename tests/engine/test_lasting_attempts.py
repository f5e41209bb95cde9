"""Attempts that go on without their engine: how it leaves them, and how the next one takes them up."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext

import anyio
import pytest
from tests.conftest import Repo
from tests.engine.conftest import PATIENCE, Runs

from iterdev.app.doctor import findings
from iterdev.core.errors import HostError
from iterdev.core.session.attempts import AttemptReport, Report
from iterdev.core.session.events import AttemptEnded, AttemptStarted, Failed, Interrupted
from iterdev.core.types import Ending, TaskId
from iterdev.engine.effects import Effects
from iterdev.engine.loop import BeforeStarts, Loop, RunScope
from iterdev.engine.perform import Performer
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver, drive, no_answer
from iterdev.execution.contract import Job
from iterdev.host.clock import ClockWatch
from iterdev.store.session_log import SessionLog

DEV = TaskId("DEV-001")


class Hosts:
    """An executor of which the test knows what the hosts do."""

    where = "hosts"

    def __init__(self, *outcomes: Failed | Interrupted) -> None:
        self.jobs: list[Job] = []
        self.cancelled: list[TaskId] = []
        self.absent: dict[str, str] = {}
        self._outcomes, self._reports = list(outcomes), list[Report]()

    async def lacking(self, agents: Collection[str]) -> Mapping[str, str]:
        return {name: why for name, why in self.absent.items() if name in agents}

    async def submit(self, job: Job, **_: bool) -> None:
        self.jobs.append(job)
        if self._outcomes:
            outcome, name = self._outcomes.pop(0), job.task.id
            report = AttemptReport(task=name, number=job.number, fence=job.fence, requests=1, outcome=outcome)
            self._reports.append(report)

    async def report(self) -> Report:
        if not self._reports:
            await anyio.sleep_forever()
        return self._reports.pop(0)

    async def cancel(self, task: TaskId) -> None:
        self.cancelled.append(task)


class Session:
    """One whose first task is ready to start."""

    def __init__(self, repo: Repo) -> None:
        self._runs = Runs(repo, "true")
        self.repository, self.id = self._runs.repository, self._runs.session
        assert self.drive(Hosts(), BeforeStarts()) is Ending.stepped

    @property
    def log(self) -> SessionLog:
        return self.repository.log(self.id)

    def drive(self, hosts: Hosts, scope: RunScope | None = None) -> Ending:
        async def limited() -> Ending:
            with anyio.fail_after(PATIENCE):
                return await drive(
                    self.repository, self.id, RunObserver(), scope=scope, executor=lambda *_: nullcontext(hosts)
                )

        return anyio.run(limited)

    def stops(self, log: SessionLog, hosts: Hosts, *, leaves: bool = False) -> Ending:
        """Runs an engine that is told to stop at once."""

        async def stopped() -> Ending:
            stop = anyio.Event()
            stop.set()
            loop = Loop(
                log=log,
                executor=hosts,
                performer=Performer(self.repository, log, Effects(), lambda _: None),
                stop=stop,
                ask=no_answer,
                scope=RunScope(),
                clock=ClockWatch(log.now),
                patience=0.01,
                leaves=lambda: leaves,
            )
            log.refresh()
            with anyio.fail_after(PATIENCE):
                return await loop.run()

        return anyio.run(stopped)

    def drive_here(self) -> Ending:
        return self._runs.drive()

    def loses_its_agent(self) -> None:
        """The program of the agent is not on this machine any more."""
        file = self.repository.top / "iterdev.toml"
        file.write_text(file.read_text().partition("script")[0] + 'command = ["no-such-program"]\n')
        self.repository.close()
        self.repository = self._runs.repository = Repository(self.repository.top)

    def starts(self, where: str) -> AttemptStarted:
        log = self.log
        log.record(AttemptStarted(DEV, 1, "played", log.state.branch.tip, where=where))
        return log.state.attempts.running[DEV]


@pytest.fixture
def session(environment: Repo) -> Iterator[Session]:
    session = Session(environment)
    yield session
    session.repository.close()


def test_an_interrupt_does_not_wait_for_ever_for_a_host_that_says_nothing(session: Session) -> None:
    log, hosts = session.log, Hosts()
    session.starts("hosts")

    ending = session.stops(log, hosts)

    assert ending is Ending.interrupted
    assert hosts.cancelled == [DEV]
    assert list(log.state.attempts.running) == [DEV]
    assert log.state.warnings[-1] == (
        f"DEV-001: no host has said that it ended; `iterdev resume {session.id}` waits for it"
    )


def test_an_engine_that_is_ended_by_its_machine_leaves_the_attempts_of_hosts_alone(session: Session) -> None:
    log, hosts = session.log, Hosts()
    session.starts("hosts")

    ending = session.stops(log, hosts, leaves=True)

    assert ending is Ending.interrupted
    assert hosts.cancelled == []
    assert list(log.state.attempts.running) == [DEV]
    assert not log.state.warnings


def test_the_next_engine_submits_an_open_attempt_again_as_the_one_it_is(session: Session) -> None:
    started, hosts = session.starts("hosts"), Hosts(Failed(error="it broke"))

    ending = session.drive(hosts)

    first = hosts.jobs[0]
    assert (first.task.id, first.number, first.fence, first.base) == (DEV, 1, started.fence, started.base)
    assert ending is Ending.over
    ended = [one.event for one in session.repository.journal.read(session.id) if isinstance(one.event, AttemptEnded)]
    assert ended[0].outcome == Failed(error="it broke")


def test_an_attempt_that_the_next_engine_cannot_reach_is_made_again(session: Session) -> None:
    session.starts("hosts")

    ending = session.drive_here()

    assert ending is Ending.over
    ended = [one.event for one in session.repository.journal.read(session.id) if isinstance(one.event, AttemptEnded)]
    assert (ended[0].task, ended[0].number, ended[0].outcome) == (DEV, 1, Interrupted())
    assert "DEV-001: attempt 1, which was begun with hosts, is given up; what it still reports is not used" in (
        session.log.state.warnings
    )


def test_the_executor_says_which_agents_there_are(session: Session) -> None:
    hosts = Hosts()
    hosts.absent = {"played": "2 hosts are there, and none has it"}
    before = session.log.state

    with pytest.raises(HostError, match='No host offers the agent "played": 2 hosts are there, and none has it'):
        session.drive(hosts)

    assert hosts.jobs == []
    assert session.log.state.attempts == before.attempts
    assert session.log.state.why == 'No host offers the agent "played": 2 hosts are there, and none has it'


def test_an_agent_that_is_only_on_hosts_is_used_there(session: Session) -> None:
    session.loses_its_agent()
    with pytest.raises(HostError, match='The agent "played" cannot be used'):
        session.drive_here()

    ending = session.drive(hosts := Hosts(Failed(error="it broke")))

    assert ending is Ending.over
    assert [job.agent for job in hosts.jobs][:1] == ["played"]


def test_a_host_that_fails_costs_its_attempt_and_not_the_session(session: Session) -> None:
    broken = Interrupted(problem="no space left on device")

    ending = session.drive(hosts := Hosts(broken, broken, Failed(error="it broke")))

    assert ending is Ending.over
    assert [job.number for job in hosts.jobs] == [1, 2, 3]


def test_a_task_that_no_host_can_carry_out_stops_the_run_until_it_is_resumed(session: Session) -> None:
    broken = Interrupted(problem="the setup failed: no compiler")

    with pytest.raises(
        HostError, match="DEV-001: no host could carry out its last 3 attempts: the setup failed"
    ) as raised:
        session.drive(Hosts(broken, broken, broken))
    resumed = session.drive(hosts := Hosts(broken, Failed(error="it broke")))

    assert raised.value.hint.startswith(f"iterdev resume {session.id}")
    assert resumed is Ending.over
    assert [job.number for job in hosts.jobs] == [4, 5]


@pytest.mark.parametrize(("where", "problem"), [("hosts", ""), ("", "its engine died")])
def test_doctor_does_not_take_an_attempt_elsewhere_for_a_dead_one(session: Session, where: str, problem: str) -> None:
    session.starts(where)

    (found,) = (one for one in findings(session.repository.top) if one.subject == f"session {session.id}")

    assert found.problem == problem
