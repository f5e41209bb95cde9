"""What is made of attempts whose engine died."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.engine.conftest import Office

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
