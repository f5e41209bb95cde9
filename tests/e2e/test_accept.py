"""Accepting a session: what is shown, and what has to be confirmed."""

import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Terminal


@pytest.fixture
def unverified(repo: Repo) -> str:
    """A finished patch in a repository without tests."""
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace('test = "true"', ""))
    repo.commit("no tests")
    done = repo.iterdev("run", "-y", "Fix the greeting")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("Not successful: nothing could be verified: no test command was")
    return repo.folder().name


def test_work_that_is_good_is_accepted_with_what_was_measured(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix the greeting")

    accepted = repo.iterdev("accept")

    assert accepted.returncode == 0, accepted.stderr
    assert "1 commit, 1 file changed" in accepted.stdout
    assert "Tests: VERIFY-001: 100.0% passed, `true`" in accepted.stdout


def test_work_that_nobody_verified_is_accepted_by_force_alone(repo: Repo, unverified: str) -> None:
    before = repo.git("rev-parse", "main")

    refused = repo.iterdev("accept")
    untouched = repo.git("rev-parse", "main")
    forced = repo.iterdev("accept", "--force")

    assert (refused.returncode, untouched) == (1, before)
    assert f'iterdev: "{unverified}" is not known to be good: nothing could be verified: ' in refused.stderr
    assert f"iterdev accept {unverified} --force" in refused.stderr
    assert forced.returncode == 0, forced.stderr
    assert repo.git("rev-parse", "main") != before


def test_in_a_terminal_the_user_is_asked_about_work_that_nobody_verified(
    repo: Repo, unverified: str, terminal: Terminal
) -> None:
    terminal.type("iterdev accept; echo exit=$?")
    terminal.until("Not good: nothing could be verified", "Merge it into main anyway? [y/N]:")

    terminal.type("y")

    terminal.until("main is now at", "exit=0")
    assert repo.git("show", "main:DEV-001.txt") == "DEV-001 attempt 1"


@pytest.mark.parametrize("ended", ["-9 0", "-INT 0", "-9 $PPID"], ids=["its group", "Ctrl-C", "git alone"])
def test_an_accept_that_is_killed_in_the_middle_is_repeated_without_a_trace(repo: Repo, ended: str) -> None:
    files = {name: f"{name}\n" for name in ("a.txt", "m.txt", "z.txt")}
    repo.behave(developer={"write": {**files, ".gitattributes": "m.txt filter=killer\n"}})
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting")
    repo.git("config", "filter.killer.smudge", f"kill {ended}; exit 1")

    killed = subprocess.run(
        repo.command("accept"), cwd=repo.path, env=repo.env, capture_output=True, start_new_session=True, check=False
    )
    repo.git("config", "--unset", "filter.killer.smudge")
    again = repo.iterdev("accept")

    assert killed.returncode in {-9, 4, 130}
    assert again.returncode == 0, again.stderr
    assert repo.git("status", "--porcelain") == ""
    assert {name: (repo.path / name).read_text() for name in files} == files


def test_an_accept_as_one_commit_is_shown_and_taken_back(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix the greeting")
    before = repo.git("rev-parse", "main")

    accepted = repo.iterdev("accept", "--squash")
    squashed = repo.git("log", "--format=%s", f"{before}..main")
    undone = repo.iterdev("accept", "--undo")

    assert (accepted.returncode, squashed) == (0, "Fix the greeting"), accepted.stderr
    assert undone.stdout.startswith(f"main is at {before[:12]} again"), undone.stderr
    assert (repo.git("rev-parse", "main"), repo.git("status", "--porcelain")) == (before, "")


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--squash", "--no-ff"], "exclude each other"), (["--undo", "--squash"], "goes with no other option")],
)
def test_options_that_contradict_each_other_are_refused(repo: Repo, options: list[str], said: str) -> None:
    repo.iterdev("run", "-y", "Fix the greeting")

    refused = repo.iterdev("accept", *options)

    assert refused.returncode == 2
    assert said in refused.stderr


@pytest.mark.parametrize("ended", ["-9 $PPID", "-9 0"], ids=["git alone", "its group"])
def test_a_squash_that_is_killed_in_a_hook_is_repeated_without_a_trace(repo: Repo, ended: str) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting")
    hook = repo.path / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nkill {ended}; sleep 0.2; exit 1\n")
    hook.chmod(0o755)

    subprocess.run(repo.command("accept", "--squash"), cwd=repo.path, env=repo.env, start_new_session=True, check=False)
    hook.unlink()
    again = repo.iterdev("accept", "--squash")

    assert again.returncode == 0, again.stderr
    assert repo.git("status", "--porcelain") == ""
    assert repo.git("log", "-1", "--format=%s") == "Fix the greeting"
