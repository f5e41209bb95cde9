"""Conflicts that a crash interrupts, or that are resolved in the sandbox."""

from contextlib import suppress

import pytest
from tests.conflicts import TOGETHER, TWO_ROWS, collided, resolve
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually, script
from tests.e2e.test_table_by_hand import table
from tests.session_files import left_behind

pytestmark = pytest.mark.elsewhere


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_half_a_resolution_survives_a_crash_and_is_shown_to_the_next_conflict_task(repo: Repo, engine: str) -> None:
    resolve(repo, {"write": {"README.md": "# Half\n"}, "sleep": 600}, {"write": {"README.md": TOGETHER}})
    with Background(repo, "run", "-y", "--engine", engine, "--tasks", table(repo, TWO_ROWS)) as running:
        eventually(lambda: "# Half\n" in readmes(repo), "half a resolution")
        running.kill()

    done = repo.iterdev("resume")

    left = left_behind(repo)
    folder = repo.folder(engine)
    _, fix = collided(folder)
    kept = f"refs/iterdev/{folder.name}/{fix}/1"
    assert done.returncode == 0, done.stdout + done.stderr
    assert repo.git("show", f"{kept}:README.md") == "# Half"
    assert repo.git("rev-parse", kept) in str(repo.calls()[-1]["prompt"])
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == TOGETHER.strip()
    assert left == []


def readmes(repo: Repo) -> list[str]:
    """What README.md is in each of the worktrees."""
    found = []
    for place in ("iterdev", "tmp/elsewhere-*/home-*/workspaces"):
        for path in repo.home.glob(f"{place}/**/tree/README.md"):
            with suppress(FileNotFoundError):  # Its attempt has ended.
                found.append(path.read_text())
    return found


UNITED = """
[[rule]]
task = "*-fix-conflict"
run = '''sed -i '/^[<=>]\\{7\\}/d' README.md && git commit -qam united'''
result = {}

[[rule]]
role = "developer"
run = 'echo "# $ITERDEV_TASK" > README.md; echo mine > $ITERDEV_TASK.txt'
result = {}
"""


@pytest.mark.requirement("R130")
def test_a_conflict_is_resolved_inside_of_the_sandbox_too(repo: Repo) -> None:
    script(repo, UNITED)
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace("[run]", "[run]\nsandbox = true"))
    repo.commit("a sandbox")

    done = repo.iterdev("run", "-y", "--tasks", table(repo, TWO_ROWS))

    branch, kept = f"iterdev/{repo.folder().name}", f"refs/iterdev/{repo.folder().name}"
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(repo.git("show", f"{branch}:README.md").splitlines()) == ["# DEV-001", "# DEV-002"]
    assert collided(repo.folder())
    for task in ("DEV-001", "DEV-002"):
        repo.git("merge-base", "--is-ancestor", f"{kept}/{task}/1", branch)
