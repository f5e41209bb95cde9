"""`kill -9` of iterdev in the middle of a turn of a real coding agent: nothing of it stays, and the run goes on."""

from pathlib import Path

import pytest
from tests.clis import pids_with
from tests.e2e.coding.conftest import CLIS, PATIENCE, Studio, script
from tests.e2e.conftest import Background, eventually
from tests.session_files import left_behind, processes, statuses


def sockets_of(pids: set[int]) -> set[str]:
    """The paths of the sockets that are named after a process, as claude names its own."""
    paths = (line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines())
    return {path for path in paths if path.removesuffix(".sock").rpartition("/")[2] in set(map(str, pids))}


@pytest.mark.parametrize("agent", CLIS)
def test_nothing_of_a_killed_run_stays_and_the_session_is_finished_later(agent: str, studio: Studio) -> None:
    repo = studio.repo
    with studio.asking(script("busy")), Background(repo, "run", "-y", "--pipeline", "patch", "Greet people") as running:
        eventually(lambda: list((repo.home / "iterdev").glob("*/*/*/tree/begun.txt")), "a command of the agent")
        at_work = [line for line in processes(repo) if "sleep 600" in line]
        sockets = sockets_of(set(pids_with(str(repo.home))))
        running.kill()
    with studio.asking(script("sprint")) as model:
        resumed = repo.iterdev("resume", timeout=PATIENCE)
    left = left_behind(repo)

    assert at_work
    assert all(path.startswith(str(repo.home)) for path in sockets)
    assert bool(sockets) == (agent == "claude")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert studio.landed("test_greeting.py").startswith("import unittest")
    kept = repo.git("rev-parse", f"refs/iterdev/{studio.session}/DEV-001/1")
    assert repo.git("show", f"{kept}:half.txt") == "half"
    assert any(f"commit {kept}: take what is good from it" in request.body for request in model.requests)
    assert left == []
