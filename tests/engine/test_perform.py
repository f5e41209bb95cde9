"""What the engine records, and when the session folder shows it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo
from tests.core.conftest import task

from iterdev.app.start import Request, start
from iterdev.core.session.events import AttemptStarted, Event, Gate, GateOpened, TasksAdded, Warned
from iterdev.core.types import TaskId
from iterdev.engine.effects import Effects
from iterdev.engine.perform import Performer
from iterdev.engine.repository import Repository
from iterdev.store.session_log import SessionLog
from iterdev.teams.development.roles import Pipeline

BEGIN = 1_772_000_000.0
QUESTION = GateOpened(Gate(kind="plan", question="Go on?", choices=("yes",)))


class Folder:
    """A session folder, the performer that writes it, and the time."""

    def __init__(self, repository: Repository) -> None:
        self.now = BEGIN
        session = start(repository, Request(requirement="Fix it", pipeline=Pipeline.patch))
        self.log = SessionLog(repository.journal, session, now=lambda: self.now)
        self.performer = Performer(repository, self.log, Effects(), lambda _: None)
        self._record = repository.folder(self.log.state) / "session.json"
        anyio.run(self._written)

    def shows(self, word: str) -> bool:
        return word in self._record.read_text(encoding="utf-8")

    def record(self, event: Event, *, later: float) -> None:
        """Records an event so many seconds after the last one."""
        self.now += later
        anyio.run(self.performer.record, [event])

    @property
    def table(self) -> Path:
        return self._record.with_name("tasks.csv")

    async def _written(self) -> None:
        await self.performer.project(urgent=True)


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    for name, value in repo.env.items():
        monkeypatch.setenv(name, value)
    repository = Repository(repo.path)
    yield Folder(repository)
    repository.close()


@pytest.mark.parametrize(("later", "shown"), [(0.1, False), (0.29, False), (0.31, True), (5.0, True)])
def test_the_session_folder_is_at_most_a_third_of_a_second_behind(folder: Folder, later: float, *, shown: bool) -> None:
    folder.record(Warned("look here"), later=later)

    assert (folder.shows("look here"), folder.performer.is_behind) == (shown, not shown)


def test_a_question_is_shown_at_once(folder: Folder) -> None:
    folder.record(QUESTION, later=0.0)

    assert folder.shows('"plan"')


def test_a_warning_is_recorded_without_secrets(folder: Folder, repo: Repo) -> None:
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

    folder.record(Warned(f"git says: not a gitfile: {secret}"), later=5.0)

    state = repo.path / ".workflow"
    assert folder.shows("git says: not a gitfile: [secret]")
    assert [str(file) for file in state.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()] == []


@pytest.mark.parametrize(
    ("settings", "taken_over"),
    [("", False), ('[remote]\nengine = "temporal"\n', True)],
    ids=["agents here", "agents on hosts"],
)
def test_a_row_that_is_added_while_agents_work_is_doubted_only_where_they_could_write_it(
    folder: Folder, repo: Repo, settings: str, *, taken_over: bool
) -> None:
    folder.record(TasksAdded((task("DEV-001"), task("DEV-002"))), later=5.0)
    folder.record(AttemptStarted(TaskId("DEV-001"), 1, "mine", "b" * 40), later=5.0)
    rows = folder.table.read_text(encoding="utf-8").splitlines(keepends=True)
    folder.table.write_text("".join([*rows, rows[-1].replace("DEV-002", "DEV-003")]), encoding="utf-8")
    repo.write("iterdev.toml", settings)

    with closing(Repository(repo.path)) as repository:
        state = anyio.run(Performer(repository, folder.log, Effects(), lambda _: None).catch_up)

    assert ("DEV-003" in state.tasks.plan) is taken_over
    assert folder.table.with_name("tasks.refused.csv").exists() is not taken_over
