"""The landing queue with real git, worktrees and tests: a small team whose writers work side by side."""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo
from tests.teams.toy import WRITERS

from iterdev.app.resume import run_session
from iterdev.app.start import Request, start
from iterdev.core.ids import branch
from iterdev.core.rules.landings import waiting
from iterdev.core.rules.replay_check import compare
from iterdev.core.session.landing_events import LandingTestEnded, LandingTestStarted
from iterdev.core.types import Ending, Engine, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver

AGENT = r"""
cat > /dev/null
[ "$ITERDEV_ATTEMPT" = 1 ] || exit 1
touch "$0.$ITERDEV_TASK"
while [ "$(ls "$0".WRITE-* | wc -l)" -lt "$(cat "$0.count")" ]; do sleep 0.02; done
echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"
printf '{"id":"%s","status":"completed","findings":"done"}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
"""
CHECK = r"""
[ "$(ls WRITE-*.txt 2> /dev/null | wc -l)" -gt 1 ] || exit 0
echo WRITE-*.txt >> "$0.runs"
while [ ! -e "$0.go" ]; do sleep 0.02; done
[ ! -e "$(cat "$0.go").txt" ]
"""
"""Alone, everything passes. Together, it waits for the word, which also says what makes the tests fail."""


class Session:
    def __init__(self, repo: Repo, writers: int, engine: Engine) -> None:
        agent, self.check = repo.path.parent / "agent.sh", repo.path.parent / "check.sh"
        agent.write_text(AGENT)
        self.check.write_text(CHECK)
        Path(f"{agent}.count").write_text(str(writers))
        lines = ["[run]", 'agent = "mine"', f"concurrency = {writers}", "[project]", f'test = "sh {self.check}"']
        lines += ["[agents.mine]", f'command = ["sh", "{agent}"]']
        (repo.path / "iterdev.toml").write_text("\n".join(lines) + "\n")
        self.repository = Repository(repo.path, {WRITERS.name: WRITERS})
        self.id: SessionId = start(
            self.repository, Request(requirement=str(writers), auto=True, engine=engine, concurrency=writers)
        )

    def go(self, failing: str = "none") -> None:
        """Lets tests of several changes end; they fail with the work of this task."""
        new = Path(f"{self.check}.new")
        new.write_text(failing)
        new.rename(f"{self.check}.go")

    def run(self, seen: Callable[[], None] = lambda: None) -> Ending:
        """Calls `seen` after every change of the session."""
        return anyio.run(
            partial(run_session, resumes=True), self.repository, self.id, RunObserver(show=lambda _: seen())
        ).ending

    @property
    def waiting(self) -> list[str]:
        return waiting(self.repository.state(self.id))

    @property
    def test_runs(self) -> list[list[str]]:
        """The files of the changes that were tested together, run by run."""
        return [line.split() for line in Path(f"{self.check}.runs").read_text().splitlines()]

    def seen(self, kind: type) -> list[object]:
        return [entry.event for entry in self.repository.journal.read(self.id) if isinstance(entry.event, kind)]


@pytest.fixture(autouse=True)
def environment(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])


@pytest.mark.parametrize("engine", Engine)
def test_with_eight_landings_waiting_and_one_bad_there_are_at_most_five_test_runs(repo: Repo, engine: Engine) -> None:
    session = Session(repo, 10, engine)
    queue: list[str] = []

    def choose() -> None:
        # One has landed, the next is tested, and eight wait behind it: the fifth of those is bad.
        if not queue and len(session.waiting) == 9:
            queue.extend(session.waiting)
            session.go(failing=queue[5])

    assert session.run(choose) is Ending.over

    state = session.repository.state(session.id)
    statuses = {task: row.status for task, row in state.tasks.progress.items()}
    landed = {name for name in repo.git("ls-tree", "--name-only", branch(session.id)).split() if "WRITE" in name}
    assert len(session.test_runs[1:]) <= 5
    assert len(session.test_runs) == len(session.seen(LandingTestStarted))
    assert [task for task, status in statuses.items() if status is not Status.completed] == [queue[5]]
    assert landed == {f"{task}.txt" for task in statuses} - {f"{queue[5]}.txt"}
    assert [debt.source_task_id for debt in state.debt] == [queue[5]]
    assert compare(session.repository.journal.read(session.id), WRITERS).difference is None


def test_a_run_that_is_stopped_ends_the_tests_and_repeats_them_when_it_goes_on(repo: Repo) -> None:
    session = Session(repo, 3, Engine.beat)
    stopped: list[None] = []

    def stop() -> None:
        # One has landed, the next is tested, and the last waits: no attempt is interrupted.
        if not stopped and len(session.waiting) == 2 and session.seen(LandingTestStarted):
            stopped.append(None)
            os.kill(os.getpid(), signal.SIGINT)

    first = session.run(stop)
    session.go()
    second = session.run()

    assert (first, second) == (Ending.interrupted, Ending.over)
    assert next(event.passed for event in session.seen(LandingTestEnded)) is None
    assert session.repository.state(session.id).tasks.count(Status.completed) == 3
    assert repo.git("worktree", "list").count("\n") == 0


def test_a_test_that_writes_into_the_table_while_landings_are_tested_is_not_believed(repo: Repo) -> None:
    session = Session(repo, 2, Engine.beat)
    table = session.repository.folder(session.repository.state(session.id)) / "tasks.csv"
    # Renamed into its place, because the engine replaces the file while the test runs.
    adds = f"""sed '$ {{p; s/WRITE-002/WRITE-009/}}' '{table}' > "$0.table" && mv "$0.table" '{table}'"""
    session.check.write_text(
        CHECK.replace('echo WRITE-*.txt >> "$0.runs"\n', f'echo WRITE-*.txt >> "$0.runs"\n{adds}\n')
    )
    session.go()

    session.run()

    state = session.repository.state(session.id)
    assert list(state.tasks.plan) == ["WRITE-001", "WRITE-002"]
    assert ["WRITE-009 is new" in warning for warning in state.warnings] == [True]
