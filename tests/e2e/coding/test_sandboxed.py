"""A sprint with real coding agents, all of it in the sandbox."""

import pytest
from tests.e2e.coding.conftest import PATIENCE, SETTINGS, Studio, script
from tests.session_files import left_behind, statuses

ENCLOSED = SETTINGS.replace("[run]\n", "[run]\nsandbox = true\n") + '\n[roles.reviewer]\nagent = "codex"\n'


@pytest.mark.parametrize("agent", ["claude"])
def test_claude_develops_and_codex_reviews_in_the_sandbox(agent: str, studio: Studio) -> None:
    for login in (".claude", ".codex", ".ssh"):
        (studio.repo.home / login).mkdir()
    studio.configure(ENCLOSED.format(agent=agent, home=studio.repo.home))

    with studio.asking(script("sprint")):
        done = studio.repo.iterdev("run", "-y", "--pipeline", "sprint", "Greet people", timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(studio.repo.folder()).values()) == {"completed"}
    assert "REVIEW-002 completed: score 9, CONVERGED" in done.stdout
    assert "VERIFY-001 completed: Pass rate 100.0% of 1 test" in done.stdout
    assert studio.landed("test_greeting.py").startswith("import unittest")
    assert "outside its workspace" not in done.stdout
    assert list((studio.repo.home / ".claude").iterdir())
    assert list((studio.repo.home / ".codex").iterdir())
    assert left == []
