"""`iterdev demo`, run for real: what it shows, what it finds, and what it leaves behind."""

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

BROKEN_TEST = "test_till.Receipt::test_the_last_line_is_the_total"


class Demo:
    """A finished demo of a user who has no git identity."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self.temp = home / "temp"
        self.temp.mkdir(parents=True)
        self.marker = uuid.uuid4().hex
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "ITERDEV_HOME": str(home / "state"),
            "TMPDIR": str(self.temp),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LANG": "C.UTF-8",
            "XDG_MARKER": self.marker,
        }
        self.run = subprocess.run(
            [sys.executable, "-m", "iterdev", "demo", *options],
            env=self.env,
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def top(self) -> Path:
        (found,) = self.temp.iterdir()
        return found

    @property
    def folder(self) -> Path:
        (found,) = (self.top / ".workflow" / ".csv-wave").iterdir()
        return found

    @property
    def branch(self) -> str:
        return f"iterdev/{self.folder.name}"

    def document(self, name: str) -> dict[str, object]:
        loaded: dict[str, object] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return loaded

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.top, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.rstrip()

    def processes(self) -> Iterator[str]:
        """Everything alive that inherited this demo's environment."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.marker.encode() in (process / "environ").read_bytes():
                    yield (process / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo") / "home")


def test_the_demo_converges_and_prints_plain_lines(demo: Demo) -> None:
    assert demo.run.returncode == 0, demo.run.stderr
    assert demo.run.stderr == ""
    assert "\x1b" not in demo.run.stdout
    assert f"small project in {demo.top}" in demo.run.stdout
    assert "REVIEW-002: score 8.7, 0 critical, 0 findings, CONVERGED" in demo.run.stdout
    assert demo.git("log", "--oneline", "--no-decorate", demo.branch) in demo.run.stdout


@pytest.mark.requirement("R90")
def test_the_measured_tests_find_the_planted_defect(demo: Demo) -> None:
    verification = demo.document("verify/verify-001.json")

    assert verification["failures"] == [BROKEN_TEST]
    assert verification["regressions"] == [BROKEN_TEST]
    assert verification["pass_rate"] == 87.5
    assert verification["passed"] is False


@pytest.mark.requirement("R68")
def test_the_review_finds_the_planted_defect(demo: Demo) -> None:
    trends = demo.document(".msg/meta.json")["review_feedback_trends"]

    assert isinstance(trends, list)
    first, last = trends
    assert (first["score"], first["critical"]) == (6.1, 1)
    assert (last["score"], last["critical"]) == (8.7, 0)


@pytest.mark.requirement("R70", "R71")
def test_one_fix_round_mends_it(demo: Demo) -> None:
    ledger = demo.document("task-ledger.json")["tasks"]

    assert isinstance(ledger, list)
    assert [(task["id"], task["gc_rounds"]) for task in ledger] == [
        ("DESIGN-001", 0),
        ("DEV-001", 0),
        ("VERIFY-001", 0),
        ("REVIEW-001", 0),
        ("DEV-fix-1", 1),
        ("REVIEW-002", 1),
        ("VERIFY-002", 1),
    ]
    assert {task["status"] for task in ledger} == {"completed"}
    assert demo.document("verify/verify-002.json")["pass_rate"] == 100
    assert demo.document(".msg/meta.json")["warnings"] == []


def test_the_branch_has_the_feature_and_main_is_untouched(demo: Demo) -> None:
    first, *landed = demo.git("log", "--reverse", "--format=%an", demo.branch).splitlines()

    assert first == "iterdev demo"
    assert landed == ["developer (scripted)", "developer (scripted)"]
    assert "discount=0" in demo.git("show", f"{demo.branch}:till/cart.py")
    assert "discount" not in (demo.top / "till" / "cart.py").read_text(encoding="utf-8")
    assert demo.git("rev-list", "--count", "main") == "1"
    assert demo.git("status", "--porcelain") == ""


def test_the_demo_leaves_no_process_and_no_worktree_behind(demo: Demo) -> None:
    assert list(demo.processes()) == []
    assert len(demo.git("worktree", "list").splitlines()) == 1
    assert list((demo.home / "state").iterdir()) == []
    assert [path.name for path in demo.temp.iterdir()] == ["iterdev-demo-1"]


def test_the_commands_at_the_end_can_be_pasted(demo: Demo, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(demo.top, copy)
    _, _, ending = demo.run.stdout.partition("Your turn")
    pasted = "\n".join(line for line in ending.splitlines() if line.startswith("  "))

    done = subprocess.run(
        ["sh", "-ec", pasted.replace(str(demo.top), str(copy))],
        env=demo.env | {"GIT_PAGER": "cat"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "iterdev accept" in pasted
    assert "discount=0" in (copy / "till" / "cart.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def issues(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo") / "home", "--team", "issue")


@pytest.mark.requirement("R151", "R153")
def test_the_issue_team_revises_the_rejected_plan_and_keeps_out_what_breaks_a_test(issues: Demo) -> None:
    shown = issues.run.stdout

    assert issues.run.returncode == 0, shown + issues.run.stderr
    assert "AUDIT-001 completed: rejected" in shown
    assert "AUDIT-002 completed: approved" in shown
    assert "Queue of 5 in 4 groups, 1 with common files: 1. GH-2, GH-5; 2. GH-1; 3. GH-3; 4. GH-4" in shown
    assert "GH-4 is not resolved: BUILD-004 failed: the tests fail" in shown
    listed = subprocess.run(
        [sys.executable, "-m", "iterdev", "issue", "list", "--json"],
        cwd=issues.top,
        env=issues.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [(one["id"], one["status"]) for one in json.loads(listed.stdout)["issues"]] == [("GH-4", "failed")]
    assert "articles" in issues.git("show", f"{issues.branch}:till/cart.py")
    assert "/ 5" not in issues.git("show", f"{issues.branch}:till/cart.py")
    assert issues.git("rev-list", "--count", "main") == "1"


def test_the_issue_team_leaves_nothing_behind_and_its_last_commands_can_be_pasted(issues: Demo, tmp_path: Path) -> None:
    assert list(issues.processes()) == []
    copy = tmp_path / "copy"
    shutil.copytree(issues.top, copy)
    _, _, ending = issues.run.stdout.partition("Your turn")
    pasted = "\n".join(line for line in ending.splitlines() if line.startswith("  "))

    done = subprocess.run(
        ["sh", "-ec", pasted.replace(str(issues.top), str(copy))],
        env=issues.env | {"GIT_PAGER": "cat"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "failure (execute): the tests fail" in done.stdout
    assert (copy / "till" / "prices.py").exists()


@pytest.mark.parametrize("name", ["demo", "issues"])
def test_every_file_of_the_session_folder_is_documented(name: str, request: pytest.FixtureRequest) -> None:
    demo: Demo = request.getfixturevalue(name)
    page = (Path(__file__).parents[2] / "docs" / "session-folder.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*`) \|", page, re.MULTILINE)
    patterns = [_pattern(name) for row in rows for name in re.findall(r"`([^`]+)`", row)]
    files = [str(path.relative_to(demo.folder)) for path in demo.folder.rglob("*") if path.is_file()]

    undocumented = [name for name in files if not any(re.fullmatch(pattern, name) for pattern in patterns)]

    assert undocumented == []


def _pattern(documented: str) -> str:
    """`verify/verify-NNN.json` means any number, `logs/TASK-N.log` any task."""
    words = {"NNN": r"\d+", "TASK": r"[\w-]+", "ISSUE": r"[\w-]+", "N": r"\d+", r"\*": r"\w+"}
    return re.sub(r"NNN|TASK|ISSUE|\bN\b|\\\*", lambda word: words[word[0]], re.escape(documented))


def test_in_a_terminal_the_demo_shows_a_live_picture(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
    }
    command = [sys.executable, "-m", "iterdev", "demo"]

    with subprocess.Popen(command, env=env, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        shown = "".join(_lines_of(ours))

    assert running.returncode == 0, shown
    assert "\x1b[" in shown
    assert "✓" in shown
    assert "fix rounds: 1 of 3" in shown


def _lines_of(terminal: int) -> Iterator[str]:
    """Until everybody has closed the other end, which a pseudo-terminal tells with an error."""
    with os.fdopen(terminal, encoding="utf-8", errors="replace") as stream:
        try:
            yield from stream
        except OSError:
            return
