"""Whole sessions of the issue team with the real engine and a small program as the agent of every role."""

from collections.abc import Mapping
from functools import partial

import anyio
import pytest
from tests.conftest import Repo

from iterdev.app.resume import run_session
from iterdev.app.start import Request, start
from iterdev.core.rules.replay_check import compare
from iterdev.core.types import Ending, Engine, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.state import issue_part
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import Description

AGENT = r"""
import json, os, pathlib, sys
sys.stdin.read()
task, role, issues = os.environ["ITERDEV_TASK"], os.environ["ITERDEV_ROLE"], os.environ["ITERDEV_ISSUES"].split(";")
plan = json.loads(pathlib.Path(os.environ["PLAN"]).read_text()) if "PLAN" in os.environ else {}
result = {"id": task, "status": "completed", "findings": f"{task} done"}
files = lambda issue: plan.get("files", {}).get(issue, [f"{issue}.txt"])
if role == "explorer":
    result["contexts"] = [{"issue_id": issue, "relevant_files": files(issue)} for issue in issues]
elif role == "planner":
    result["solutions"] = [
        {"issue_id": issue, "approach": "write", "tasks": [{"id": "T1", "title": "write", "files": files(issue)}]}
        for issue in issues
    ]
elif role == "reviewer":
    score = 50 if task in plan.get("rejects", []) else 90
    dimension = {"score": score, "findings": ["too thin"] if score < 60 else []}
    names = ("technical_feasibility", "risk_assessment", "completeness")
    result["audits"] = [{"issue_id": issue, **dict.fromkeys(names, dimension)} for issue in issues]
elif role == "integrator":
    result["order"] = issues
elif role == "implementer":
    for issue in issues:
        for name in files(issue):
            with open(name, "a") as file:
                file.write(f"{issue}\n")
pathlib.Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result))
"""


@pytest.fixture
def repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    agent = repo.path.parent / "agent.py"
    agent.write_text(AGENT)
    settings = f'[run]\nagent = "mine"\nconcurrency = 4\n[agents.mine]\ncommand = ["python3", "{agent}"]\n'
    (repo.path / "iterdev.toml").write_text(settings)
    return Repository(repo.path, {ISSUES.name: ISSUES})


def resolve(repository: Repository, count: int, engine: Engine = Engine.wave, **request: object) -> SessionId:
    issues = tuple(
        IssueFacts(id=f"GH-{number}", description=Description(title="Broken")) for number in range(1, count + 1)
    )
    prepared = IssueRequest(issues=issues, method="mine")
    text = " ".join(issue.id for issue in issues)
    session = start(repository, Request(requirement=text, auto=True, engine=engine, prepared=prepared, **request))
    ended = anyio.run(partial(run_session, resumes=True), repository, session, RunObserver())
    assert ended.ending is Ending.over
    return session


def statuses(repository: Repository, session: SessionId) -> Mapping[str, Status]:
    return {task: row.status for task, row in repository.state(session).tasks.progress.items()}


@pytest.mark.parametrize("engine", Engine)
def test_one_ordinary_issue_is_explored_solved_ordered_and_built(repository: Repository, engine: Engine) -> None:
    session = resolve(repository, 1, engine)

    state = repository.state(session)
    tasks = ["EXPLORE-001", "SOLVE-001", "MARSHAL-001", "BUILD-001"]
    assert statuses(repository, session) == dict.fromkeys(tasks, Status.completed), state.warnings
    assert compare(repository.journal.read(session), ISSUES).difference is None


@pytest.mark.parametrize("engine", Engine)
def test_a_batch_builds_each_group_once(repository: Repository, engine: Engine) -> None:
    session = resolve(repository, 5, engine)

    state = repository.state(session)
    names = [task for task in state.tasks.plan if task.startswith("BUILD")]
    assert names == ["BUILD-001", "BUILD-002", "BUILD-003"]
    assert set(statuses(repository, session).values()) == {Status.completed}
    assert issue_part(state).queue is not None
    assert compare(repository.journal.read(session), ISSUES).difference is None


TEST = """\
import unittest, pathlib


class Texts(unittest.TestCase):
    def test_nothing_is_written(self):
        self.assertEqual(list(pathlib.Path().glob("GH-*.txt")), [])
"""


def test_a_build_that_breaks_a_test_is_kept_and_does_not_land(repo: Repo, repository: Repository) -> None:
    repo.write("tests/__init__.py", "")
    repo.write("tests/test_texts.py", TEST)
    repo.commit("a test that the work breaks")

    session = resolve(repository, 1)

    state = repository.state(session)
    progress = state.tasks.progress["BUILD-001"]
    assert progress.status is Status.failed
    assert "the tests fail with the change" in progress.error
    assert "test_nothing_is_written" in progress.error
    assert state.branch.tip == state.branch.base
    assert len(progress.unmerged_commits) == 1
