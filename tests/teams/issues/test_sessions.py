"""Whole sessions of the issue team with the real engine: a small program or a script as the agent of every role."""

from collections.abc import Mapping
from functools import partial

import anyio
import pytest
from tests.conftest import Repo
from tests.issue_agents import use_program, use_script

from iterdev.app import inspect
from iterdev.app.answer import answer
from iterdev.app.branches.update import request_update
from iterdev.app.issues import edit, resolve, show
from iterdev.app.resume import run_session
from iterdev.app.rollback import roll_back
from iterdev.app.start import Request
from iterdev.core.rules.replay_check import compare
from iterdev.core.session.events import AttemptEnded, AttemptStarted
from iterdev.core.types import Ending, Engine, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver
from iterdev.teams.issues.roles import Role, fields
from iterdev.teams.issues.state import issue_part
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import IssueStatus

QUICK = {1: "EXPLORE", 2: "SOLVE", 3: "MARSHAL", 4: "BUILD"}
FULL = {1: "EXPLORE", 2: "SOLVE", 3: "AUDIT", 4: "MARSHAL", 5: "BUILD"}


@pytest.fixture(autouse=True)
def _home(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])


def names(count: int) -> list[str]:
    return [f"GH-{number}" for number in range(1, count + 1)]


def resolved(repo: Repo, count: int, engine: Engine = Engine.wave, **request: object) -> tuple[Repository, SessionId]:
    """A session about issues that are made for it, after its end."""
    repository = Repository(repo.path)
    for name in names(count):
        edit.create(repository, {"id": name, "title": f"Problem of {name}"})
    found = resolve.find_issues(repository, names(count), all_pending=False)
    asked = Request(requirement=" ".join(names(count)), auto=True, engine=engine, **request)
    session = resolve.start_resolving(repository, asked, found.issues, None)
    ended = anyio.run(partial(run_session, resumes=True), repository, session, RunObserver())
    assert ended.ending is Ending.over
    return repository, session


def statuses(repository: Repository, session: SessionId) -> Mapping[str, Status]:
    return {task: row.status for task, row in repository.state(session).tasks.progress.items()}


def issue_statuses(repository: Repository) -> dict[str, IssueStatus]:
    return {issue.id: issue.status for issue in (*show.issue_list(repository).issues, *show.history(repository))}


@pytest.mark.requirement("R149", "R153", "R161")
@pytest.mark.parametrize(
    ("count", "engine", "agent"),
    [
        (1, Engine.wave, "program"),
        (1, Engine.beat, "script"),
        (2, Engine.wave, "script"),
        (2, Engine.beat, "program"),
        (3, Engine.wave, "program"),
        (3, Engine.beat, "script"),
        (5, Engine.wave, "script"),
        (5, Engine.beat, "program"),
        (12, Engine.wave, "program"),
        (12, Engine.beat, "script"),
    ],
)
def test_issues_are_resolved_whatever_their_number_the_engine_and_the_agent(
    repo: Repo, count: int, engine: Engine, agent: str
) -> None:
    if agent == "program":
        use_program(repo)
    else:
        use_script(repo, names(count), batch=count > 4)

    repository, session = resolved(repo, count, engine)

    state = repository.state(session)
    assert set(statuses(repository, session).values()) == {Status.completed}, state.warnings
    assert issue_statuses(repository) == dict.fromkeys(names(count), IssueStatus.completed)
    waves = {task.wave: task.id.rpartition("-")[0] for task, _ in state.tasks.rows()}
    assert waves == (QUICK if count <= 2 else FULL)
    explorers, builders = (
        [task.id for task in state.tasks.of_role(role)] for role in (Role.explorer, Role.implementer)
    )
    assert (len(explorers), len(builders)) == ((count, 3) if count > 4 else (1, 1))
    built = [name for task in state.tasks.of_role(Role.implementer) for name in fields(task).issues]
    assert sorted(built) == sorted(names(count))
    assert most_at_once(repository, session, "EXPLORE") <= 5
    assert most_at_once(repository, session, "SOLVE") == 1
    assert most_at_once(repository, session, "BUILD") <= 3
    report = inspect.report(repository, session)
    assert report.count("[OK]") == len(state.tasks.plan)
    assert compare(repository.journal.read(session), ISSUES).difference is None


def most_at_once(repository: Repository, session: SessionId, prefix: str) -> int:
    """The most tasks of a prefix that were under way at the same time, as the journal tells."""
    running: set[str] = set()
    most = 0
    for entry in repository.journal.read(session):
        task = getattr(entry.event, "task", "")
        if not isinstance(task, str) or not task.startswith(prefix):
            continue
        if isinstance(entry.event, AttemptStarted):
            running.add(task)
        elif isinstance(entry.event, AttemptEnded):
            running.discard(task)
        most = max(most, len(running))
    return most


@pytest.mark.requirement("R151")
@pytest.mark.parametrize("engine", Engine)
def test_a_rejected_plan_is_revised_and_audited_again_before_it_is_built(repo: Repo, engine: Engine) -> None:
    use_program(repo, rejects=["AUDIT-001"])

    repository, session = resolved(repo, 5, engine)

    state = repository.state(session)
    assert set(statuses(repository, session).values()) == {Status.completed}, state.warnings
    assert {"SOLVE-fix-001", "AUDIT-002"} <= set(state.tasks.plan)
    assert issue_part(state).cycles == 1
    (issue, *_) = show.history(repository)
    assert [one.type for one in issue.feedback] == ["rejection"]
    assert compare(repository.journal.read(session), ISSUES).difference is None


@pytest.mark.requirement("R159", "R160")
def test_an_audit_that_hangs_is_asked_to_finish_and_then_counts_as_approved(repo: Repo) -> None:
    use_program(repo, "[limits]\ninteractive = 1\nfinish = 1\n", hangs=["AUDIT-001"])

    repository, session = resolved(repo, 3)

    state = repository.state(session)
    assert state.tasks.status("AUDIT-001") is Status.failed
    assert "was asked to finish and gave no result within" in state.tasks.progress["AUDIT-001"].error
    assert any(text.startswith("AUDIT-001 left no audit report") for text in state.warnings)
    assert state.tasks.status("BUILD-001") is Status.completed
    prompts = [str(call["prompt"]) for call in repo.calls() if call["task"] == "AUDIT-001"]
    assert len(prompts) == 2
    assert "## [SOLVE-001] Solution design\nSOLVE-001 done\nArtifact: solutions/" in prompts[0]


def test_a_build_that_fails_leaves_the_other_groups_and_names_its_issues(repo: Repo) -> None:
    use_program(repo, fails=["BUILD-002"])

    repository, session = resolved(repo, 5)

    state = repository.state(session)
    lost = fields(state.tasks.plan["BUILD-002"]).issues
    found = issue_statuses(repository)
    assert {name for name, status in found.items() if status is IssueStatus.failed} == set(lost)
    assert set(found.values()) == {IssueStatus.completed, IssueStatus.failed}
    (reason,) = (text for text in inspect.status(repository, session).outcome.reasons if "not resolved" in text)
    assert reason == f"{', '.join(lost)} are not resolved: BUILD-002 failed: it broke"


def test_an_update_of_a_session_brings_the_users_branch_in_and_tests_it(repo: Repo) -> None:
    use_program(repo)
    repository, session = resolved(repo, 1)
    repo.write("theirs.txt", "theirs")
    repo.commit("theirs")

    request_update(repository, session)
    anyio.run(partial(run_session, repository, session, RunObserver()))

    state = repository.state(session)
    assert set(statuses(repository, session).values()) == {Status.completed}, state.warnings
    assert {"theirs.txt", "GH-1.txt"} <= set(repo.git("ls-tree", "--name-only", state.branch.tip).split())
    assert inspect.status(repository, session).outcome.reasons == ()
    assert issue_statuses(repository) == {"GH-1": IssueStatus.completed}


def test_a_rollback_queues_the_issue_again(repo: Repo) -> None:
    use_program(repo)
    repository, session = resolved(repo, 1)

    roll_back(repository, session, "BUILD-001")

    assert issue_statuses(repository) == {"GH-1": IssueStatus.queued}


def test_issues_of_a_session_that_failed_before_it_built_them_say_why(repo: Repo) -> None:
    use_program(repo, fails=["SOLVE-002"])

    repository, _ = resolved(repo, 5)

    assert issue_statuses(repository) == dict.fromkeys(names(5), IssueStatus.failed)
    assert {one.feedback[-1].content for one in show.issue_list(repository).issues} == {"it broke"}


def test_an_issue_whose_build_was_skipped_names_the_task_that_failed(repo: Repo) -> None:
    use_program(repo, fails=["EXPLORE-001"])

    repository, _ = resolved(repo, 1)

    (issue,) = show.issue_list(repository).issues
    assert issue.status is IssueStatus.failed
    assert issue.feedback[-1].content == "EXPLORE-001 failed: it broke"


def test_issues_of_a_session_whose_plan_is_rejected_are_pending_again(repo: Repo) -> None:
    use_program(repo)
    repository = Repository(repo.path)
    issue = edit.create(repository, {"title": "Broken"})
    session = resolve.start_resolving(repository, Request(requirement=issue.id), [issue], None)
    run = partial(run_session, repository, session, RunObserver())
    anyio.run(run)
    assert issue_statuses(repository) == {issue.id: IssueStatus.planning}

    answer(repository, session, "plan", "reject")
    # No agent is needed for that.
    (repo.path / "iterdev.toml").write_text('[run]\nagent = "gone"\n[agents.gone]\ncommand = ["/nowhere"]\n')
    anyio.run(partial(run_session, Repository(repo.path), session, RunObserver()))

    assert issue_statuses(repository) == {issue.id: IssueStatus.registered}


TEST = """\
import unittest, pathlib


class Texts(unittest.TestCase):
    def test_nothing_is_written(self):
        self.assertEqual(list(pathlib.Path().glob("GH-*.txt")), [])
"""


def test_a_build_that_breaks_a_test_is_kept_and_does_not_land(repo: Repo) -> None:
    use_program(repo)
    settings = (repo.path / "iterdev.toml").read_text().replace('test = "true"', "")
    (repo.path / "iterdev.toml").write_text(settings)
    repo.write("tests/__init__.py", "")
    repo.write("tests/test_texts.py", TEST)
    repo.commit("a test that the work breaks")

    repository, session = resolved(repo, 1)

    state = repository.state(session)
    progress = state.tasks.progress["BUILD-001"]
    assert progress.status is Status.failed
    assert "test_nothing_is_written" in progress.error
    assert state.branch.tip == state.branch.base
    assert progress.unmerged_commits
