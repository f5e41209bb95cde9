"""What one session learns, the next one knows; what a person rejects, none of them uses again."""

import json

from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work

TABS = {"result": {"wisdom": {"conventions": ["indent with tabs"], "learnings": ["the tests are slow"]}}}


def entries(repo: Repo) -> dict[str, dict[str, object]]:
    listed = json.loads(repo.iterdev("wisdom", "list", "--json").stdout)["wisdom"]
    return {entry["text"]: entry for entry in listed}


def last_prompt(repo: Repo) -> str:
    return str(repo.calls()[-1]["prompt"])


def test_what_a_session_learned_reaches_the_next_one_with_its_evidence(repo: Repo) -> None:
    repo.behave(**{"DEV-001": TABS})
    repo.iterdev("run", "-y", "Fix the greeting")
    first = repo.folder().name
    commit = repo.git("rev-parse", f"iterdev/{first}")
    repo.behave()

    repo.iterdev("run", "-y", "Fix the farewell")

    assert f"conventions: indent with tabs (from {first}, DEV-001, {commit[:7]})" in last_prompt(repo)
    (evidence,) = entries(repo)["indent with tabs"]["evidence"]
    assert (evidence["session"], evidence["task"], evidence["commit"]) == (first, "DEV-001", commit)
    assert f"{first}, DEV-001, {commit[:7]}" in repo.iterdev("wisdom", "list").stdout


def test_a_rejected_entry_is_not_used_again_also_by_a_session_that_runs(repo: Repo) -> None:
    repo.behave(**{"DEV-001": TABS})
    repo.iterdev("run", "-y", "Fix the greeting")
    folder = repo.folder()
    name = str(entries(repo)["indent with tabs"]["id"])
    (repo.agent_folder / "calls.jsonl").unlink()
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "Fix the farewell") as running:
        before = last_prompt(repo)
        rejected = repo.iterdev("wisdom", "reject", name, "we", "use", "spaces")
        repo.behave(**{"DEV-001": TABS})
        running.kill()
    repo.iterdev("resume")

    resumed = [str(call["prompt"]) for call in repo.calls() if call["task"] in {"DEV-001", "REVIEW-001"}][-2:]
    repo.iterdev("run", "-y", "Fix the lunch")
    entry = entries(repo)["indent with tabs"]
    assert rejected.returncode == 0, rejected.stderr
    assert "indent with tabs" in before
    assert not any("indent with tabs" in prompt for prompt in [*resumed, last_prompt(repo)])
    assert "the tests are slow" in last_prompt(repo)
    assert (entry["rejected"], entry["reason"]) == (True, "we use spaces")
    assert f"{name} is rejected (we use spaces)" in (folder / "wisdom" / "conventions.md").read_text(encoding="utf-8")


def test_an_unknown_entry_is_refused(repo: Repo) -> None:
    refused = repo.iterdev("wisdom", "reject", "W-12345678")

    assert refused.returncode == 2
    assert '"W-12345678"' in refused.stderr
    assert repo.iterdev("wisdom", "list").stdout == "Nothing has been learned yet.\n"
