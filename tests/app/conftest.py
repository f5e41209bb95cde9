"""Sessions in a real repository, used without a command line: only their journals, or run by an engine."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec import Struct
from tests.conftest import Repo
from tests.execution.elsewhere import elsewhere
from tests.places import Place

from iterdev.app.answer import answer
from iterdev.app.remote.executor import executor_for
from iterdev.app.resume import (
    BeforeStarts,
    LocalExecutor,
    MakeExecutor,
    OneStep,
    RunObserver,
    RunResult,
    retry,
    run_session,
)
from iterdev.app.sessions import Repository
from iterdev.app.start import Request, read_table, start
from iterdev.core.collaboration.messages import Announced
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import Ending, SessionId, Status, TaskId
from iterdev.core.views.session import SessionView
from iterdev.engine.repository import STATE
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor
from iterdev.host import clock
from iterdev.host.processes.identity import identity
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import pipelines
from iterdev.teams.development.events import PipelineChosen
from iterdev.teams.development.roles import Pipeline

DEV = TaskId("DEV-001")


class Sessions:
    """The sessions of a repository, and what happened in them."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.opened: list[Repository] = []
        self.repository = self.open()

    def open(self) -> Repository:
        """The repository as another process sees it."""
        self.opened.append(Repository(self.repo.path))
        return self.opened[-1]

    def interleaved(self, other: Callable[[], object]) -> Repository:
        """The repository as a process sees it that another one gets ahead of."""
        self.opened.append(InterleavedRepository(self.repo.path, other))
        return self.opened[-1]

    def start(self, requirement: str = "Fix it", *happened: events.Event, **request: object) -> SessionId:
        """A session of the patch pipeline that has its tasks."""
        asked = Request(requirement=requirement, pipeline=Pipeline.patch, **request)
        session = start(self.repository, asked)
        state = self.state(session)
        tasks = pipelines.first_tasks(Pipeline.patch, state.scope, state.session.engine)
        self.log(session).record(PipelineChosen(Pipeline.patch), events.TasksAdded(tasks), *happened)
        return session

    def log(self, session: SessionId) -> SessionLog:
        return SessionLog(self.repository.journal, session, now=clock.now)

    def state(self, session: SessionId) -> State:
        return self.repository.state(session)

    def kinds(self, session: SessionId) -> list[str]:
        """What happened, without what is put on the message bus because of it."""
        read = self.repository.journal.read(session)
        return [type(entry.event).__name__ for entry in read if not isinstance(entry.event, Announced)]


def commit_on_branch(repo: Repo, session: SessionId | str) -> str:
    """What a worker that iterdev did not start leaves: a commit on the session's branch."""
    branch = f"refs/heads/iterdev/{session}"
    found = repo.git("for-each-ref", "--format=%(objectname)", branch) or repo.git("rev-parse", "HEAD")
    tip = repo.git("commit-tree", "-p", found, "-m", "made elsewhere", f"{found}^{{tree}}")
    repo.git("update-ref", branch, tip)
    return tip


def failed() -> Sequence[events.Event]:
    """The developer's task failed, and nothing else is left to do."""
    return (
        events.AttemptStarted(DEV, 1, "mine", "b" * 40),
        events.AttemptEnded(
            task=DEV,
            number=1,
            agent="mine",
            requests=1,
            outcome=events.Failed(error="no luck"),
            status=Status.failed,
            error="no luck",
        ),
        events.TaskSkipped(TaskId("VERIFY-001"), "DEV-001 failed"),
        events.Finished(),
    )


@contextmanager
def running_engine(sessions: Sessions, session: SessionId) -> Iterator[None]:
    """An engine that drives the session, in this process."""
    me = identity(os.getpid())
    assert me
    with sessions.repository.lease(sessions.log(session)):
        sessions.repository.journal.take(session, me)
        yield
    sessions.repository.journal.release(session)


class InterleavedJournal(Journal):
    """A journal to which another process writes just before the first write through this one."""

    def __init__(self, path: Path, other: Callable[[], object]) -> None:
        super().__init__(path)
        self._others = [other]

    def append(
        self,
        session: SessionId,
        entries: Sequence[events.Entry],
        *,
        after: int,
        summary: SessionSummary | None = None,
    ) -> None:
        if self._others:
            self._others.pop()()
        super().append(session, entries, after=after, summary=summary)


class InterleavedRepository(Repository):
    """A repository in which another process writes just before the first write."""

    def __init__(self, folder: Path, other: Callable[[], object]) -> None:
        super().__init__(folder)
        self._journal = InterleavedJournal(self.top / STATE / NAME, other)


@pytest.fixture
def sessions(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    for name, value in repo.env.items():
        monkeypatch.setenv(name, value)
    found = Sessions(repo)
    yield found
    for repository in found.opened:
        repository.close()


class Run(Struct, frozen=True):
    """What one run of an engine came to."""

    result: RunResult
    lines: Sequence[str]
    """What its observer was told, one line for every change."""

    @property
    def view(self) -> SessionView:
        return self.result.view

    @property
    def succeeded(self) -> bool:
        return self.result.ending is Ending.over and self.view.outcome.succeeded


class Team:
    """Sessions that run in this process: real git, a real journal, and the agent `mine`."""

    def __init__(self, sessions: Sessions, executor: MakeExecutor) -> None:
        self.repo, self._sessions, self._executor = sessions.repo, sessions, executor

    @property
    def repository(self) -> Repository:
        """Opened anew, as each command does: the settings may have changed."""
        return self._sessions.open()

    @property
    def session(self) -> SessionId:
        return self.repository.last_active()

    def run(self, requirement: str = "Add a greeting", *, auto: bool = True, table: str = "", **request: object) -> Run:
        """A new session, with the rows of a table made by hand if there is one; as `iterdev run -y`."""
        repository = self.repository
        rows: tuple[TableRow, ...] = ()
        if table:
            path = self.repo.home / "mine.csv"
            path.write_text(table, encoding="utf-8")
            rows = read_table(repository, path)
        session = start(repository, Request(requirement=requirement, auto=auto, **request), rows)
        return self._driven(repository, session)

    def step_only(self, requirement: str, **request: object) -> Run:
        """A new session of which only the first step is done."""
        repository = self.repository
        session = start(repository, Request(requirement=requirement, auto=True, **request))
        return self._driven(repository, session, scope=OneStep())

    def resume(self, *, auto: bool = False, step: bool = False, scope: BeforeStarts | None = None) -> Run:
        """As `iterdev resume`."""
        scope_ = OneStep() if step else scope
        return self._driven(self.repository, self.session, auto=auto, resumes=True, scope=scope_)

    def retry(self) -> Run:
        """As `iterdev retry`."""
        retry(self.repository, self.session)
        return self._driven(self.repository, self.session)

    def answer(self, gate: str, choice: str) -> None:
        answer(self.repository, self.session, gate, choice)

    def prompts(self, task: str) -> list[str]:
        """What the agents of a task were told, in order."""
        return [str(call["prompt"]) for call in self.repo.calls() if call["task"] == task]

    def use_tests(self, command: str) -> None:
        """Sets the test command of the project."""
        settings = (self.repo.path / "iterdev.toml").read_text(encoding="utf-8")
        self.repo.write("iterdev.toml", settings.replace('test = "true"', f"test = '{command}'" if command else ""))
        self.repo.commit("tests")

    def _driven(self, repository: Repository, session: SessionId, **options: object) -> Run:
        lines: list[str] = []
        observer = RunObserver(progress=lines.append)
        run = partial(run_session, executor=self._executor, **options)
        return Run(anyio.run(run, repository, session, observer), lines)


def on_hosts(context: AttemptContext, group: TaskGroup) -> AbstractAsyncContextManager[Executor]:
    return executor_for(Repository(context.top))(context, group)


EXECUTORS = {Place.here: LocalExecutor, Place.elsewhere: elsewhere, Place.hosts: on_hosts}


@pytest.fixture
def team(sessions: Sessions) -> Team:
    return Team(sessions, EXECUTORS[sessions.repo.place])
