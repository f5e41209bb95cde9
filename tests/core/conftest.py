"""What the tests of the core share: sessions told event by event, and short words for long values."""

from collections.abc import Sequence

import msgspec

from iterdev.core.policy import Policy
from iterdev.core.prompts import PromptContext, render
from iterdev.core.results import Dependency, Discovery, LearnedTexts, Result, TechDebt, Usage
from iterdev.core.rules.decide import decide
from iterdev.core.rules.outcomes import attempt_ended, landed, landing_refused
from iterdev.core.rules.record import record
from iterdev.core.rules.rollback import plan
from iterdev.core.rules.schedule import Command, Land, Record, Start
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session import fold
from iterdev.core.session.attempts import AttemptReport, Success
from iterdev.core.session.events import (
    AttemptStarted,
    Entry,
    Event,
    Failed,
    Interrupted,
    Limited,
    RollbackStarted,
    RowEdit,
    Session,
    SessionStarted,
    TableEdited,
    TasksAdded,
    Unmet,
)
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.types import Engine, Mode, SessionId, TaskId, TaskKind
from iterdev.core.verification import Measurement, SuiteReport, Verification
from iterdev.teams.development.events import TeamStarted, Thresholds
from iterdev.teams.development.requirement_analysis import analyse
from iterdev.teams.development.results import Component, Design, Development, Finding, Review, Scores, Testing, WorkItem
from iterdev.teams.development.roles import WORKERS, Fields, Part, Pipeline, Role
from iterdev.teams.development.state import Development as DevelopmentState
from iterdev.teams.development.state import development
from iterdev.teams.development.team import DEVELOPMENT

AROUND = PromptContext(board="discoveries.ndjson")
"""What only the shell knows, when there is nothing to tell."""
Outcome = Success | Failed | Limited | Interrupted | Unmet

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
    part: Part = Part.own,
    context: Sequence[str] = (),
    pipeline: Pipeline = Pipeline.sprint,
    mode: Mode | None = None,
) -> Task:
    """A row whose role follows from its id; the check of the critic loop is interactive, as in the templates."""
    role = ROLES[name.rpartition("-")[0].removesuffix("-fix")]
    decides = role is Role.gc_controller
    return Task(
        id=TaskId(name),
        title=f"title of {name}",
        description=f"work of {name}",
        role=role,
        fields=Fields(pipeline=pipeline, sprint=sprint, round=round, part=part),
        kind=TaskKind.decision if decides else TaskKind.work,
        deps=tuple(map(TaskId, deps)),
        context_from=tuple(map(TaskId, context)),
        mode=mode or (Mode.interactive if decides else Mode.csv_wave),
    )


def review(score: float = 9, *severities: str) -> Review:
    """A review that gives every dimension the same score, with one finding of each severity."""
    issues = tuple(
        Finding(
            severity=severity, description=f"{severity} problem", file="app.py", line=number, dimension="correctness"
        )
        for number, severity in enumerate(severities, 1)
    )
    scores = Scores(correctness=score, completeness=score, maintainability=score, security=score)
    return Review(id="REVIEW-001", status="completed", scores=scores, issues=issues)


def measured(rate: float | None = 1.0) -> Verification:
    """A test run with this pass rate; every run below 1 names one failing test."""
    failures = ("test_a",) if rate is not None and rate < 1 else ()
    note = "nothing ran" if rate is None else ""
    return Verification(
        command="pytest -q", pass_rate=rate, total=100, failures=failures, note=note, output="E assert 1 == 2"
    )


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


def done(
    findings: str = "",
    *,
    design: Design | None = None,
    review: Review | None = None,
    verification: Verification | None = None,
    baseline: SuiteReport | None = None,
    iterations: int = 0,
    dependencies: tuple[Dependency, ...] = (),
    resolved_debt: tuple[str, ...] = (),
    tech_debt: tuple[TechDebt | str, ...] = (),
    wisdom: LearnedTexts | None = None,
    discoveries: tuple[Discovery, ...] = (),
    commit: str | None = None,
    changed: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    usage: Usage | None = None,
) -> Success:
    """An attempt that succeeded; without anything that only one role hands in, it is a developer's."""
    handed_in: Result = design or review or _result(dependencies, resolved_debt, tests=verification is not None)
    return Success(
        result=msgspec.structs.replace(
            handed_in,
            findings=findings,
            tech_debt=tech_debt,
            wisdom=wisdom or LearnedTexts(),
            discoveries=discoveries,
        ),
        measured=Measurement(verification=verification, baseline=baseline, iterations=iterations)
        if verification
        else None,
        commit=commit,
        changed=changed,
        notes=notes,
        usage=usage or Usage(),
    )


def _result(dependencies: tuple[Dependency, ...], resolved_debt: tuple[str, ...], *, tests: bool) -> Result:
    if tests:
        return Testing(id="VERIFY-001", status="completed")
    return Development(
        id="DEV-001", status="completed", external_dependencies=dependencies, resolved_debt=resolved_debt
    )


def session(engine: Engine = Engine.wave, requirement: str = "Add export endpoint", **facts: object) -> Session:
    given: dict[str, object] = {
        "id": SessionId("ids-add-export-endpoint-20260308"),
        "team": DEVELOPMENT.name,
        "engine": engine,
        "requirement": requirement,
        "folder": ".workflow/.csv-wave/ids-add-export-endpoint-20260308",
        "base": "base0000",
        "branch": "main",
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
        rounds: int = 3,
        **policy: object,
    ) -> None:
        self.now = 1000.0
        rules = Policy(**({"auto": auto, "agents": dict.fromkeys(WORKERS, "mine")} | policy))
        self.entries = [Entry(1, self.now, SessionStarted(session(engine, requirement), rules))]
        first = fold.replay(self.entries, DEVELOPMENT)
        assert first
        self.state: State = first
        thresholds = Thresholds(rounds=rounds)
        self.happens(TeamStarted(analysis=analyse(requirement), pipeline=pipeline, thresholds=thresholds))
        if tasks:
            rows = checked(tasks)
            assert not isinstance(rows, Fault), rows
            self.happens(TasksAdded(rows))

    @property
    def team(self) -> DevelopmentState:
        """The development team's part of the state."""
        return development(self.state)

    def happens(self, *events: Event) -> State:
        """Records events, with all that follows from each of them."""
        entries, self.state = record(self.state, DEVELOPMENT, events, self.now)
        self.entries += entries
        return self.state

    def decides(self) -> tuple[Command, ...]:
        return decide(self.state, DEVELOPMENT, self.now)

    def starts(self, *names: str, agent: str = "mine") -> State:
        for name in names:
            number = self.state.tasks.progress[TaskId(name)].number + 1
            self.happens(AttemptStarted(TaskId(name), number, agent, self.state.branch.tip))
        return self.state

    def ends(self, name: str, outcome: Outcome, requests: int = 1, **facts: object) -> State:
        """The attempt ends; `facts` are other fields of its report, such as what was denied."""
        started = self.state.attempts.running[TaskId(name)]
        attempt = {"number": started.number, "fence": started.fence}
        report = AttemptReport(task=started.task, requests=requests, outcome=outcome, **(attempt | facts))
        return self.happens(*attempt_ended(self.state, DEVELOPMENT, report, self.now))

    def does(self, name: str, outcome: Outcome | None = None) -> State:
        """One attempt from start to end; without an outcome the work is done and nothing changed."""
        self.starts(name)
        return self.ends(name, outcome or done(f"findings of {name}"))

    def fails(self, name: str, error: str = "it broke") -> State:
        return self.does(name, Failed(error=error))

    def reviews(self, name: str, verdict: Review) -> State:
        return self.does(name, done(f"findings of {name}", review=verdict))

    def verifies(self, name: str, rate: float | None) -> State:
        return self.does(name, done(f"findings of {name}", verification=measured(rate)))

    def lands(self, name: str, tip: str = "") -> State:
        """The work of a task is on the branch."""
        return self.happens(*landed(self.state, DEVELOPMENT, TaskId(name), tip or f"tip of {name}"))

    def is_refused(self, name: str, *files: str) -> State:
        """The work of a task does not merge with what landed before it."""
        return self.happens(*landing_refused(self.state, DEVELOPMENT, TaskId(name), files, self.state.branch.tip))

    def edits(self, row: RowEdit, **results: str) -> State:
        """A person leaves a row of tasks.csv like this, with these result cells of the team."""
        edited = TableRow(edit=row, results=results)
        return self.happens(TableEdited((row,)), *DEVELOPMENT.table_edited(self.state, (edited,)))

    def rolls_back(self, target: str) -> RollbackStarted:
        """What no longer holds is recorded; the branch has still to follow."""
        started, *follow = plan(self.entries, DEVELOPMENT, target)
        assert isinstance(started, RollbackStarted)
        self.happens(started, *follow)
        return started

    def prompt(self, name: str, context: PromptContext = AROUND) -> str:
        """What the agent of a task would be told now."""
        task = self.row(name)
        parts, schema = DEVELOPMENT.prompt_parts(self.state, task, context), DEVELOPMENT.result_schema(task.role)
        return render(self.state, task, DEVELOPMENT.roles[task.role], context, parts, schema)

    def goes_on(self) -> list[str]:
        """Carries out everything that needs no agent; returns the tasks that are to be started."""
        for _ in range(1000):
            commands = self.decides()
            for command in commands:
                match command:
                    case Record(events):
                        self.happens(*events)
                    case Land(name):
                        self.lands(name)
            if not any(isinstance(command, Record | Land) for command in commands):
                return [command.task for command in commands if isinstance(command, Start)]
        raise AssertionError("it never stops deciding")

    def seen(self, *kinds: type) -> list[Event]:
        """The events of these kinds, in the order in which they happened."""
        return [entry.event for entry in self.entries if isinstance(entry.event, kinds)]

    def status(self, name: str) -> str:
        return self.state.tasks.status(TaskId(name)).value

    def row(self, name: str) -> Task:
        return self.state.tasks.plan[TaskId(name)]


def reviewed_badly() -> Story:
    """A sprint whose work is done and verified, and whose review asks for a fix round, which has not begun."""
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    for name in ("DESIGN-001", "DEV-001"):
        story.does(name)
        story.goes_on()
    story.verifies("VERIFY-001", 1.0)
    story.reviews("REVIEW-001", review(3))
    return story
