"""What the tests of the core share: sessions told event by event, and short words for long values."""

from collections.abc import Sequence

from iterdev.core.results import Component, Design, Finding, Review, Scores, WorkItem
from iterdev.core.session.decide import Command, Land, Record, Start, decide
from iterdev.core.session.events import (
    AttemptEnded,
    AttemptStarted,
    Done,
    Entry,
    Event,
    Failed,
    Landed,
    Outcome,
    Policy,
    Session,
    SessionStarted,
    TasksAdded,
)
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, with_waves
from iterdev.core.types import WORKERS, Engine, Mode, Pipeline, Role, SessionId, TaskId, Team
from iterdev.core.verification import Verification
from iterdev.teams.development.requirement_analysis import analyse

ROLES = {
    "DESIGN": Role.architect,
    "DEV": Role.developer,
    "VERIFY": Role.tester,
    "REVIEW": Role.reviewer,
    "GC-CHECK": Role.gc_controller,
}


def task(
    name: str,
    *deps: str,
    sprint: int = 1,
    round: int = 0,  # noqa: A002 - the field's own name
    context: Sequence[str] = (),
    pipeline: Pipeline = Pipeline.sprint,
    mode: Mode | None = None,
) -> Task:
    """A row whose role follows from its id; the check of the critic loop is interactive, as in the templates."""
    role = ROLES[name.rpartition("-")[0].removesuffix("-fix")]
    return Task(
        id=TaskId(name),
        title=f"title of {name}",
        description=f"work of {name}",
        role=role,
        pipeline=pipeline,
        sprint=sprint,
        round=round,
        deps=tuple(map(TaskId, deps)),
        context_from=tuple(map(TaskId, context)),
        mode=mode or (Mode.interactive if role is Role.gc_controller else Mode.csv_wave),
    )


def review(score: float = 9, *severities: str) -> Review:
    """A review that gives every dimension the same score, with one finding of each severity."""
    issues = tuple(
        Finding(severity=severity, description=f"{severity} problem", file="app.py", line=number)
        for number, severity in enumerate(severities, 1)
    )
    scores = Scores(correctness=score, completeness=score, maintainability=score, security=score)
    return Review(id="REVIEW-001", status="completed", scores=scores, issues=issues)


def measured(rate: float | None = 1.0) -> Verification:
    """A test run with this pass rate; every run below 1 names one failing test."""
    failures = ("test_a",) if rate is not None and rate < 1 else ()
    return Verification(command="pytest -q", pass_rate=rate, total=100, failures=failures, output="E assert 1 == 2")


def a_design() -> Design:
    return Design(
        id="DESIGN-001",
        status="completed",
        design="# Design\n\nOne module.",
        components=(Component(name="export", dependencies=()),),
        tasks=(
            WorkItem(id="task-1", title="Write it", files=("export.py",), acceptance_criteria=("it exports",)),
            WorkItem(id="task-2", title="Call it", dependencies=("task-1",)),
        ),
    )


def session(engine: Engine = Engine.wave, requirement: str = "Add export endpoint", **facts: object) -> Session:
    given: dict[str, object] = {
        "id": SessionId("ids-add-export-endpoint-20260308"),
        "team": Team.iterdev,
        "engine": engine,
        "requirement": requirement,
        "folder": ".workflow/.csv-wave/ids-add-export-endpoint-20260308",
        "base": "base0000",
        "branch": "main",
        "analysis": analyse(requirement),
    }
    return Session(**(given | facts))


class Story:
    """A session told event by event, as a journal would hold it. Time stands still unless it is moved."""

    def __init__(
        self,
        *tasks: Task,
        engine: Engine = Engine.wave,
        pipeline: Pipeline | None = None,
        requirement: str = "Add export endpoint",
        auto: bool = True,
        **policy: object,
    ) -> None:
        self.now = 1000.0
        started = SessionStarted(
            session(engine, requirement, pipeline=pipeline),
            Policy(**({"auto": auto, "agents": dict.fromkeys(WORKERS, "mine")} | policy)),
        )
        self.entries = [Entry(1, self.now, started)]
        first = replay(self.entries)
        assert first
        self.state: State = first
        if tasks:
            self.happens(TasksAdded(with_waves(tasks)))

    def happens(self, *events: Event) -> State:
        new = [Entry(self.state.seq + number, self.now, event) for number, event in enumerate(events, 1)]
        self.entries += new
        self.state = evolve(self.state, new)
        return self.state

    def decides(self) -> tuple[Command, ...]:
        return decide(self.state, self.now)

    def starts(self, *names: str, agent: str = "mine") -> State:
        for name in names:
            number = self.state.progress[TaskId(name)].number + 1
            self.happens(AttemptStarted(TaskId(name), number, agent, self.state.tip))
        return self.state

    def ends(self, name: str, outcome: Outcome, requests: int = 1) -> State:
        number = self.state.running[TaskId(name)].number
        return self.happens(AttemptEnded(TaskId(name), number, requests, outcome))

    def does(self, name: str, outcome: Outcome | None = None) -> State:
        """One attempt from start to end; without an outcome the work is done and nothing changed."""
        self.starts(name)
        return self.ends(name, outcome or Done(findings=f"findings of {name}"))

    def fails(self, name: str, error: str = "it broke") -> State:
        return self.does(name, Failed(error=error))

    def reviews(self, name: str, verdict: Review) -> State:
        return self.does(name, Done(findings=f"findings of {name}", review=verdict))

    def verifies(self, name: str, rate: float | None) -> State:
        return self.does(name, Done(findings=f"findings of {name}", verification=measured(rate)))

    def goes_on(self) -> list[str]:
        """Carries out everything that needs no agent; returns the tasks that are to be started."""
        for _ in range(1000):
            commands = self.decides()
            for command in commands:
                match command:
                    case Record(events):
                        self.happens(*events)
                    case Land(name):
                        self.happens(Landed(name, f"tip of {name}"))
            if not any(isinstance(command, Record | Land) for command in commands):
                return [command.task for command in commands if isinstance(command, Start)]
        raise AssertionError("it never stops deciding")

    def seen(self, *kinds: type) -> list[Event]:
        """The events of these kinds, in the order in which they happened."""
        return [entry.event for entry in self.entries if isinstance(entry.event, kinds)]

    def status(self, name: str) -> str:
        return self.state.progress[TaskId(name)].status.value

    def row(self, name: str) -> Task:
        return self.state.tasks[TaskId(name)]
