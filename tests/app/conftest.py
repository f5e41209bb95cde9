"""Sessions in a real repository, used without a command line; most of them need no engine."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.app.sessions import Repository, open_repository
from iterdev.app.start import Request, start
from iterdev.core.collaboration.messages import Announced
from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import SessionId, Status, TaskId
from iterdev.engine.repository import STATE
from iterdev.host import clock
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import pipelines
from iterdev.teams.development.events import PipelineChosen
from iterdev.teams.development.fields import Pipeline

DEV = TaskId("DEV-001")


class Sessions:
    """The sessions of a repository, and what happened in them."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.opened: list[Repository] = []
        self.repository = self.open()

    def open(self) -> Repository:
        """The repository as another process sees it."""
        self.opened.append(open_repository(self.repo.path))
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
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    found = Sessions(repo)
    yield found
    for repository in found.opened:
        repository.close()
