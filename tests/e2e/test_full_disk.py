"""A disk that is full: a small file system, which exists only inside of bubblewrap, has the repository."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repo

SIZE = 4 * 2**20

STORY = """
import json, os, subprocess, sys
from pathlib import Path

project, small, scenario = map(Path, sys.argv[1:])
top = small / "project"
subprocess.run(["cp", "-r", str(project), str(top)], check=True)
fill = small / "fill"

def fill_up():
    with fill.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass

def iterdev(*args):
    done = subprocess.run([sys.executable, "-m", "iterdev", *args], cwd=top, capture_output=True, text=True)
    left = [str(path) for path in (top / ".git").rglob("tmp_*")]
    folders = [path.name for path in top.glob(".workflow/.csv-wave/*")]
    branches = subprocess.run(["git", "branch", "--list", "iterdev/*"], cwd=top, capture_output=True, text=True).stdout
    found = {"left": left, "folders": folders, "branches": branches.split()}
    return {"code": done.returncode, "said": done.stderr, **found}

if scenario.name == "before":
    fill_up()
run = ("run", "-y", "--pipeline", "patch", "Fix the greeting")
first = iterdev(*run)
fill.unlink()
second = iterdev(*(run if scenario.name == "before" else ("resume",)))
work = subprocess.run(["git", "show", f"{second['branches'][-1]}:big.txt"], cwd=top, capture_output=True).stdout
print(json.dumps({"first": first, "second": second, "work": len(work)}))
"""


@pytest.fixture
def told(repo: Repo, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, dict[str, object]]:
    """What became of a run on a full disk, and of another one when there was space again."""
    small = tmp_path / "small"
    small.mkdir()
    more = "head -c 200000 /dev/urandom > big.txt"
    # What is left is enough for the journal, but not for the work.
    fill = f"{more}; dd if=/dev/zero of={small}/fill bs=1k 2>/dev/null; truncate -s -96k {small}/fill"
    repo.behave(**{"DEV-001#1": {"run": fill if request.param == "during" else more}, "DEV-001": {"run": more}})
    alone = ["bwrap", "--dev-bind", "/", "/", "--size", str(SIZE), "--tmpfs", str(small)]
    argv = [*alone, sys.executable, "-c", STORY, str(repo.path), str(small), request.param]
    done = subprocess.run(argv, env=repo.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(small)
    story: dict[str, dict[str, object]] = json.loads(done.stdout)
    return story


@pytest.mark.parametrize("told", ["before"], indirect=True)
def test_a_session_that_cannot_be_created_leaves_nothing(told: dict[str, dict[str, object]]) -> None:
    first, second = told["first"], told["second"]

    assert first["code"] == 4
    assert str(first["said"]).count("\n") <= 2, first["said"]
    assert (first["left"], first["folders"], first["branches"]) == ([], [], [])
    assert second["code"] == 0, second["said"]


@pytest.mark.parametrize("told", ["during"], indirect=True)
def test_a_run_whose_disk_gets_full_ends_in_words_and_can_be_resumed(told: dict[str, dict[str, object]]) -> None:
    first, second = told["first"], told["second"]

    assert first["code"] == 4
    assert any(words in str(first["said"]) for words in ("No space left on device", "the disk is full"))
    assert first["left"] == []
    assert second["code"] == 0, second["said"]
    assert told["work"] == 200_000
