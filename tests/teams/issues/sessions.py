"""Sessions of the issue team without a machine: the kernel decides, and functions play the agents and the user."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from iterdev.core.request import Request, new_session, policy, session_facts
from iterdev.core.rules import landings
from iterdev.core.rules.decide import decide
from iterdev.core.rules.outcomes import attempt_ended, landed
from iterdev.core.rules.record import record
from iterdev.core.rules.schedule import Land, Record, RunLandingTest, Start
from iterdev.core.session import events, fold
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Success
from iterdev.core.session.events import Entry, Event, Failed
from iterdev.core.session.landing_events import LandingTestStarted
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import IssueSettings, OnRejection, Settings
from iterdev.core.types import Engine, SessionId, TaskId
from iterdev.core.verification import Measurement, Verification
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.results import (
    Audit,
    Build,
    Dimension,
    Exploration,
    Integration,
    IssueAudit,
    IssueContext,
    PlannedSolution,
    PlannedTask,
    Planning,
)
from iterdev.teams.issues.roles import Role, fields
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import Description

Outcome = Success | Failed
Agents = Callable[[Task, State], Outcome | None]
"""What an agent hands in; None for what agents usually do."""


def facts(number: int, priority: int = 3) -> IssueFacts:
    return IssueFacts(id=f"GH-{number}", description=Description(title=f"Problem {number}", priority=priority))


def beginning(request: Request, issues: Sequence[IssueFacts], method: str, settings: Settings) -> list[Event]:
    asked = Request(
        requirement=request.requirement,
        auto=request.auto,
        concurrency=request.concurrency,
        pipeline=request.pipeline,
        engine=request.engine,
        prepared=IssueRequest(issues=tuple(issues), method=method),
    )
    named = {"team": ISSUES.name, "name": SessionId("issue-x-20260308"), "base": "b", "branch": "main"}
    session = session_facts(asked, **named, agents={}, by_hand=False)
    limits = policy(settings, ISSUES.workers, ISSUES.time_limits, auto=asked.auto, concurrency=asked.concurrency)
    return new_session(session, limits, ISSUES.started(asked, settings, {}))


def planned(issue: str, *files: str, tasks: int = 1, **more: object) -> PlannedSolution:
    names = files or (f"{issue}.py",)
    steps = tuple(PlannedTask(id=f"T{number}", title="do it", files=names) for number in range(1, tasks + 1))
    return PlannedSolution(issue_id=issue, approach="write it", tasks=steps, **more)


def plan(task: Task, *solutions: PlannedSolution) -> Success:
    return Success(result=Planning(id=task.id, status="completed", findings="planned", solutions=solutions))


def audit(task: Task, scores: Mapping[str, float]) -> Success:
    """One score for all dimensions of each issue."""
    audits = tuple(
        IssueAudit(
            issue_id=issue,
            technical_feasibility=Dimension(score=score, findings=("thin",) if score < 60 else ()),
            risk_assessment=Dimension(score=score),
            completeness=Dimension(score=score),
        )
        for issue, score in scores.items()
    )
    return Success(result=Audit(id=task.id, status="completed", findings="audited", audits=audits))


def built(task: Task, rate: float | None = 1.0) -> Success:
    """Work whose tests passed, or of which nothing is known."""
    found = Verification(pass_rate=rate, command="pytest", total=3, note="" if rate else "there are no tests")
    return Success(
        result=Build(id=task.id, status="completed", findings=f"{task.id} is done"),
        commit=f"commit {task.id}",
        changed=tuple(f"{name}.py" for name in fields(task).issues),
        measured=Measurement(verification=found),
    )


def usual(task: Task) -> Success:
    """What an agent of the task's role hands in when nothing is special."""
    names, common = fields(task).issues, {"id": task.id, "status": "completed", "findings": f"{task.id} is done"}
    match task.role:
        case Role.explorer:
            return Success(result=Exploration(**common, contexts=tuple(IssueContext(issue_id=name) for name in names)))
        case Role.planner:
            return plan(task, *(planned(name) for name in names))
        case Role.reviewer:
            return audit(task, dict.fromkeys(names, 90))
        case Role.integrator:
            return Success(result=Integration(**common, order=names))
        case _:
            return built(task)


class Run:
    """One session from its beginning to its end."""

    def __init__(
        self,
        count: int = 1,
        agents: Agents = lambda _task, _state: None,
        answers: Mapping[str, str] | None = None,
        *,
        priority: int = 3,
        method: str = "gemini",
        asks: bool = False,
        fails: Callable[[set[str]], bool] = lambda _tasks: False,
        auto: bool = True,
        concurrency: int = 3,
        engine: Engine = Engine.wave,
        pipeline: str | None = None,
    ) -> None:
        self._play(agents, {"plan": "accept", **(answers or {})}, fails)
        request = Request(
            requirement="Resolve them", auto=auto, concurrency=concurrency, engine=engine, pipeline=pipeline
        )
        rule = OnRejection.ask if asks else OnRejection.proceed
        issues = [facts(number, priority if number == 1 else 3) for number in range(1, count + 1)]
        self._begin(beginning(request, issues, method, Settings(issue=IssueSettings(on_rejection=rule))))

    @classmethod
    def of(cls, happened: Sequence[Event]) -> "Run":
        """A session that has begun elsewhere goes on, with what agents usually do."""
        run = cls.__new__(cls)
        run._play(lambda _task, _state: None, {}, lambda _tasks: False)
        run._begin(happened)
        return run

    def _play(self, agents: Agents, answers: Mapping[str, str], fails: Callable[[set[str]], bool]) -> None:
        self._agents, self._answers, self._fails = agents, answers, fails
        self.starts: list[tuple[TaskId, ...]] = []
        """The tasks that were running whenever one started."""
        self.tested: list[tuple[TaskId, ...]] = []
        """The tasks whose work was tested together, run by run."""

    def _begin(self, happened: Sequence[Event]) -> None:
        self.entries = [Entry(1, 1.0, happened[0])]
        self.state = fold.replay(self.entries, ISSUES)
        self.go_on(*happened[1:], events.EngineStarted(1, "b"))

    def go_on(self, *happened: Event) -> None:
        """Goes on until the session is over or waits for the user, after something has happened."""
        self._append(*happened)
        while not self.state.lifecycle.is_over:
            if not self._step():
                break

    def _append(self, *happened: Event) -> None:
        entries, self.state = record(self.state, ISSUES, happened, 2.0)
        self.entries += entries

    def _step(self) -> bool:
        commands = decide(self.state, ISSUES, 2.0)
        for command in commands:
            match command:
                case Record(happened):
                    self._append(*happened)
                case Start(task=task, number=number, agent=agent):
                    self._append(events.AttemptStarted(task, number, agent, self.state.branch.tip))
                    self.starts.append(tuple(self.state.attempts.running))
                case Land(task):
                    self._append(*landed(self.state, ISSUES, task, f"{self.state.branch.tip} {task}"))
                case RunLandingTest(tasks):
                    tip = self.state.branch.tip
                    self._append(LandingTestStarted(tasks=tasks, tip=tip, commit=" ".join((tip, *tasks))))
                case _:
                    pass
        return bool(commands) or self._happened()

    def _happened(self) -> bool:
        if task := next(iter(self.state.attempts.running), None):
            row = self.state.tasks.plan[task]
            started = self.state.attempts.running[task]
            outcome = self._agents(row, self.state) or usual(row)
            report = AttemptReport(task=task, number=started.number, fence=started.fence, requests=1, outcome=outcome)
            self._append(*attempt_ended(self.state, ISSUES, report, 2.0))
            return True
        if testing := self.state.landing_queue.testing:
            self.tested.append(testing.tasks)
            rate = 0.5 if self._fails({*testing.commit.split()}) else 1.0
            found = Verification(pass_rate=rate, command="pytest", total=2, failures=("test_both",) if rate < 1 else ())
            report = LandingTestReport(tasks=testing.tasks, verification=found)
            self._append(*landings.tested(self.state, ISSUES, report))
            return True
        for gate in self.state.gates.open:
            if gate in self._answers:
                self._append(events.GateAnswered(gate, self._answers[gate]))
                return True
        return False

    @property
    def waves(self) -> list[list[str]]:
        """The tasks of each wave, in the order of the table."""
        found: dict[int, list[str]] = {}
        for task, _ in self.state.tasks.rows():
            found.setdefault(task.wave, []).append(task.id)
        return [found[wave] for wave in sorted(found)]

    def most_at_once(self, prefix: str) -> int:
        return max(sum(task.startswith(prefix) for task in running) for running in self.starts)


def random_work(chance: Random, task: Task) -> Success:
    """What an agent hands in for the simulator, which makes no difference between good and bad days."""
    if task.role == Role.reviewer:
        return audit(task, {name: chance.choice((90, 70, 40)) for name in fields(task).issues})
    if task.role == Role.planner:
        files = chance.choice(((), ("a.py",), ("b.py",)))
        return plan(task, *(planned(name, *files, tasks=chance.randint(1, 5)) for name in fields(task).issues))
    return usual(task)
