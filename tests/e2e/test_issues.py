"""The issue tracker as it is typed."""

import json

import pytest
from tests.conftest import Repo

SOLUTION = {"approach": "Check the token", "tasks": [{"title": "Fix it", "files": ["auth.py"]}]}


def answer(repo: Repo, *arguments: str, stdin: str = "") -> dict:
    done = repo.iterdev("issue", *arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def planned(repo: Repo, name: str) -> None:
    repo.iterdev("issue", "init", name, "--title", f"Title of {name}")
    repo.iterdev("issue", "solution", name, "--data", json.dumps(SOLUTION))
    repo.iterdev("issue", "bind", name, f"SOL-{name}-1")


def test_an_issue_goes_from_its_creation_to_the_history(repo: Repo) -> None:
    name = answer(repo, "create", stdin='{"title": "Login fails", "priority": 4}')["id"]
    added = answer(repo, "solution", name, "--data", json.dumps(SOLUTION))
    assert answer(repo, "bind", name, added["id"])["is_bound"]
    assert answer(repo, "queue", "add", name)["items"] == ["S-1"]
    taken = answer(repo, "next")
    assert (taken["issue_id"], taken["solution"]["tasks"][0]["files"][0]["path"]) == (name, "auth.py")
    assert answer(repo, "done", "S-1", "--result", '{"commit": "abc"}')["queue_status"] == "completed"

    assert answer(repo, "list")["issues"] == []
    assert [issue["id"] for issue in answer(repo, "history")["issues"]] == [name]


def test_list_and_status_have_the_shapes_that_other_tools_read(repo: Repo) -> None:
    planned(repo, "GH-1")
    repo.iterdev("issue", "init", "GH-2")

    listed, status = answer(repo, "list", "--status", "registered,pending"), answer(repo, "status", "GH-1")

    assert ([issue["id"] for issue in listed["issues"]], listed["summary"]["planned"]) == (["GH-2"], 1)
    assert (status["issue"]["priority"], status["bound"]["id"], len(status["solutions"])) == (3, "SOL-GH-1-1", 1)
    assert answer(repo, "list", "GH-1")["tasks"][0]["title"] == "Fix it"
    assert [one["issue_id"] for one in answer(repo, "solutions")["solutions"]] == ["GH-1"]


def test_a_failed_item_is_retried(repo: Repo) -> None:
    planned(repo, "GH-1")
    repo.iterdev("issue", "queue", "add", "GH-1")
    reason = json.dumps({"message": "tests fail", "error_type": "test_failure"})

    failed = answer(repo, "done", "S-1", "--fail", "--reason", reason)

    assert failed["failure_details"]["error_type"] == "test_failure"
    assert answer(repo, "retry", "GH-1")["total"] == 1
    assert answer(repo, "status", "GH-1")["issue"]["feedback"][0]["content"] == "tests fail"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["status", "GH-9"], 'There is no issue "GH-9" (did you mean "GH-1"?)'),
        (["update", "GH-1", "--status", "done"], "registered, planning, planned"),
        (["update", "GH-1"], "No change is given"),
        (["init", "GH-1"], 'There is an issue "GH-1" already'),
        (["queue", "add", "GH-1"], 'No solution is bound to "GH-1"'),
        (["queue", "dag"], "No queue is active"),
        (["create", "--data", "nonsense"], "is not JSON"),
        (["done", "S-1"], 'There is no item "S-1" in any queue'),
        (["lisst"], 'did you mean "list"?'),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_a_hint(repo: Repo, arguments: list[str], words: str) -> None:
    repo.iterdev("issue", "init", "GH-1")

    refused = repo.iterdev("issue", *arguments)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert words in refused.stderr
    assert "hint: " in refused.stderr


def test_a_linked_worktree_and_a_workspace_have_the_tracker_of_the_main_worktree(repo: Repo) -> None:
    repo.iterdev("issue", "init", "GH-1")
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", str(linked))
    other = Repo(linked, repo.home)

    other.iterdev("issue", "init", "GH-2")

    assert [issue["id"] for issue in answer(repo, "list")["issues"]] == ["GH-1", "GH-2"]
    assert not (linked / ".workflow").exists()


def test_looking_at_a_tracker_that_was_never_used_writes_nothing(repo: Repo) -> None:
    for arguments in (["list"], ["history"], ["status"], ["queue"], ["queue", "list"], ["solutions"]):
        assert repo.iterdev("issue", *arguments).returncode == 0

    assert not (repo.path / ".workflow").exists()


def test_a_folder_of_claude_code_workflow_is_taken_over_on_first_use(repo: Repo) -> None:
    repo.write(".workflow/issues/issues.jsonl", '{"id": "ISS-20251229-001", "title": "Slow"}\nhalf')

    assert [issue["title"] for issue in answer(repo, "list")["issues"]] == ["Slow"]
    assert not (repo.path / ".workflow" / "iterdev.db").exists()
    created = repo.iterdev("issue", "create", "--title", "New")

    assert "issues.jsonl, line 2 is left out: it is not JSON" in created.stderr
    assert [issue["title"] for issue in answer(repo, "list")["issues"]] == ["Slow", "New"]


def test_an_agent_may_read_and_create_issues_but_not_decide_about_them(repo: Repo) -> None:
    repo.iterdev("issue", "init", "GH-1")
    attempt = {"ITERDEV_TASK": "DEV-001", "ITERDEV_SESSION": "s", "ITERDEV_RESULT": "/r"}

    for arguments in (["update", "GH-1", "--status", "completed"], ["queue", "add", "GH-1"], ["next"]):
        refused = repo.iterdev("issue", *arguments, **attempt)
        assert refused.returncode == 2
        assert "cannot be used inside of the attempt" in refused.stderr

    assert repo.iterdev("issue", "list", **attempt).returncode == 0
    assert repo.iterdev("issue", "create", "--title", "Seen on the way", **attempt).returncode == 0


def test_secrets_and_control_codes_do_not_get_into_the_tracker(repo: Repo) -> None:
    repo.iterdev("issue", "create", "--title", "\x1b[31mkey sk-ant-" + "a" * 30)

    (issue,) = answer(repo, "list")["issues"]
    assert issue["title"] == "key [secret]"


def test_issues_of_github_are_pulled_through_gh(repo: Repo) -> None:
    issues = [{"number": 7, "title": "Greet", "body": "Please.", "state": "OPEN", "labels": [{"name": "P0"}]}]
    program = repo.home / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(issues)}\nEND\n")
    program.chmod(0o755)

    pulled = repo.iterdev("issue", "pull", PATH=f"{program.parent}:{repo.env['PATH']}")

    assert pulled.stdout.splitlines()[0] == "Added: GH-7"
    assert answer(repo, "status", "GH-7")["issue"]["priority"] == 5
