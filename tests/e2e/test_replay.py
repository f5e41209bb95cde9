"""iterdev replay: the same decisions again, or the first one that differs."""

import json
import sqlite3

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work
from tests.session_files import rows


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_with_a_fix_round_replays_without_difference(repo: Repo, engine: str) -> None:
    problem = {"severity": "critical", "description": "wrong", "file": "DEV-001.txt", "line": 1}
    repo.behave(**{"REVIEW-001": {"score": 5, "issues": [problem]}})
    repo.iterdev("run", "-y", "--engine", engine, "--pipeline", "sprint", "Add a greeting")

    told = repo.iterdev("replay", repo.folder(engine).name)

    assert "DEV-fix-1" in rows(repo.folder(engine))
    assert told.returncode == 0, told.stdout
    assert "makes no difference" in told.stdout


def test_a_killed_session_with_questions_and_an_edited_table_replays_without_difference(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "sprint", "Add a greeting")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")
    table = repo.folder() / "tasks.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("Code review", "A careful review"), encoding="utf-8")
    with agent_at_work(repo, "resume", session) as running:
        running.kill()
    repo.behave()
    ended = repo.iterdev("resume", session)

    told = repo.iterdev("replay", session, "--json")

    assert ended.returncode == 0, ended.stderr
    assert rows(repo.folder())["REVIEW-001"]["title"].startswith("A careful review")
    assert told.returncode == 0
    replayed = json.loads(told.stdout)
    assert (replayed["session"], replayed["difference"]) == (session, None)
    assert 0 < replayed["decisions"] < replayed["entries"]


def test_a_journal_that_somebody_changed_shows_the_first_difference(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix the greeting")
    session = repo.folder().name
    with sqlite3.connect(repo.path / ".workflow" / "iterdev.db") as journal:
        changed = "UPDATE events SET body = CAST(replace(body, '\"wave\":2', '\"wave\":3') AS BLOB)"
        journal.execute(f"{changed} WHERE CAST(body AS TEXT) LIKE '%WaveStarted%'")
    journal.close()

    told = repo.iterdev("replay", session)
    document = json.loads(repo.iterdev("replay", session, "--json").stdout)["difference"]

    assert told.returncode == 1
    assert 'recorded then: WaveStarted {"type": "WaveStarted", "wave": 3}' in told.stdout
    assert 'decided now:   Record {"events": [{"type": "WaveStarted", "wave": 2}]}' in told.stdout
    assert document["recorded"] == {"type": "WaveStarted", "wave": 3}
    assert document["decided"] == [{"command": "Record", "events": [{"type": "WaveStarted", "wave": 2}]}]


def test_an_unknown_session_is_refused(repo: Repo) -> None:
    assert repo.iterdev("replay", "ids-nothing").returncode == 2
