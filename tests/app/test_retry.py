"""`iterdev retry`: what failed is told to the one who can fix it."""

import pytest
from tests.app.conftest import Sessions, Team, failed
from tests.conftest import Repo
from tests.session_files import rows, statuses

from iterdev.app import inspect
from iterdev.app.resume import retry
from iterdev.core.errors import UserError

pytestmark = pytest.mark.elsewhere

WRONG = "grep -q right DEV-001.txt 2>/dev/null || test ! -e DEV-001.txt || { echo the greeting is wrong; exit 1; }"


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_the_developer_of_a_patch_gets_what_the_tests_said_and_its_fix_is_verified(
    repo: Repo, team: Team, engine: str
) -> None:
    team.use_tests(WRONG)
    repo.behave(**{"DEV-fix-1": {"write": {"DEV-001.txt": "right\n"}}})
    first = team.run(pipeline="patch", engine=engine)

    again = team.retry()

    folder = repo.folder(engine)
    (prompt,) = team.prompts("DEV-fix-1")
    assert not first.succeeded
    assert again.succeeded, again.lines
    assert statuses(folder) == dict.fromkeys(["DEV-001", "VERIFY-001", "DEV-fix-1", "VERIFY-002"], "completed")
    assert rows(folder)["VERIFY-002"]["deps"] == "DEV-fix-1"
    assert "the greeting is wrong" in prompt
    assert "git diff" in prompt
    assert inspect.replay(team.repository, team.session).difference is None


def test_a_fix_that_does_not_help_fails_again_and_can_be_retried_again(repo: Repo, team: Team) -> None:
    team.use_tests(WRONG)
    repo.behave(**{"DEV-fix-2": {"write": {"DEV-001.txt": "right\n"}}})
    team.run(pipeline="patch")

    second = team.retry()
    third = team.retry()

    assert not second.succeeded
    assert third.succeeded, third.lines
    assert list(statuses(repo.folder()))[2:] == ["DEV-fix-1", "VERIFY-002", "DEV-fix-2", "VERIFY-003"]


def test_a_failed_developer_is_told_why_the_last_attempt_failed(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001#1": {"result": {"status": "failed", "error": "the parser has no such hook"}}})
    team.run(pipeline="patch")

    again = team.retry()

    assert again.succeeded, again.lines
    assert "the parser has no such hook" not in team.prompts("DEV-001")[0]
    assert "the parser has no such hook" in team.prompts("DEV-001")[1]


def test_there_is_nothing_to_retry_where_nothing_failed(team: Team) -> None:
    team.run(pipeline="patch")

    with pytest.raises(UserError, match="failed or was skipped"):
        retry(team.repository, team.session)


def test_a_retry_runs_the_failed_and_the_skipped_tasks_again(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    retry(sessions.repository, session)

    assert {progress.status for progress in sessions.state(session).tasks.progress.values()} == {"pending"}


def test_a_retry_is_refused_while_an_engine_runs(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    with sessions.repository.lease(sessions.log(session)), pytest.raises(UserError, match="is still running"):
        retry(sessions.open(), session)


def test_a_retry_of_work_that_was_not_verified_runs_the_tests_again_on_base_and_change(repo: Repo, team: Team) -> None:
    team.use_tests("exit 3")
    first = team.run(pipeline="patch")
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace("exit 3", "true"))

    again = team.retry()

    assert not first.succeeded
    assert again.succeeded, again.lines
    assert list(statuses(repo.folder())) == ["DEV-001", "VERIFY-001"]
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]
