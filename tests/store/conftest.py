"""What the tests of the store share: a session told event by event in a real journal, and the folder made of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from iterdev.core import ids
from iterdev.core.results import Component, Design, Discovery, Finding, Review, Scores, WorkItem
from iterdev.core.session import events as session_events
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, with_waves
from iterdev.core.types import Engine, Mode, Pipeline, Role, SessionId, TaskId, Team
from iterdev.core.verification import Verification
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_folder.projector import Projector
from iterdev.teams.development import pipelines
from iterdev.teams.development.requirement_analysis import analyse

BEGIN = 1_772_000_000.0
COMMIT = "c0ffee" * 6 + "c0ff"


def started(
    session: str = "ids-demo-20260225", engine: Engine = Engine.wave, **fields: object
) -> session_events.SessionStarted:
    requirement = "Refactor the login across modules, test and review it"
    facts = {
        "team": Team.iterdev,
        "requirement": requirement,
        "base": "b" * 40,
        "branch": "main",
        "analysis": analyse(requirement),
        "pipeline": Pipeline.sprint,
    }
    name = SessionId(session)
    return session_events.SessionStarted(
        session_events.Session(id=name, engine=engine, folder=ids.folder(engine, name), **(facts | fields)),
        session_events.Policy(),
    )


def task(name: str, *deps: str, **fields: object) -> Task:
    """A row whose role follows from its id."""
    role = ids.role_of(name) or Role.developer
    facts = {
        "title": f"Title of {name}",
        "description": f"Work of {name}",
        "role": role,
        "pipeline": Pipeline.sprint,
        "mode": Mode.interactive if role is Role.gc_controller else Mode.csv_wave,
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


class Story:
    """One session: its journal, its state, and what an engine would make of its folder."""

    def __init__(self, top: Path, beginning: session_events.SessionStarted) -> None:
        self.top = top
        self.journal = Journal(top / ".workflow" / NAME)
        self.session = beginning.session.id
        self.folder = top / beginning.session.folder
        self.now = BEGIN
        self.journal.append(self.session, [beginning], at=self.now, after=0)
        self.state = self._replayed()
        self._projector = self.engine()

    def _replayed(self) -> State:
        state = replay(self.journal.read(self.session))
        assert state
        return state

    def tell(self, *events: session_events.Event) -> State:
        self.now += 60
        entries = self.journal.append(self.session, events, at=self.now, after=self.state.seq)
        self.state = evolve(self.state, entries)
        return self.state

    def add(self, *tasks: Task) -> State:
        """Adds rows to the table, as a coordinator does."""
        return self.tell(session_events.TasksAdded(with_waves(tasks, tuple(self.state.tasks.values()))))

    def add_pipeline(self, pipeline: Pipeline = Pipeline.sprint) -> State:
        return self.tell(
            session_events.PipelineChosen(pipeline),
            session_events.TasksAdded(pipelines.first_tasks(pipeline, self.state.scope, self.state.session.engine)),
        )

    def start(self, name: str) -> State:
        number = self.state.progress[TaskId(name)].number + 1
        return self.tell(session_events.AttemptStarted(TaskId(name), number, "mine", self.state.tip))

    def complete(self, name: str, **done: object) -> State:
        """An attempt that succeeds; its commit, if it has one, lands."""
        number = self.state.progress[TaskId(name)].number + 1
        self.start(name)
        outcome = session_events.Done(**({"findings": f"{name} is done"} | done))
        self.tell(session_events.AttemptEnded(TaskId(name), number, 1, outcome))
        return self.tell(session_events.Landed(TaskId(name), outcome.commit)) if outcome.commit else self.state

    def fail(self, name: str, error: str = "it did not work") -> State:
        number = self.state.progress[TaskId(name)].number + 1
        self.start(name)
        return self.tell(session_events.AttemptEnded(TaskId(name), number, 1, session_events.Failed(error=error)))

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
        projector = Projector(self.folder, self.journal)
        projector.prepare()
        return projector

    def project(self) -> Path:
        """Writes the folder with the engine that runs since the beginning."""
        self._projector.write(self.state)
        return self.folder

    def edits(self) -> list[session_events.RowEdit]:
        return list(self._projector.edits(self.state).rows)

    def take_over_edits(self) -> State:
        """What an engine does before each decision."""
        return self.tell(session_events.TableEdited(tuple(self.edits())))

    def restart(self) -> None:
        """The engine is gone and another one takes its place."""
        self.journal.close()
        self.journal = Journal(self.journal.path)
        self.state = self._replayed()
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
