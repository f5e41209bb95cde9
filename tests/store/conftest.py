"""What the tests of the store share: a session told event by event in a real journal, and the folder made of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.core.conftest import ROLES, done

from iterdev.core import ids
from iterdev.core.policy import Policy
from iterdev.core.results import Discovery
from iterdev.core.rules.outcomes import attempt_ended, landed, landing_refused
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session import events as session_events
from iterdev.core.session.attempts import AttemptReport
from iterdev.core.session.events import Entry, Event, SessionStarted
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, joining
from iterdev.core.types import Engine, Mode, SessionId, TaskId, TaskKind
from iterdev.core.verification import Verification
from iterdev.store import session_log
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import pipelines
from iterdev.teams.development.events import PipelineChosen, TeamStarted, Thresholds, ThresholdsChanged
from iterdev.teams.development.requirement_analysis import analyse
from iterdev.teams.development.results import Component, Design, Finding, Review, Scores, WorkItem
from iterdev.teams.development.roles import Fields, Pipeline, Role
from iterdev.teams.development.state import Development, development
from iterdev.teams.development.team import DEVELOPMENT

BEGIN = 1_772_000_000.0
COMMIT = "c0ffee" * 6 + "c0ff"
REQUIREMENT = "Refactor the login across modules, test and review it"


def started(
    session: str = "ids-demo-20260225", engine: Engine = Engine.wave, policy: Policy | None = None, **fields: object
) -> SessionStarted:
    facts = {"team": DEVELOPMENT.name, "requirement": REQUIREMENT, "base": "b" * 40, "branch": "main"}
    name = SessionId(session)
    return SessionStarted(
        session_events.Session(id=name, engine=engine, folder=ids.folder(engine, name), **(facts | fields)),
        policy or Policy(),
    )


def team_started(thresholds: Thresholds | None = None) -> TeamStarted:
    return TeamStarted(analysis=analyse(REQUIREMENT), pipeline=Pipeline.sprint, thresholds=thresholds or Thresholds())


def entries(events: Sequence[Event], *, at: float = 1.0, after: int = 0) -> list[Entry]:
    """What is written to a journal for these events alone."""
    return [Entry(seq, at, event) for seq, event in enumerate(events, after + 1)]


def task(
    name: str,
    *deps: str,
    sprint: int = 1,
    round: int = 0,  # noqa: A002 - the field's own name
    **fields: object,
) -> Task:
    """A row whose role follows from its id."""
    role = ROLES.get(ids.prefix_of(name), Role.developer)
    decides = role is Role.gc_controller
    facts = {
        "title": f"Title of {name}",
        "description": f"Work of {name}",
        "role": role,
        "fields": Fields(pipeline=Pipeline.sprint, sprint=sprint, round=round),
        "kind": TaskKind.decision if decides else TaskKind.work,
        "mode": Mode.interactive if decides else Mode.csv_wave,
    }
    return Task(id=TaskId(name), deps=tuple(map(TaskId, deps)), **(facts | fields))


def design() -> Design:
    return Design(
        id="DESIGN-001",
        status="completed",
        findings="Two components.",
        design="# Login\n\nTokens are checked in one place.\n",
        components=(
            Component(name="api", responsibility="answers requests", dependencies=("auth",), files=("api.py",)),
            Component(name="auth", dependencies=(), files=("auth.py",), complexity="medium"),
        ),
        tasks=(
            WorkItem(id="task-2", title="Use tokens", files=("api.py",), dependencies=("task-1",)),
            WorkItem(
                id="task-1",
                title="Check tokens",
                files=("auth.py", "api.py"),
                complexity="low",
                acceptance_criteria=("an old token is refused", "a new one is not"),
            ),
        ),
        discoveries=(
            Discovery("design_decision", {"component": "auth", "approach": "JWT", "rationale": "no state on the host"}),
        ),
    )


def review(score: float, *findings: Finding) -> Review:
    each = float(score)
    scores = Scores(correctness=each, completeness=each, maintainability=each, security=each)
    return Review(id="REVIEW-001", status="completed", findings="Read all of it.", scores=scores, issues=findings)


CRITICAL = Finding(
    severity="critical",
    description="tokens never expire",
    file="auth.py",
    line=7,
    dimension="security",
    suggestion="check the date",
)


def report_of(started: session_events.AttemptStarted, outcome: object) -> AttemptReport:
    return AttemptReport(task=started.task, number=started.number, fence=started.fence, requests=1, outcome=outcome)


class Story:
    """One session: its journal, its state, and what an engine would make of its folder."""

    def __init__(self, top: Path, beginning: SessionStarted, team: TeamStarted | None = None) -> None:
        self.top = top
        self.journal = Journal(top / ".workflow" / NAME)
        self.session = beginning.session.id
        self.folder = top / beginning.session.folder
        self.now = BEGIN
        session_log.create(self.journal, [beginning, team or team_started()], at=self.now)
        self.log = self._opened()
        self._projector = self.engine()

    def _opened(self) -> SessionLog:
        return SessionLog(self.journal, self.session, now=lambda: self.now)

    @property
    def state(self) -> State:
        return self.log.state

    @property
    def team(self) -> Development:
        """The development team's part of the state."""
        return development(self.state)

    def tell(self, *events: Event) -> State:
        self.now += 60
        self.log.record(*events)
        return self.state

    def add(self, *tasks: Task) -> State:
        """Adds rows to the table, as a coordinator does."""
        return self.tell(session_events.TasksAdded(joining(tasks, self.state.tasks.plan)))

    def add_pipeline(self, pipeline: Pipeline = Pipeline.sprint) -> State:
        first = pipelines.first_tasks(pipeline, self.state.scope, self.state.session.engine)
        return self.tell(PipelineChosen(pipeline), session_events.TasksAdded(first))

    def start(self, name: str) -> State:
        number = self.state.tasks.progress[TaskId(name)].number + 1
        return self.tell(session_events.AttemptStarted(TaskId(name), number, "mine", self.state.branch.tip))

    def end(self, name: str, **result: object) -> State:
        """The attempt that is under way succeeds; its commit, if it has one, has still to land."""
        handed_in = result.get("design") or result.get("review")
        own = {field: getattr(handed_in, field) for field in ("findings", "discoveries")} if handed_in else {}
        success = done(**({"findings": f"{name} is done"} | own | result))
        started = self.state.attempts.running[TaskId(name)]
        report = report_of(started, success)
        return self.tell(*attempt_ended(self.state, DEVELOPMENT, report, self.now + 60))

    def land(self, name: str, tip: str = COMMIT) -> State:
        return self.tell(*landed(self.state, DEVELOPMENT, TaskId(name), tip))

    def refuse(self, name: str, *files: str) -> State:
        """The commit of a task does not merge with what landed before it."""
        return self.tell(*landing_refused(self.state, DEVELOPMENT, TaskId(name), files, self.state.branch.tip))

    def complete(self, name: str, **result: object) -> State:
        """An attempt that succeeds; its commit, if it has one, lands."""
        self.start(name)
        self.end(name, **result)
        return self.land(name) if TaskId(name) in self.state.attempts.landing else self.state

    def fail(self, name: str, error: str = "it did not work") -> State:
        self.start(name)
        outcome = session_events.Failed(error=error)
        started = self.state.attempts.running[TaskId(name)]
        report = report_of(started, outcome)
        return self.tell(*attempt_ended(self.state, DEVELOPMENT, report, self.now + 60))

    def decide(self, controller: str) -> State:
        """A controller task decides about the reviews before it."""
        return self.tell(*DEVELOPMENT.decision(self.state, self.state.tasks.plan[TaskId(controller)]))

    def force_convergence(self) -> State:
        """What follows from a bad review when no fix round is left."""
        self.tell(ThresholdsChanged(Thresholds(rounds=0)))
        return self.tell(*DEVELOPMENT.follow_up(self.state))

    def sprint(self) -> State:
        """A whole sprint, up to its end."""
        self.add_pipeline()
        self.complete("DESIGN-001", design=design())
        self.complete("DEV-001", commit=COMMIT, changed=("auth.py", "api.py"))
        self.complete("VERIFY-001", verification=Verification(command="pytest -q", pass_rate=0.975, total=40))
        self.complete("REVIEW-001", review=review(8.5))
        return self.tell(session_events.Finished())

    def engine(self) -> Projector:
        """What an engine that has just taken the session up writes with."""
        projector = Projector(self.folder, self.journal, DEVELOPMENT)
        projector.prepare()
        return projector

    def project(self) -> Path:
        """Writes the folder with the engine that runs since the beginning."""
        self._projector.write(self.state)
        return self.folder

    def edited(self) -> list[TableRow]:
        return list(self._projector.edits(self.state).rows)

    def edits(self) -> list[session_events.RowEdit]:
        return [row.edit for row in self.edited()]

    def take_over_edits(self) -> State:
        """What an engine does before each decision."""
        rows = self.edited()
        edit = session_events.TableEdited(tuple(row.edit for row in rows))
        return self.tell(edit, *DEVELOPMENT.table_edited(self.state, rows))

    def restart(self) -> None:
        """The engine ends and another one takes its place."""
        self.journal.close()
        self.journal = Journal(self.journal.path)
        self.log = self._opened()
        self._projector = self.engine()

    def contents(self) -> dict[str, bytes]:
        """Every file of the session folder."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    story = Story(tmp_path, started())
    yield story
    story.journal.close()
