"""A patch: one development task, one verification, no review and no fix round."""

import re
from pathlib import Path

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import document, left_behind, messages, rows, statuses

from iterdev.app.completion import accept
from iterdev.app.inspect import report
from iterdev.core.types import Ending

pytestmark = pytest.mark.elsewhere


@pytest.mark.requirement("R30", "R24")
def test_a_small_fix_becomes_a_patch_of_two_tasks(repo: Repo, team: Team) -> None:
    run = team.run("Fix login button not responding on mobile")

    assert run.succeeded, run.lines
    table = rows(repo.folder())
    assert {name: (row["role"], row["deps"], row["wave"]) for name, row in table.items()} == {
        "DEV-001": ("developer", "", "1"),
        "VERIFY-001": ("tester", "DEV-001", "2"),
    }
    assert {row["pipeline"] for row in table.values()} == {"patch"}
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]


@pytest.mark.requirement("R24", "R97")
def test_a_chinese_request_keeps_its_characters_in_the_session_and_its_branch(repo: Repo, team: Team) -> None:
    run = team.run("修复登录按钮的错误")

    name = repo.folder().name
    branch = repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/iterdev")
    assert run.succeeded, run.lines
    assert re.fullmatch(r"ids-修复登录按钮的错误-\d{8}", name)
    assert branch == f"iterdev/{name}"
    assert document(repo.folder() / "task-analysis.json")["pipeline_type"] == "patch"
    assert accept(team.repository, team.session).branch == "main"


def test_tests_that_pass_are_run_without_asking_an_agent_and_nobody_says_otherwise(repo: Repo, team: Team) -> None:
    run = team.run(pipeline="patch")

    (verify,) = (task for task in run.view.tasks if task.id == "VERIFY-001")
    assert "  VERIFY-001 started (tester, attempt 1)" in run.lines
    assert (verify.status, verify.agent, verify.requests) == ("completed", "", 0)
    assert "- Role: tester\n- Status: completed, requests: 0\n" in (repo.folder() / "context.md").read_text()


@pytest.mark.requirement("R69", "R90", "R164")
def test_failing_tests_fail_a_patch_after_five_tries_to_mend_them(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e DEV-001.txt || { echo the greeting is wrong; exit 1; }")

    run = team.run(pipeline="patch")

    folder = repo.folder()
    assert not run.succeeded
    assert statuses(folder) == {"DEV-001": "completed", "VERIFY-001": "failed"}
    assert document(folder / "verify" / "verify-001.json")["pass_rate"] == 0
    assert document(folder / "verify" / "verify-001.json")["iterations"] == 5
    mending = [call for call in repo.calls() if call["role"] == "tester"]
    assert [call["attempt"] for call in mending] == [1, 2, 3, 4, 5]
    assert all("the greeting is wrong" in str(call["prompt"]) for call in mending)
    assert len(messages(folder, "fix_required")) == 1
    assert left_behind(repo) == []


@pytest.mark.requirement("R90")
def test_the_words_about_failing_tests_say_what_failed(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e DEV-001.txt")

    team.run(pipeline="patch")

    error = rows(repo.folder())["VERIFY-001"]["error"]
    assert "0%" in error
    assert "95 %" in error
    assert "exit code 1" in error


@pytest.mark.requirement("R164")
def test_a_tester_that_mends_the_change_saves_the_patch(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e greeting.txt || grep -q hello greeting.txt")
    repo.behave(
        developer={"write": {"greeting.txt": "helo\n"}},
        **{"VERIFY-001#2": {"write": {"greeting.txt": "hello\n"}}},
    )

    run = team.run(pipeline="patch")

    folder = repo.folder()
    assert run.succeeded, run.lines
    assert document(folder / "verify" / "verify-001.json")["iterations"] == 2
    assert repo.git("show", f"iterdev/{folder.name}:greeting.txt") == "hello"
    assert len(messages(folder, "verify_passed")) == 1


@pytest.mark.requirement("R164")
def test_a_tester_may_not_mend_files_that_the_change_did_not_touch(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e greeting.txt || grep -q hello README.md")
    repo.behave(
        developer={"write": {"greeting.txt": "hello\n"}},
        tester={"write": {"README.md": "hello\n"}},
    )

    run = team.run(pipeline="patch")

    folder = repo.folder()
    assert not run.succeeded
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == "# Sample"
    assert any("README.md" in line and "outside the change" in line for line in run.lines)


@pytest.mark.requirement("R90")
def test_the_tester_that_is_asked_to_mend_is_told_how_to_hand_in(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e DEV-001.txt")

    team.run(pipeline="patch")

    (first, *_) = [str(call["prompt"]) for call in repo.calls() if call["role"] == "tester"]
    assert "VERIFY-001" in first
    assert "ITERDEV_RESULT" in first
    assert "JSON Schema" in first


OLD_FAILURE = "import unittest\nclass T(unittest.TestCase):\n  def test_old(self): self.fail()\n"
PASSING = "  def test_{0}(self): self.assertNotEqual(open('README.md').read(), 'broken')\n"


def many_tests(repo: Repo, count: int = 40) -> None:
    tests = "".join(PASSING.format(number) for number in range(count))
    checks = "  def test_greeting(self):\n    import os; self.assertFalse(os.path.exists('DEV-001.txt'))\n"
    repo.write("test_all.py", f"import unittest\nclass T(unittest.TestCase):\n{tests}{checks}")


def test_failures_that_were_there_before_are_not_blamed_on_the_change(repo: Repo, team: Team) -> None:
    repo.write("test_old.py", OLD_FAILURE + "  def test_good(self): pass\n")
    team.use_tests("python3 -m unittest")

    run = team.run(pipeline="patch")

    measured = document(repo.folder() / "verify" / "verify-001.json")
    assert run.succeeded, run.lines
    assert measured["regressions"] == []
    assert len(measured["known_failures"]) == 1
    assert any("failed before" in text for text in (*run.lines, *run.view.warnings))


FAILING_IN_THE_SECOND_RUN = """\
const {{appendFileSync, readFileSync}} = require('node:fs');
require('node:test').test('unsteady', () => {{
  appendFileSync('{runs}', '.');
  if (readFileSync('{runs}').length === 2) throw new Error('not this time');
}});
"""


@pytest.mark.parametrize("command", ["node --test", "npm test"])
def test_a_test_that_passes_when_it_is_run_again_is_not_blamed_on_the_change(
    repo: Repo, team: Team, tmp_path: Path, command: str
) -> None:
    repo.write("a.test.js", FAILING_IN_THE_SECOND_RUN.format(runs=tmp_path / "runs"))
    repo.write("package.json", '{"scripts": {"test": "node --test"}}')
    team.use_tests(command)

    run = team.run(pipeline="patch")

    measured = document(repo.folder() / "verify" / "verify-001.json")
    assert run.succeeded, run.lines
    assert (measured["pass_rate"], measured["flaky"]) == (100, ["a.test.js::unsteady"])


@pytest.mark.requirement("R90")
def test_one_regression_among_many_tests_fails_a_patch(repo: Repo, team: Team) -> None:
    many_tests(repo)
    team.use_tests("python3 -m unittest")

    run = team.run(pipeline="patch")

    folder = repo.folder()
    assert document(folder / "verify" / "verify-001.json")["pass_rate"] > 95
    assert not run.succeeded
    assert rows(folder)["VERIFY-001"]["error"] == "1 regression: test_all.T::test_greeting"
    assert run.view.outcome.reasons == ("tasks: 1 failed", rows(folder)["VERIFY-001"]["error"])


@pytest.mark.requirement("R90")
def test_a_test_that_the_change_removes_fails_a_patch(repo: Repo, team: Team) -> None:
    many_tests(repo)
    team.use_tests("python3 -m unittest")
    only = "import unittest\nclass T(unittest.TestCase):\n" + PASSING.format(0)
    repo.behave(developer={"write": {"test_all.py": only}})

    run = team.run(pipeline="patch")

    assert not run.succeeded
    assert "40 missing tests: " in rows(repo.folder())["VERIFY-001"]["error"]


def test_failing_tests_are_told_once_and_nothing_is_called_untested(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e DEV-001.txt")

    run = team.run(pipeline="patch")

    assert not any("untested" in text for text in (*run.view.warnings, *run.view.outcome.reasons))


@pytest.mark.requirement("R164")
def test_without_any_tests_nothing_is_verified_and_that_is_no_success(repo: Repo, team: Team) -> None:
    team.use_tests("")

    run = team.run(pipeline="patch")

    assert not run.succeeded
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert "nothing could be verified" in run.view.outcome.reasons[0]
    assert document(repo.folder() / "verify" / "verify-001.json")["pass_rate"] is None
    assert any("nothing was verified" in text for text in run.view.warnings)
    assert "nothing was verified" in report(team.repository, team.session)
    assert messages(repo.folder(), "verify_passed") == []
    assert len(messages(repo.folder(), "verify_failed")) == 1


@pytest.mark.parametrize(("choice", "succeeds"), [("accept", True), ("reject", False)])
def test_the_user_decides_whether_an_unverified_patch_counts_as_done(
    repo: Repo,
    team: Team,
    choice: str,
    succeeds: bool,  # noqa: FBT001
) -> None:
    repo.write("test_old.py", OLD_FAILURE)
    team.use_tests("python3 -m unittest")
    asked = team.run(pipeline="patch", auto=False)
    team.answer("plan", "approve")

    asked = team.resume()
    (gate,) = asked.view.gates
    team.answer(gate.id, choice)
    ended = team.resume()

    assert gate.id.startswith("unverified")
    assert "`python3 -m unittest` that ran had failed before the change too: AssertionError" in gate.question
    assert "[project]" in gate.question
    assert (ended.result.ending, ended.succeeded) == (Ending.over, succeeds)


def test_the_first_tests_of_a_repository_verify_the_change_that_brings_them(repo: Repo, team: Team) -> None:
    team.use_tests("python3 -m unittest")
    first = "import unittest\nclass T(unittest.TestCase):\n  def test_new(self): pass\n"
    repo.behave(developer={"write": {"test_new.py": first}})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines
    assert any("nothing was verified before the change" in text for text in run.view.team.reservations)


def test_a_secret_in_a_row_or_in_the_file_of_a_role_does_not_reach_the_agent(
    repo: Repo, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", f"{settings}\n[roles.developer]\nfile = 'developer.md'\n")
    repo.write("developer.md", "Deploy with correct-horse-battery.\n")

    team.run(table="id,description\nDEV-001,Log in with correct-horse-battery\n")

    (prompt,) = team.prompts("DEV-001")
    assert "correct-horse-battery" not in prompt
    assert "Log in with [secret]" in prompt
    assert "Deploy with [secret]." in prompt
