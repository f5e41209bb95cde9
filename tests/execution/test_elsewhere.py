"""An attempt can run anywhere: whole sessions whose attempts see neither checkout, session folder nor journal."""

import sys
from pathlib import Path

import pytest
from tests.conftest import Repo, make_repo
from tests.places import Place


@pytest.fixture
def elsewhere(tmp_path: Path) -> Repo:
    """A repository with commands whose attempts run on another host (see `tests/execution/elsewhere.py`)."""
    return make_repo(tmp_path, Place.elsewhere)


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_with_a_fix_round_runs_elsewhere(elsewhere: Repo, engine: str) -> None:
    low = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 5)
    elsewhere.behave(**{"REVIEW-001": {"result": {"scores": low}}})

    done = elsewhere.iterdev("run", "-y", "--engine", engine, "--pipeline", "sprint", "Add a greeting")

    session = elsewhere.folder(engine).name
    landed = elsewhere.git("ls-tree", "--name-only", f"iterdev/{session}").splitlines()
    assert done.returncode == 0, done.stderr
    assert {"DEV-001.txt", "DEV-fix-1.txt"} <= set(landed)
    assert [call["task"] for call in elsewhere.calls()].count("REVIEW-002") == 1


def test_what_an_agent_elsewhere_says_is_in_the_log_of_its_attempt(elsewhere: Repo) -> None:
    elsewhere.behave(**{"DEV-001": {"run": "echo working on it"}})

    elsewhere.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    assert "working on it" in (elsewhere.folder() / "logs" / "DEV-001-1.log").read_text()


def test_an_agent_elsewhere_uses_the_tools_of_the_team_and_its_board_is_shared(elsewhere: Repo) -> None:
    found = '{"ts": "2026-01-01T00:00:00Z", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs"}}'
    tell = f"{sys.executable} -m iterdev team log --summary 'half done'"
    elsewhere.behave(**{"DEV-001": {"run": f"{tell} && echo '{found}' >> $ITERDEV_SESSION_DIR/discoveries.ndjson"}})

    elsewhere.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    assert "[developer] half done" in (elsewhere.folder() / ".msg" / "messages.jsonl").read_text()
    assert '"name": "tabs"' in (elsewhere.folder() / "discoveries.ndjson").read_text()


def test_work_of_an_attempt_elsewhere_that_failed_is_kept(elsewhere: Repo) -> None:
    elsewhere.behave(**{"DEV-001": {"write": {"half.txt": "half"}, "result": {"status": "failed", "error": "no"}}})

    elsewhere.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    kept = elsewhere.git("for-each-ref", "--format=%(refname)", "refs/iterdev/").splitlines()
    assert elsewhere.git("show", f"{kept[0]}:half.txt") == "half"
