"""External packages that a developer declares: looked at before the tests are run, by the real tools."""

import pytest
from tests.conftest import Repo
from tests.session_files import document, left_behind, messages, statuses

Dependency = dict[str, str]


def declares(repo: Repo, *dependencies: Dependency) -> None:
    repo.behave(**{"DEV-001": {"result": {"external_dependencies": list(dependencies)}}})


def in_ledger(repo: Repo, task: str) -> dict[str, object]:
    tasks = document(repo.folder() / "task-ledger.json")["tasks"]
    assert isinstance(tasks, list)
    return next(entry for entry in tasks if entry["id"] == task)


def with_node_modules(repo: Repo) -> None:
    """Worktrees get the checkout's node_modules; there is no registry to ask for anything newer."""
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace("[project]", '[project]\ncopy = ["node_modules"]'))
    repo.write(".gitignore", "node_modules/\n")
    repo.write("node_modules/lib/package.json", '{"version": "1.9.0"}')
    (repo.home / ".npmrc").write_text("registry=http://127.0.0.1:9/\nfetch-retries=0\n", encoding="utf-8")
    repo.commit("a project of node")


@pytest.mark.requirement("R133", "R134")
def test_a_task_without_its_package_stays_blocked_until_a_new_look_finds_it(repo: Repo) -> None:
    with_node_modules(repo)
    declares(repo, {"name": "lib", "version_range": "^2.0.0", "source": "npm"})
    repo.iterdev("run", "--pipeline", "patch", "Fix the greeting")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")

    blocked = repo.iterdev("resume", session)
    entry = in_ledger(repo, "VERIFY-001")
    repo.iterdev("answer", session, "dependencies-VERIFY-001", "recheck")
    still = repo.iterdev("resume", session)
    repo.write("node_modules/lib/package.json", '{"version": "2.1.0"}')
    repo.iterdev("answer", session, "dependencies-VERIFY-001", "recheck")
    ended = repo.iterdev("resume", session)

    assert (blocked.returncode, still.returncode) == (5, 5)
    assert "lib ^2.0.0 is not what is there (expected ^2.0.0, got 1.9.0)" in blocked.stdout
    assert f"iterdev answer {session} dependencies-VERIFY-001 override" in blocked.stdout
    assert entry["status"] == "blocked"
    assert entry["external_dependencies"] == [
        {"name": "lib", "version_range": "^2.0.0", "actual_version": "1.9.0", "source": "npm", "status": "mismatch"}
    ]
    assert len(messages(repo.folder(), "dependency_mismatch")) == 2
    assert ended.returncode == 0, ended.stdout
    assert "warning" not in ended.stdout
    assert in_ledger(repo, "VERIFY-001")["external_dependencies"] == [
        {"name": "lib", "version_range": "^2.0.0", "actual_version": "2.1.0", "source": "npm", "status": "ok"}
    ]
    assert repo.iterdev("replay", session).returncode == 0
    assert left_behind(repo) == []


@pytest.mark.requirement("R134")
def test_the_user_may_override_a_missing_package(repo: Repo) -> None:
    declares(repo, {"name": "iterdev-no-such-package", "version_range": ">=1", "source": "pip"})
    repo.iterdev("run", "--pipeline", "patch", "--engine", "beat", "Fix the greeting")
    session = repo.folder("beat").name
    repo.iterdev("answer", session, "plan", "approve")
    repo.iterdev("resume", session)

    why = repo.iterdev("why", session, "VERIFY-001")
    repo.iterdev("answer", session, "dependencies-VERIFY-001", "override")
    ended = repo.iterdev("resume", session)

    assert "iterdev-no-such-package >=1 is missing" in why.stdout
    assert ended.returncode == 0, ended.stdout
    assert "VERIFY-001 goes on although iterdev-no-such-package >=1 is missing" in ended.stdout


@pytest.mark.requirement("R1", "R134")
def test_with_yes_a_missing_package_is_a_warning(repo: Repo) -> None:
    declares(repo, {"name": "iterdev-no-such-package", "source": "pip"}, {"name": "who/knows"})

    run = repo.iterdev("run", "-y", "Fix the greeting")

    assert run.returncode == 0, run.stdout
    assert "warning: VERIFY-001 goes on although iterdev-no-such-package is missing; who/knows is missing" in run.stdout
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    statuses_found = [one["status"] for one in in_ledger(repo, "DEV-001")["external_dependencies"]]
    assert statuses_found == ["missing", "missing"]


@pytest.mark.requirement("R142")
def test_a_release_beyond_the_range_enters_the_backlog(repo: Repo) -> None:
    for tag in ("v1.0", "v2.0"):
        repo.git("tag", tag)
    declares(repo, {"name": str(repo.path), "version_range": "v1.*", "source": "git"})

    run = repo.iterdev("run", "-y", "Fix the greeting")

    (update,) = messages(repo.folder(), "dependency_update_needed")
    (entry,) = document(repo.folder() / ".msg" / "meta.json")["backlog"]
    assert run.returncode == 0, run.stdout
    assert update == f"[coordinator] {repo.path} v2.0 is out, and v1.* does not allow it"
    assert (entry["actual_version"], entry["newest"], entry["found_by"]) == ("v1.0", "v2.0", "VERIFY-001")
