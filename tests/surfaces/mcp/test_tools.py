"""What the tools do with a finished session, and with the tracker."""

import json
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.surfaces.mcp.test_stdio import asked, exchanged


@pytest.fixture(autouse=True)
def finished(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with a session that is done, as the user of the test."""
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR"):
        monkeypatch.setenv(name, repo.env[name])
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    return repo


def used(folder: Path, tool: str, **arguments: object) -> dict[str, object]:
    said, _ = exchanged(folder, asked("tools/call", name=tool, arguments=arguments))
    result: dict[str, object] = said["result"]
    return result


def text(result: dict[str, object]) -> str:
    return result["content"][0]["text"]


def document(folder: Path, tool: str, **arguments: object) -> dict[str, object]:
    result = used(folder, tool, **arguments)
    assert result["isError"] is False, result
    return dict(json.loads(text(result)))


def test_a_session_is_shown(finished: Repo) -> None:
    top = finished.path

    assert [one["standing"] for one in document(top, "sessions")["sessions"]] == ["completed"]
    assert document(top, "status")["succeeded"] is True
    assert document(top, "status", task="DEV-001")["why"]
    assert "# Team IterDev Report" in text(used(top, "report"))
    assert [one["path"] for one in document(top, "diff")["files"]] == ["DEV-001.txt"]
    assert "+DEV-001 attempt 1" in text(used(top, "diff", file="DEV-001.txt"))
    assert "was not changed" in text(used(top, "diff", file="other.txt"))
    assert "done; nothing is in the user's branch" in text(used(top, "wait"))


def test_what_changes_work_is_only_shown_first(finished: Repo) -> None:
    top, before = finished.path, finished.git("rev-parse", "main")

    preview, back = document(top, "accept"), document(top, "rollback", to="DEV-001")

    assert (preview["files"], back["again"]) == (["DEV-001.txt"], ["DEV-001", "VERIFY-001"])
    assert "No task of" in str(document(top, "retry")["refused"])
    assert finished.git("rev-parse", "main") == before


def test_work_is_accepted_and_taken_back_when_the_user_says_so(finished: Repo) -> None:
    accepted = document(finished.path, "accept", preview=False)
    back = document(finished.path, "rollback", to="DEV-001", preview=False)

    assert (accepted["branch"], finished.git("show", "main:DEV-001.txt")) == ("main", "DEV-001 attempt 1")
    assert back["undone"] == ["DEV-001", "VERIFY-001"]


def test_feedback_reaches_the_team(finished: Repo) -> None:
    given = document(finished.path, "feedback", text="Too long", severity="high")

    assert given["description"] == "Too long"
    assert "Too long" in finished.iterdev("feedback", "list").stdout


def test_the_tracker_is_shown_and_changed(finished: Repo) -> None:
    top = finished.path
    issue = document(top, "create_issue", title="A crash", description="It crashes", priority=5)["id"]

    changed = document(top, "update_issue", issue=issue, title="A bad crash")

    assert (changed["title"], changed["priority"]) == ("A bad crash", 5)
    assert document(top, "issues", issue=issue)
    assert issue in text(used(top, "issues"))
    assert document(top, "queue") == {"id": None, "solutions": []}
    assert used(top, "queue", add=[issue])["isError"] is True


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("status", {"session": "nope"}, "nope"),
        ("status", {"unknown": 1}, "status was called wrongly"),
        ("feedback", {"text": "x", "severity": "bad"}, "bad"),
        ("run", {}, "Neither a line nor a text"),
        ("run", {"line": "--nope x"}, "--nope"),
        ("resolve", {"text": "GH-4711"}, "GH-4711"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(finished: Repo, tool: str, arguments: dict[str, object], said: str) -> None:
    answer = used(finished.path, tool, **arguments)

    assert (answer["isError"], said in text(answer)) == (True, True), answer
    assert "defect" not in text(answer)


def test_polling_leaves_no_file_open(finished: Repo) -> None:
    opened = Path("/proc/self/fd")
    used(finished.path, "status")
    before = len(list(opened.iterdir()))

    exchanged(finished.path, *(asked("tools/call", number, name="status", arguments={}) for number in range(50)))

    assert len(list(opened.iterdir())) <= before + 2
