"""A patch: one development task, one verification, no review and no fix round."""

import json
import re

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import document, left_behind, messages, rows, statuses


def with_tests(repo: Repo, command: str) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', f"test = '{command}'"))
    repo.commit("tests")


@pytest.mark.requirement("R30", "R24")
def test_a_small_fix_becomes_a_patch_of_two_tasks(repo: Repo) -> None:
    run = repo.iterdev("run", "-y", "Fix login button not responding on mobile")

    assert run.returncode == 0, run.stderr
    table = rows(repo.folder())
    assert {name: (row["role"], row["deps"], row["wave"]) for name, row in table.items()} == {
        "DEV-001": ("developer", "", "1"),
        "VERIFY-001": ("tester", "DEV-001", "2"),
    }
    assert {row["pipeline"] for row in table.values()} == {"patch"}
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]


@pytest.mark.requirement("R24", "R97")
def test_a_chinese_request_keeps_its_characters_in_the_session_and_its_branch(repo: Repo) -> None:
    run = repo.iterdev("run", "-y", "修复登录按钮的错误")

    name = repo.folder().name
    branch = repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/iterdev")
    accepted = repo.iterdev("accept", name)
    assert run.returncode == 0, run.stderr
    assert re.fullmatch(r"ids-修复登录按钮的错误-\d{8}", name)
    assert branch == f"iterdev/{name}"
    assert document(repo.folder() / "task-analysis.json")["pipeline_type"] == "patch"
    assert accepted.returncode == 0, accepted.stderr


def test_tests_that_pass_are_run_without_asking_an_agent_and_nobody_says_otherwise(repo: Repo) -> None:
    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    shown = json.loads(repo.iterdev("status", "--json").stdout)
    (verify,) = (line for line in shown["tasks"] if line["id"] == "VERIFY-001")
    assert "  VERIFY-001 started (tester, attempt 1)\n" in run.stdout
    assert (verify["status"], verify["agent"], verify["requests"]) == ("completed", "", 0)
    assert "- Role: tester\n- Status: completed, requests: 0\n" in (repo.folder() / "context.md").read_text()


@pytest.mark.requirement("R4")
def test_a_word_that_contains_a_flag_is_only_a_word(repo: Repo) -> None:
    run = repo.iterdev("run", "Fix check-yaml and the -yes-man of --continued-fractions")

    assert run.returncode == 5
    assert document(repo.folder() / "session.json")["requirement"] == (
        "Fix check-yaml and the -yes-man of --continued-fractions"
    )


@pytest.mark.requirement("R69", "R90", "R164")
def test_failing_tests_fail_a_patch_after_five_tries_to_mend_them(repo: Repo) -> None:
    with_tests(repo, "test ! -e DEV-001.txt || { echo the greeting is wrong; exit 1; }")

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    folder = repo.folder()
    assert run.returncode == 1
    assert f"{folder.name}: 1 completed, 1 failed, 0 skipped" in run.stdout
    assert statuses(folder) == {"DEV-001": "completed", "VERIFY-001": "failed"}
    assert document(folder / "verify" / "verify-001.json")["pass_rate"] == 0
    assert document(folder / "verify" / "verify-001.json")["iterations"] == 5
    mending = [call for call in repo.calls() if call["role"] == "tester"]
    assert [call["attempt"] for call in mending] == [1, 2, 3, 4, 5]
    assert all("the greeting is wrong" in str(call["prompt"]) for call in mending)
    assert len(messages(folder, "fix_required")) == 1
    assert left_behind(repo) == []


@pytest.mark.requirement("R90")
def test_the_words_about_failing_tests_say_what_failed(repo: Repo) -> None:
    with_tests(repo, "test ! -e DEV-001.txt")

    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    error = rows(repo.folder())["VERIFY-001"]["error"]
    assert "0%" in error
    assert "95 %" in error
    assert "exit code 1" in error


@pytest.mark.requirement("R164")
def test_a_tester_that_mends_the_change_saves_the_patch(repo: Repo) -> None:
    with_tests(repo, "test ! -e greeting.txt || grep -q hello greeting.txt")
    repo.behave(
        developer={"write": {"greeting.txt": "helo\n"}},
        **{"VERIFY-001#2": {"write": {"greeting.txt": "hello\n"}}},
    )

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    folder = repo.folder()
    assert run.returncode == 0, run.stdout
    assert document(folder / "verify" / "verify-001.json")["iterations"] == 2
    assert repo.git("show", f"iterdev/{folder.name}:greeting.txt") == "hello"
    assert len(messages(folder, "verify_passed")) == 1


@pytest.mark.requirement("R164")
def test_a_tester_may_not_mend_files_that_the_change_did_not_touch(repo: Repo) -> None:
    with_tests(repo, "test ! -e greeting.txt || grep -q hello README.md")
    repo.behave(
        developer={"write": {"greeting.txt": "hello\n"}},
        tester={"write": {"README.md": "hello\n"}},
    )

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    folder = repo.folder()
    assert run.returncode == 1
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == "# Sample"
    assert "README.md" in run.stdout
    assert "outside the change" in run.stdout


@pytest.mark.requirement("R90")
def test_the_tester_that_is_asked_to_mend_is_told_how_to_hand_in(repo: Repo) -> None:
    with_tests(repo, "test ! -e DEV-001.txt")

    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    (first, *_) = [str(call["prompt"]) for call in repo.calls() if call["role"] == "tester"]
    assert "VERIFY-001" in first
    assert "ITERDEV_RESULT" in first
    assert "JSON Schema" in first


def test_failures_that_were_there_before_are_not_blamed_on_the_change(repo: Repo) -> None:
    repo.write("test_old.py", "import unittest\nclass T(unittest.TestCase):\n  def test_old(self): self.fail()\n")
    with_tests(repo, "python3 -m unittest")

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    measured = document(repo.folder() / "verify" / "verify-001.json")
    assert run.returncode == 0, run.stdout
    assert measured["regressions"] == []
    assert len(measured["known_failures"]) == 1
    assert "failed before" in run.stdout


def test_without_any_tests_the_report_says_that_nothing_was_verified(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', ""))
    repo.commit("no tests")

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    assert run.returncode == 0, run.stdout
    assert document(repo.folder() / "verify" / "verify-001.json")["pass_rate"] is None
    assert "nothing was verified" in run.stdout
    assert "nothing was verified" in repo.iterdev("report").stdout
