"""The end of a session: archived, kept, exported, tried again, and opened once more."""

import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Terminal
from tests.session_files import document, left_behind, messages, statuses

from iterdev.host import paths


def patched(repo: Repo, *more: str) -> str:
    """A finished session of two tasks."""
    repo.iterdev("run", "-y", *more, "Fix the greeting")
    return repo.folder("beat" if "beat" in more else "wave").name


def approved(repo: Repo, engine: str) -> str:
    """A session whose plan has been approved, so that its end is the only question that is left."""
    repo.iterdev("run", "--engine", engine, "--pipeline", "patch", "Fix the greeting")
    session = repo.folder(engine).name
    repo.iterdev("answer", session, "plan", "approve")
    return session


def configured(repo: Repo, action: str) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", f'{text}\n[session]\ncompletion_action = "{action}"\n')
    repo.commit("completion")


def listed(repo: Repo, session: str) -> str:
    (line,) = [line for line in repo.iterdev("sessions").stdout.splitlines() if session in line]
    return line.split()[1]


@pytest.mark.requirement("R20")
def test_archiving_removes_the_teams_resources_and_neither_branch_nor_refs(repo: Repo) -> None:
    session = patched(repo)
    refs = repo.git("for-each-ref", "--format=%(refname) %(objectname)")
    slot = repo.home / "iterdev" / paths.workspaces_of(repo.path).name / session / "1"
    (slot / "tmp").mkdir(parents=True)

    archived = repo.iterdev("archive", session)

    assert archived.returncode == 0, archived.stderr
    assert f"{session} is archived: 2 completed, 0 failed, 0 skipped" in archived.stdout
    assert not slot.exists()
    assert document(repo.folder() / "session.json")["status"] == "completed"
    assert messages(repo.folder(), "shutdown") == ["[coordinator] the session is archived"]
    assert repo.git("for-each-ref", "--format=%(refname) %(objectname)") == refs
    assert listed(repo, session) == "archived"
    assert repo.iterdev("accept", session).returncode == 0


def test_an_archived_session_can_be_reopened_and_taken_up(repo: Repo) -> None:
    repo.behave(**{"DEV-001#1": {"exit": 1}})
    session = patched(repo)
    repo.iterdev("archive", session)
    nothing_to_resume = repo.iterdev("resume")

    reopened = repo.iterdev("reopen", session)
    again = repo.iterdev("reopen", session)
    retried = repo.iterdev("retry", session)

    assert nothing_to_resume.returncode == 2
    assert (reopened.returncode, again.returncode) == (0, 2)
    assert f"iterdev resume {session}" in reopened.stdout
    assert retried.returncode == 0, retried.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}


def test_failed_tasks_of_an_archived_session_can_be_tried_again_at_once(repo: Repo) -> None:
    repo.behave(**{"DEV-001#1": {"exit": 1}})
    session = patched(repo)
    repo.iterdev("archive", session)

    assert repo.iterdev("retry", session).returncode == 0
    assert listed(repo, session) == "completed"


@pytest.mark.requirement("R21")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_export_copies_the_deliverables_and_then_archives(repo: Repo, engine: str) -> None:
    session = patched(repo, "--engine", engine)
    folder = repo.folder(engine)

    exported = repo.iterdev("export", session, "../handed/out")

    target = repo.path.parent / "handed" / "out"
    assert exported.returncode == 0, exported.stderr
    assert str(target) in exported.stdout
    for name in ("context.md", "results.csv", "code/dev-log.md", "verify/verify-001.json", "wisdom/learnings.md"):
        assert (target / name).read_bytes() == (folder / name).read_bytes()
    assert listed(repo, session) == "archived"
    subprocess.run(["git", "apply", target / "changes.patch"], cwd=repo.path, check=True)
    assert (repo.path / "DEV-001.txt").read_text(encoding="utf-8") == "DEV-001 attempt 1\n"


def test_export_overwrites_nothing_and_leaves_the_session_as_it_was(repo: Repo) -> None:
    session = patched(repo)
    target = repo.home / "out"
    target.mkdir()
    (target / "context.md").write_text("mine\n", encoding="utf-8")

    refused = repo.iterdev("export", session, str(target))
    into_a_file = repo.iterdev("export", session, str(repo.path / "README.md"))

    assert (refused.returncode, into_a_file.returncode) == (2, 2)
    assert (target / "context.md").read_text(encoding="utf-8") == "mine\n"
    assert [path.name for path in target.iterdir()] == ["context.md"]
    assert listed(repo, session) == "completed"


def test_an_unfinished_session_is_not_put_away(repo: Repo) -> None:
    repo.iterdev("run", "Fix the greeting")

    refused = repo.iterdev("archive", repo.folder().name)

    assert refused.returncode == 2
    assert "not finished" in refused.stderr


@pytest.mark.parametrize(
    ("action", "standing", "status"), [("auto_archive", "archived", "completed"), ("auto_keep", "paused", "paused")]
)
def test_the_configuration_can_choose_what_becomes_of_a_session(
    repo: Repo, action: str, standing: str, status: str
) -> None:
    configured(repo, action)

    run = repo.iterdev("run", "-y", "Fix the greeting")

    session = repo.folder().name
    assert run.returncode == 0, run.stderr
    assert listed(repo, session) == standing
    assert document(repo.folder() / "session.json")["status"] == status
    assert repo.iterdev("accept", session).returncode == 0
    assert left_behind(repo) == []


def test_without_a_terminal_nobody_is_asked_and_the_session_stays_completed(repo: Repo) -> None:
    session = patched(repo)

    answered = repo.iterdev("answer", session, "completion", "keep")
    unfit = repo.iterdev("answer", session, "completion", "retry")

    assert answered.returncode == 0, answered.stderr
    assert f"Continue with: iterdev resume {session}" in answered.stdout
    assert unfit.returncode == 2
    assert listed(repo, session) == "paused"
    assert repo.iterdev("resume").returncode == 0


@pytest.mark.requirement("R18", "R20")
def test_in_a_terminal_the_question_is_asked_and_retry_runs_the_failed_tasks_again(
    repo: Repo, terminal: Terminal
) -> None:
    repo.behave(**{"DEV-001#1": {"exit": 1}})
    session = approved(repo, "wave")
    terminal.type(f"iterdev resume {session}")
    terminal.until("wave-1 [abort]")
    terminal.type("abort")

    asked = terminal.until("1. retry", "2. keep", "3. archive", "4. export", "completion [retry]")
    terminal.type("retry")
    again = terminal.until("2 completed, 0 failed", "completion [accept]")
    terminal.type("keep")
    kept = terminal.until("is kept active")

    assert "What now?" in asked
    assert again.count("Run the failed tasks again") == 1
    assert f"Continue with: iterdev resume {session}" in kept
    assert document(repo.folder() / "session.json")["status"] == "paused"


@pytest.mark.requirement("R19", "R20", "R21")
def test_in_a_terminal_export_asks_for_a_path_and_then_archives(repo: Repo, terminal: Terminal) -> None:
    session = approved(repo, "beat")
    terminal.type(f"iterdev resume {session}")
    terminal.until("1. accept", "2. diff", "3. archive", "4. keep", "5. export", "completion [accept]")
    terminal.type("export")
    terminal.until("Export to which folder?")
    terminal.type(str(repo.home / "out"))

    terminal.until("is archived", "Exported to")

    assert (repo.home / "out" / "context.md").exists()
    assert document(repo.folder("beat") / "session.json")["status"] == "completed"


def test_a_completion_that_fails_keeps_the_session_and_the_question_comes_again(repo: Repo, terminal: Terminal) -> None:
    session = approved(repo, "wave")
    terminal.type(f"iterdev resume {session}; echo code $?")
    terminal.until("completion [accept]")
    terminal.type("export")
    terminal.until("Export to which folder?")
    terminal.type(str(repo.path / "README.md"))
    screen = terminal.until("code 0")
    standing = listed(repo, session)
    terminal.type("clear; iterdev resume")
    terminal.until("completion [accept]")
    terminal.type("arch")
    terminal.until("is archived")

    assert "export failed" in screen
    assert f"{session} is kept active" in screen
    assert standing == "paused"
    assert listed(repo, session) == "archived"


def test_a_rebuilt_journal_still_knows_that_a_session_was_archived(repo: Repo) -> None:
    session = patched(repo)
    repo.iterdev("archive", session)
    for path in (repo.path / ".workflow").glob("iterdev.db*"):
        path.unlink()

    assert listed(repo, session) == "archived"
