"""The analyzer: the text decides, unless an agent is asked."""

import json

import pytest
from tests.conftest import Repo
from tests.session_files import left_behind, rows


def analysed(repo: Repo) -> dict[str, object]:
    found: dict[str, object] = json.loads((repo.folder() / "interactive" / "task-analyzer-result.json").read_text())
    return found


def test_without_being_told_to_nobody_is_asked(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix a typo")

    assert "analyzer" not in {call["role"] for call in repo.calls()}
    assert analysed(repo)["pipeline_mode"] == "patch"


@pytest.mark.requirement("R29")
def test_the_agent_that_is_asked_chooses_the_pipeline(repo: Repo) -> None:
    answer = {"pipeline_mode": "sprint", "complexity_score": 3, "capabilities": ["architect", "developer"]}
    repo.behave(analyzer={"result": answer})

    done = repo.iterdev("run", "-y", "--analyze", "Fix a typo")

    assert done.returncode == 0, done.stderr
    assert list(rows(repo.folder())) == ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001"]
    assert (analysed(repo)["pipeline_mode"], analysed(repo)["complexity_score"]) == ("sprint", 3)
    assert analysed(repo)["capabilities"] == ["architect", "developer"]
    assert left_behind(repo) == []


@pytest.mark.requirement("R29")
@pytest.mark.parametrize("known", [True, False])
def test_the_agent_that_is_asked_is_told_of_a_description_of_the_project(repo: Repo, *, known: bool) -> None:
    path = repo.path / ".workflow" / "project-tech.json"
    if known:
        repo.write(".workflow/project-tech.json", '{"language": "python"}')
    repo.behave(analyzer={"result": {"pipeline_mode": "patch"}})

    repo.iterdev("run", "-y", "--analyze", "Fix a typo")

    asked = next(str(call["prompt"]) for call in repo.calls() if call["role"] == "analyzer")
    assert (f"Begin with {path}" in asked) is known


@pytest.mark.parametrize(
    "step",
    [{"result": {"pipeline_mode": "waterfall"}}, {"silent": True}, {"exit": 3}],
    ids=["nonsense", "nothing", "a crash"],
)
def test_an_analyzer_that_fails_is_told_of_and_the_text_decides(repo: Repo, step: dict[str, object]) -> None:
    repo.behave(analyzer=step)

    done = repo.iterdev("run", "-y", "--analyze", "Fix a typo")

    assert done.returncode == 0
    assert "the text decides" in done.stderr
    assert list(rows(repo.folder())) == ["DEV-001", "VERIFY-001"]


@pytest.mark.requirement("R29", "R60", "R61")
def test_an_analyzer_that_hangs_is_asked_once_to_finish_and_closed(repo: Repo) -> None:
    settings = (repo.path / "iterdev.toml").read_text()
    repo.write("iterdev.toml", settings + "\n[limits]\ninteractive = 6\nfinish = 6\n")
    repo.behave(analyzer={"sleep": 600})

    done = repo.iterdev("run", "-y", "--analyze", "Fix a typo")

    asked = [call for call in repo.calls() if call["role"] == "analyzer"]
    assert done.returncode == 0
    assert "asked to finish" in done.stderr
    assert len(asked) == 2
    assert left_behind(repo) == []
