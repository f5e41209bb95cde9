"""What is made of attempts whose engine died."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.engine.conftest import Office

from iterdev.core.session.events import AttemptStarted
from iterdev.core.types import Status, TaskId
from iterdev.engine.effects import Effects
from iterdev.engine.recovery import end_attempts
from iterdev.host.workspaces.pool import Pool


@pytest.fixture
def pool(repo: Repo, tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(repo.path, tmp_path / "workspaces", tmp_path / "temps")
    yield pool
    pool.close()


@pytest.mark.parametrize(("task", "requests"), [("DEV-001", 1), ("DESIGN-001", 1), ("VERIFY-001", 0)])
def test_the_request_of_a_killed_attempt_counts_unless_iterdev_ran_the_tests_itself(
    repo: Repo, office: Office, pool: Pool, task: str, requests: int
) -> None:
    office.job(task)

    end_attempts(office.log, repo.path, pool, Effects())

    progress = office.log.state.tasks.progress[TaskId(task)]
    assert (progress.status, progress.requests, progress.number) == (Status.pending, requests, 1)


def test_an_attempt_that_outlives_its_engine_stays_open(repo: Repo, office: Office, pool: Pool) -> None:
    elsewhere = AttemptStarted(TaskId("DESIGN-001"), 1, "mine", "b" * 40, where="hosts")
    office.log.record(elsewhere)
    office.job("DEV-001")

    end_attempts(office.log, repo.path, pool, Effects())

    assert list(office.log.state.attempts.running) == ["DESIGN-001"]


@pytest.mark.parametrize("forged", ["base", "task"])
def test_a_leftover_that_cannot_be_kept_is_set_aside_and_the_rest_is_kept(
    repo: Repo, office: Office, pool: Pool, forged: str
) -> None:
    base = repo.git("rev-parse", "HEAD")
    names = {"DEV-001": "precious", "DESIGN-001": "design"}
    for task, name in names.items():
        office.log.record(AttemptStarted(TaskId(task), 1, "mine", base))
        (pool.borrow(base, task=task, number=1)[0].tree / name).write_text("work\n")
    workspace = next(left for left, borrower in pool.leftovers() if borrower.task == "DEV-001")
    damaged = {"task": "DEV-001" if forged == "base" else "../x", "number": 2, "base": "0" * 40}
    (workspace.slot / "attempt.json").write_text(json.dumps(damaged))

    end_attempts(office.log, repo.path, pool, Effects())

    state = office.log.state
    (warning,) = state.warnings
    place = warning.partition(" is kept as it is in ")[2].partition(":")[0]
    assert Path(place, "tree", "precious").read_text() == "work\n"
    assert repo.git("show", f"refs/iterdev/{office.log.session}/DESIGN-001/1:design") == "work"
    assert {state.tasks.status(TaskId(task)) for task in names} == {Status.pending}


def test_the_base_of_a_leftover_is_that_of_the_journal(repo: Repo, office: Office, pool: Pool) -> None:
    base = repo.git("rev-parse", "HEAD")
    office.log.record(AttemptStarted(TaskId("DEV-001"), 1, "mine", base))
    workspace, _ = pool.borrow(base, task="DEV-001", number=1)
    (workspace.tree / "precious").write_text("work\n")
    (workspace.slot / "attempt.json").write_text(json.dumps({"task": "DEV-001", "number": 1, "base": "0" * 40}))

    end_attempts(office.log, repo.path, pool, Effects())

    assert repo.git("log", "-1", "--format=%P", f"refs/iterdev/{office.log.session}/DEV-001/1") == base
    assert list(office.log.state.warnings) == []
