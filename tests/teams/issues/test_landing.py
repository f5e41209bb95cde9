"""How what the issue team builds lands: with real git, real tests, and a small program as the agent of every role."""

from functools import partial

import anyio
import pytest
from tests.conftest import Repo

from iterdev.app.resume import run_session
from iterdev.app.start import Request, start
from iterdev.core.collaboration.tech_debt import DebtStatus
from iterdev.core.ids import branch, kept_ref
from iterdev.core.rules.replay_check import compare
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.types import Engine, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import Description

AGENT = r"""
import json, os, pathlib, sys, time
prompt = sys.stdin.read()
task, role, issues = os.environ["ITERDEV_TASK"], os.environ["ITERDEV_ROLE"], os.environ["ITERDEV_ISSUES"].split(";")
result = {"id": task, "status": "completed", "findings": f"{task} done"}
shared = {"GH-1", "GH-4", "GH-7", "GH-10"} if pathlib.Path("shared.txt").exists() else set()
files = lambda issue: ["shared.txt"] if issue in shared else [f"{issue}.txt"]
if role == "explorer":
    result["contexts"] = [{"issue_id": issue, "relevant_files": files(issue)} for issue in issues]
elif role == "planner":
    result["solutions"] = [
        {"issue_id": issue, "approach": "write", "tasks": [{"id": "T1", "title": "write", "files": files(issue)}]}
        for issue in issues
    ]
elif role == "reviewer":
    names = ("technical_feasibility", "risk_assessment", "completeness")
    result["audits"] = [{"issue_id": issue, **dict.fromkeys(names, {"score": 90})} for issue in issues]
elif role == "integrator":
    result["order"] = issues
elif role == "implementer":
    seen = pathlib.Path(__file__).with_name(f"{task}-{os.environ['ITERDEV_ATTEMPT']}.prompt")
    seen.write_text(prompt)
    if os.environ["ITERDEV_ATTEMPT"] == "1":
        # Until all that are at work together have begun, so that none of them sees the work of another.
        while len(list(seen.parent.glob("BUILD-*-1.prompt"))) % 3:
            time.sleep(0.01)
    for name in (name for issue in issues for name in files(issue)):
        with open(name, "a") as file:
            file.write(f"{task} {os.environ['ITERDEV_ATTEMPT']}\n")
pathlib.Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result))
"""
NOT_TOGETHER = """\
import unittest, pathlib


class Together(unittest.TestCase):
    def test_both(self):
        found = [path.name for path in sorted(pathlib.Path().glob("GH-*.txt"))]
        self.assertFalse({"GH-1.txt", "GH-2.txt"} <= {*found}, "GH-1 and GH-2 do not work together")
"""


@pytest.fixture
def repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    (repo.path.parent / "agent.py").write_text(AGENT)
    agent = repo.path.parent / "agent.py"
    settings = f'[run]\nagent = "mine"\nconcurrency = 4\n[agents.mine]\ncommand = ["python3", "{agent}"]\n'
    (repo.path / "iterdev.toml").write_text(settings)
    return Repository(repo.path, {ISSUES.name: ISSUES})


def resolve(repository: Repository, count: int, engine: Engine) -> SessionId:
    issues = tuple(
        IssueFacts(id=f"GH-{number}", description=Description(title="Broken")) for number in range(1, count + 1)
    )
    prepared = IssueRequest(issues=issues, method="mine")
    text = " ".join(issue.id for issue in issues)
    session = start(
        repository, Request(requirement=text, auto=True, engine=engine, pipeline="batch", prepared=prepared)
    )
    go_on(repository, session)
    return session


def go_on(repository: Repository, session: SessionId) -> None:
    anyio.run(partial(run_session, resumes=True), repository, session, RunObserver())


def seen(repository: Repository, session: SessionId, *kinds: type) -> list[events.Event]:
    return [entry.event for entry in repository.journal.read(session) if isinstance(entry.event, kinds)]


def on_branch(repo: Repo, session: SessionId, *words: str) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", branch(session), *words).split()


def put(repo: Repo, name: str, text: str) -> None:
    repo.write(name, text)
    repo.commit(f"add {name}")


@pytest.mark.parametrize("engine", Engine)
def test_of_two_solutions_that_break_the_tests_together_the_later_is_tried_again_and_parked(
    repo: Repo, repository: Repository, engine: Engine
) -> None:
    repo.write("tests/__init__.py", "")
    put(repo, "tests/test_together.py", NOT_TOGETHER)

    session = resolve(repository, 3, engine)

    state = repository.state(session)
    first, again = seen(repository, session, LandingTakenOut)[0], seen(repository, session, LandingTakenOut)[1:]
    landed = {name for name in on_branch(repo, session) if name.startswith("GH-")}
    assert landed in ({"GH-1.txt", "GH-3.txt"}, {"GH-2.txt", "GH-3.txt"})
    assert first.status is Status.pending
    assert state.tasks.progress[first.task].status is Status.failed
    assert [task for task, row in state.tasks.progress.items() if row.status is not Status.completed] == [first.task]
    assert state.tasks.progress[first.task].attempt == 2
    prompt = (repo.path.parent / f"{first.task}-2.prompt").read_text()
    assert "GH-1 and GH-2 do not work together" in prompt
    assert first.commit in prompt
    (debt,) = state.debt
    assert (debt.source_task_id, debt.status) == (first.task, DebtStatus.open)
    for number in (1, 2):
        assert repo.git("rev-parse", kept_ref(session, first.task, number))
    # The second attempt began with the work of the others, and its own tests failed: nothing was left to land.
    assert again == []
    assert compare(repository.journal.read(session), ISSUES).difference is None
