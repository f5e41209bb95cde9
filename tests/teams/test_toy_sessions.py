"""Whole sessions of the toy team with the real engine: git, worktrees, processes, the journal and the folder."""

from functools import partial

import anyio
import pytest
from tests.conftest import Repo
from tests.teams.toy import TOY

from iterdev.app.resume import OneStep, run_session
from iterdev.app.rollback import roll_back
from iterdev.app.start import Request, start
from iterdev.core.rules.replay_check import compare
from iterdev.core.types import Ending, Engine, Phase, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver
from iterdev.store.session_folder import tasks_csv

TASKS = ["WRITE-001", "CHECK-001", "WRITE-002", "CHECK-002"]
AGENT = r"""
cat > /dev/null
case $ITERDEV_TASK in
WRITE-*) echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt" ;;
CHECK-001) more=',"again":true' ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
"""


@pytest.fixture
def repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    agent = repo.path.parent / "agent.sh"
    agent.write_text(AGENT)
    (repo.path / "iterdev.toml").write_text(f'[run]\nagent = "mine"\n[agents.mine]\ncommand = ["sh", "{agent}"]\n')
    return Repository(repo.path, {TOY.name: TOY})


def run(repository: Repository, session: SessionId, *, step: bool = False) -> Ending:
    resumed = partial(run_session, resumes=True, scope=OneStep() if step else None)
    return anyio.run(resumed, repository, session, RunObserver()).ending


@pytest.mark.parametrize("engine", Engine)
def test_the_engine_runs_a_team_that_it_does_not_know(repository: Repository, engine: Engine) -> None:
    session = start(repository, Request(requirement="Write a poem", auto=True, engine=engine))

    assert run(repository, session) is Ending.over

    state = repository.state(session)
    assert state.session.team == "toy"
    assert state.lifecycle.phase is Phase.completed
    assert {task: row.status for task, row in state.tasks.progress.items()} == dict.fromkeys(TASKS, Status.completed)
    assert state.team.again == {"CHECK-001": True, "CHECK-002": False}
    folder = repository.folder(state)
    assert (folder / "checks.txt").read_text() == "CHECK-001: True\nCHECK-002: False"
    assert (folder / "tasks.csv").read_text() == tasks_csv.table(state, TOY)
    assert compare(repository.journal.read(session), TOY).difference is None


@pytest.mark.parametrize("engine", Engine)
def test_a_session_of_the_toy_team_goes_on_step_by_step_and_after_a_rollback(
    repository: Repository, engine: Engine
) -> None:
    session = start(repository, Request(requirement="Write a poem", auto=True, engine=engine))
    steps = 1
    while run(repository, session, step=True) is not Ending.over:
        steps += 1

    roll_back(repository, session, "WRITE-002")
    undone = repository.state(session)
    run(repository, session)

    assert steps >= len(TASKS)
    assert undone.team.again == {"CHECK-001": True}
    assert repository.state(session).team.again == {"CHECK-001": True, "CHECK-002": False}
