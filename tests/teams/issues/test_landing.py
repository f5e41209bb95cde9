"""How what the issue team builds lands: with real git, real tests, and a small program as the agent of every role."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo
from tests.execution.elsewhere import elsewhere

from iterdev.app.issues.edit import IssueFields, init
from iterdev.app.resume import retry, run_session
from iterdev.app.start import Request, start
from iterdev.core.ids import branch, kept_ref
from iterdev.core.rules.replay_check import compare
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.task_table import Progress
from iterdev.core.types import Engine, SessionId, Status
from iterdev.engine.issue_tracker import read_tracker
from iterdev.engine.repository import Repository
from iterdev.engine.run import MakeExecutor, RunObserver
from iterdev.execution.local import LocalExecutor
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.roles import fields
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import Description, IssueStatus

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
        # Until the first three have begun, so that none of them sees the work of another.
        while len(list(seen.parent.glob("BUILD-00[123]-1.prompt"))) < 3:
            time.sleep(0.01)
    for issue, name in ((issue, name) for issue in issues for name in files(issue)):
        path = pathlib.Path(name)
        before = path.read_text() if path.exists() else ""
        # The last one replaces what the first one wrote.
        path.write_text((before.replace("GH-1\n", "GH-1, revised\n") if issue == "GH-10" else before) + f"{issue}\n")
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
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return Repository(repo.path, {ISSUES.name: ISSUES})


def resolve(
    repository: Repository, count: int, engine: Engine = Engine.wave, executor: MakeExecutor = LocalExecutor
) -> SessionId:
    issues = tuple(
        IssueFacts(id=f"GH-{number}", description=Description(title="Broken")) for number in range(1, count + 1)
    )
    prepared = IssueRequest(issues=issues, method="mine")
    text = " ".join(issue.id for issue in issues)
    session = start(
        repository, Request(requirement=text, auto=True, engine=engine, pipeline="batch", prepared=prepared)
    )
    go_on(repository, session, executor)
    return session


def go_on(repository: Repository, session: SessionId, executor: MakeExecutor = LocalExecutor) -> None:
    anyio.run(partial(run_session, resumes=True, executor=executor), repository, session, RunObserver())


def seen(repository: Repository, session: SessionId, *kinds: type) -> list[events.Event]:
    return [entry.event for entry in repository.journal.read(session) if isinstance(entry.event, kinds)]


def on_branch(repo: Repo, session: SessionId, *words: str) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", branch(session), *words).split()


def break_together(repo: Repo) -> None:
    repo.write("tests/__init__.py", "")
    put(repo, "tests/test_together.py", NOT_TOGETHER)


def put(repo: Repo, name: str, text: str) -> None:
    repo.write(name, text)
    repo.commit(f"add {name}")


@pytest.mark.parametrize(
    ("engine", "executor"), [(Engine.wave, LocalExecutor), (Engine.beat, LocalExecutor), (Engine.beat, elsewhere)]
)
def test_of_two_solutions_that_break_the_tests_together_the_later_is_tried_again_and_parked(
    repo: Repo, repository: Repository, engine: Engine, executor: MakeExecutor
) -> None:
    break_together(repo)

    session = resolve(repository, 3, engine, executor)

    state, (out,) = repository.state(session), seen(repository, session, LandingTakenOut)
    landed = {name for name in on_branch(repo, session) if name.startswith("GH-")}
    assert landed in ({"GH-1.txt", "GH-3.txt"}, {"GH-2.txt", "GH-3.txt"})
    assert [task for task, row in state.tasks.progress.items() if row.status is not Status.completed] == [out.task]
    assert (out.status, state.tasks.status(out.task)) == (Status.pending, Status.failed)
    assert state.tasks.progress[out.task].attempt == 2
    prompt = (repo.path.parent / f"{out.task}-2.prompt").read_text()
    assert "GH-1 and GH-2 do not work together" in prompt
    assert out.commit in prompt
    assert [debt.source_task_id for debt in state.debt] == [out.task]
    for number in (1, 2):
        assert repo.git("rev-parse", kept_ref(session, out.task, number))
    assert compare(repository.journal.read(session), ISSUES).difference is None


def test_the_issues_of_parked_work_are_failed_and_those_of_the_others_completed(
    repo: Repo, repository: Repository
) -> None:
    break_together(repo)
    names = ("GH-1", "GH-2", "GH-3")
    for name in names:
        init(repository, name, IssueFields(title="Broken"), force=False)

    session = resolve(repository, 3)

    (out,) = seen(repository, session, LandingTakenOut)
    (failed,) = fields(repository.state(session).tasks.plan[out.task]).issues
    tracker = read_tracker(repository)
    statuses = {name: tracker.issues[name].status for name in names}
    assert statuses == dict.fromkeys(names, IssueStatus.completed) | {failed: IssueStatus.failed}
    assert "the tests fail" in tracker.issues[failed].feedback[-1].content


def test_parked_work_is_built_again_by_a_retry(repo: Repo, repository: Repository) -> None:
    break_together(repo)
    session = resolve(repository, 3)
    (out,) = seen(repository, session, LandingTakenOut)
    agent = repo.path.parent / "agent.py"
    agent.write_text(agent.read_text().replace('[f"{issue}.txt"]', '[f"new-{issue}.txt"]'))

    retry(repository, session)
    go_on(repository, session)

    assert set(repository.state(session).tasks.progress[out.task].unmerged_commits) >= {out.commit}
    assert {row.status for row in repository.state(session).tasks.progress.values()} == {Status.completed}


@pytest.mark.parametrize("engine", Engine)
def test_of_twelve_issues_of_which_four_change_the_same_file_nothing_is_lost(
    repo: Repo, repository: Repository, engine: Engine
) -> None:
    put(repo, "shared.txt", "first\n")

    session = resolve(repository, 12, engine)

    state = repository.state(session)
    landed = [event.task for event in seen(repository, session, events.Landed)]
    assert {row.status for row in state.tasks.progress.values()} == {Status.completed}
    assert sorted(landed) == sorted(task for task in state.tasks.plan if task.startswith("BUILD"))
    assert not seen(repository, session, LandingTakenOut)
    assert [lost for task in landed for lost in lost_lines(repo, branch(session), state.tasks.progress[task])] == []
    text = repo.git("show", f"{branch(session)}:shared.txt").splitlines()
    assert text == ["first", "GH-1, revised", "GH-4", "GH-7", "GH-10"]
    assert compare(repository.journal.read(session), ISSUES).difference is None


def lost_lines(repo: Repo, tip: str, work: Progress) -> Iterator[str]:
    """Lines of landed work that are not in the branch, and that no later commit removed which had them."""
    for name in work.changed:
        added = added_lines(repo, work.base, work.commit, name)
        present = repo.git("show", f"{tip}:{name}").splitlines()
        for line in (line for line in added if line not in present):
            later = repo.git("rev-list", "--no-merges", f"{work.commit}..{tip}", "--", name).split()
            replaced = (one for one in later if line in added_lines(repo, one, f"{one}^", name))
            if not any(saw(repo, work.commit, f"{one}^") for one in replaced):
                yield f"{name}: {line}"


def added_lines(repo: Repo, old: str, new: str, name: str) -> list[str]:
    lines = repo.git("diff", "--unified=0", old, new, "--", name).splitlines()
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++")]


def saw(repo: Repo, commit: str, by: str) -> bool:
    return repo.git("merge-base", commit, by) == commit
