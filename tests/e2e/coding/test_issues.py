"""Issues that real coding agents explore, plan, audit and build; iterdev orders them, tests them, and lands them."""

import pytest
from tests.e2e.coding.conftest import PATIENCE, Studio, script
from tests.issue_agents import create_issues, status_of_issues
from tests.session_files import left_behind, statuses

QUICK = ["EXPLORE-001", "SOLVE-001", "MARSHAL-001", "BUILD-001"]
FULL = ["EXPLORE-001", "SOLVE-001", "AUDIT-001", "MARSHAL-001", "BUILD-001", "SOLVE-fix-001", "AUDIT-002"]


@pytest.mark.parametrize("agent", ["claude", "codex"])
@pytest.mark.parametrize(("priority", "tasks"), [(3, QUICK), (4, FULL)], ids=["quick", "full"])
def test_one_agent_in_every_role_resolves_issues(agent: str, studio: Studio, priority: int, tasks: list[str]) -> None:
    create_issues(studio.repo, 2, "--priority", str(priority))

    with studio.asking(script("issues")) as model:
        done = studio.repo.iterdev("resolve", "-y", "GH-1 GH-2", timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 0, done.stdout + done.stderr
    assert statuses(studio.repo.folder()) == dict.fromkeys(tasks, "completed")
    assert ("fix cycle 1 of 2" in done.stdout) is (tasks is FULL)
    assert status_of_issues(studio.repo) == {"GH-1": "completed", "GH-2": "completed"}
    assert studio.landed("farewell.py").startswith("def part(name):")
    assert studio.authors() == [(f"implementer ({agent})", "BUILD-001: Implementation")]
    assert "Tests: BUILD-001: 100.0% of 1 test passed" in studio.repo.iterdev("report").stdout
    assert {request.status for request in model.requests} == {200}
    assert left == []
