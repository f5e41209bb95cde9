"""Whole sprints with real coding agents: they design, write, review, mend and test; iterdev lands what is good."""

import pytest
from tests.e2e.coding.conftest import PATIENCE, Studio, script
from tests.session_files import left_behind, statuses

from iterdev.agents.scripted.script import Script
from iterdev.core.results import Usage

JOINED = "def greet(name):\n    return 'Hello, ' + name"
RUN = ("run", "-y", "--pipeline", "sprint", "Greet people")


def spent(usage: Usage) -> tuple[int, int]:
    return usage.input_tokens, usage.output_tokens


def who(report: str) -> dict[str, str]:
    """The agent of each task, as the report tells it."""
    tasks = [part.splitlines() for part in report.split("\n### ") if "\n- Role: " in part]
    return {lines[0].split(":")[0]: lines[2].split("agent: ")[1] for lines in tasks if "agent: " in lines[2]}


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_one_agent_in_every_role_brings_a_sprint_with_a_fix_round_to_its_end(agent: str, studio: Studio) -> None:
    with studio.asking(script("sprint")) as model:
        done = studio.repo.iterdev(*RUN, timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(studio.repo.folder()).values()) == {"completed"}
    assert "fix round 1 of 3" in done.stdout
    assert "REVIEW-001 completed: score 5.7, REVISION_NEEDED" in done.stdout
    assert "REVIEW-002 completed: score 9, CONVERGED" in done.stdout
    assert "VERIFY-001 completed: Pass rate 100.0% of 1 test" in done.stdout
    assert studio.landed("greeting.py") == JOINED
    assert studio.landed("test_greeting.py").startswith("import unittest")
    assert studio.authors() == [
        (f"developer ({agent})", "DEV-fix-1: Fix review issues (round 1)"),
        (f"developer ({agent})", "DEV-001: Greet"),
    ]
    usage = studio.usage()
    assert {task: spent(each) for task, each in usage.items()} == {
        "DESIGN-001": (1000, 100),
        "DEV-001": (3300, 130),
        "VERIFY-001": (0, 0),
        "REVIEW-001": (200, 40),
        "DEV-fix-1": (3000, 70),
        "REVIEW-002": (200, 40),
    }
    # Only claude tells what it costs.
    assert all(bool(each.cost_usd) == (agent == "claude" and bool(each.tokens)) for each in usage.values())
    report = studio.repo.iterdev("report").stdout
    assert set(who(report).values()) == {agent}
    assert "Tokens: 7700 in, 380 out." in report
    assert {request.status for request in model.requests} == {200}
    assert left == []


@pytest.mark.parametrize("agent", ["claude"])
def test_claude_develops_what_codex_reviews(studio: Studio) -> None:
    with studio.asking(script("sprint")) as model:
        done = studio.repo.iterdev(*RUN, "--role-agent", "reviewer=codex", timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 0, done.stdout + done.stderr
    assert studio.landed("greeting.py") == JOINED
    assert {author for author, _ in studio.authors()} == {"developer (claude)"}
    assert who(studio.repo.iterdev("report").stdout) == {
        "DESIGN-001": "claude",
        "DEV-001": "claude",
        "REVIEW-001": "codex",
        "DEV-fix-1": "claude",
        "REVIEW-002": "codex",
    }
    asked = {(request.task.split("-")[0], request.dialect) for request in model.requests if request.task}
    assert asked == {("DESIGN", "anthropic"), ("DEV", "anthropic"), ("REVIEW", "responses")}
    usage = studio.usage()
    assert usage["DEV-fix-1"].cost_usd > 0
    assert usage["REVIEW-001"] == Usage(input_tokens=200, output_tokens=40)
    assert left == []


@pytest.mark.parametrize("agent", ["claude"])
def test_gemini_designs_and_qwen_mends_what_the_tests_find(studio: Studio) -> None:
    team = ("--role-agent", "architect=gemini", "--role-agent", "tester=qwen")
    with studio.asking(Script(rules=script("mended").rules + script("sprint").rules)) as model:
        done = studio.repo.iterdev(*RUN, *team, timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFY-001 completed: Pass rate 100.0% of 1 test" in done.stdout
    assert "fix round" not in done.stdout
    assert studio.landed("greeting.py") == JOINED
    assert [author for author, _ in studio.authors()] == ["tester (qwen)", "developer (claude)"]
    assert who(studio.repo.iterdev("report").stdout) == {
        "DESIGN-001": "gemini",
        "DEV-001": "claude",
        "VERIFY-001": "qwen",
        "REVIEW-001": "claude",
    }
    dialects = {request.rule: request.dialect for request in model.requests if not request.is_side_call}
    assert dialects == {
        "design": "gemini",
        "wrong work": "anthropic",
        "mended tests": "chat",
        "only review": "anthropic",
    }
    assert spent(studio.usage()["VERIFY-001"]) == (900, 110)
    assert left == []
