"""What the tests share: scratch repositories with real git, and the real command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, settings
from tests import temporal_server
from tests.execution import other_host
from tests.fork_server import fork_server
from tests.places import Place, made_in_another_place
from tests.temporal_server import TemporalServer

# How long an example takes says something about the machine, and nothing about what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

AGENT = """
"An agent that does what agent.json says for its task, or something sensible for its role."
import json, os, sys, time

def write(name, text, mode="w"):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, mode) as file:
        file.write(text)

prompt = sys.stdin.read()
task, role, attempt = (os.environ["ITERDEV_" + name] for name in ("TASK", "ROLE", "ATTEMPT"))
here = os.path.dirname(__file__)
call = {"task": task, "role": role, "attempt": int(attempt), "prompt": prompt}
plan = json.load(open(f"{here}/agent.json")) if os.path.exists(f"{here}/agent.json") else {}
step = plan.get(f"{task}#{attempt}") or plan.get(task) or plan.get(role) or {}
result = {"id": task, "status": "completed", "findings": f"{role} finished {task}", "error": ""}
if role == "architect":
    result |= {
        "design": "# Design\\nAdd it in one file.",
        "components": [{"name": "main", "responsibility": "all", "dependencies": [], "files": []}],
        "tasks": [{"id": name, "title": title, "files": [], "complexity": "low", "dependencies": [],
                   "acceptance_criteria": ["it is there"]}
                  for name, title in (("task-1", "Do it"), ("task-2", "Do the rest"))],
    }
if role == "developer" and "write" not in step:
    step["write"] = {f"{task}.txt": f"{task} attempt {attempt}\\n"}
if role == "reviewer":
    score = step.get("score", 9)
    result |= {"scores": dict.fromkeys(("correctness", "completeness", "maintainability", "security"), score),
               "issues": step.get("issues", [])}
for name, text in step.get("write", {}).items():
    write(name, text)
# Last, because tests interrupt an agent as soon as it is listed and then look for what it wrote.
write(f"{here}/calls.jsonl", json.dumps(call) + "\\n", "a")
if "run" in step and os.system(step["run"]) != 0:
    sys.exit(f"failed: {step['run']}")
if "sleep" in step:
    time.sleep(step["sleep"])
result |= step.get("result", {})
if "text" in step:
    write(os.environ["ITERDEV_RESULT"], step["text"])
elif not step.get("silent"):
    write(os.environ["ITERDEV_RESULT"], json.dumps(result))
sys.exit(step.get("exit", 0))
"""

SLOW = (
    *(
        "tests/crash/",
        "tests/conformance/test_coding_agents.py",
        "tests/conformance/test_clients.py",
        "tests/e2e/coding/",
    ),
    *("tests/test_bench.py", "tests/test_corpus.py"),
)


class Repo:
    """A scratch repository, and the commands a user would type in it."""

    def __init__(self, path: Path, home: Path, place: Place = Place.here) -> None:
        self.path, self.home, self.place = path, home, place
        self.module = "tests.execution.elsewhere" if place is Place.elsewhere else "iterdev.__main__"
        """What `python -m` runs as the command."""
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "ITERDEV_HOME": str(home / "iterdev"),
            "TMPDIR": str(home / "tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LANG": "C.UTF-8",
        }
        if place is Place.elsewhere:
            self.env |= {"PYTHONPATH": str(Path(__file__).parents[1]), other_host.ADDRESS: other_host.address()}
            self.env["PATH"] = f"{self._program_folder()}{os.pathsep}{self.env['PATH']}"

    def _program_folder(self) -> Path:
        """A folder whose `iterdev` is the command of the module, for what is typed into a shell."""
        folder = self.home / "programs"
        folder.mkdir(exist_ok=True)
        program = folder / "iterdev"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {self.module} "$@"\n')
        program.chmod(0o755)
        return folder

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.path, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def commit(self, message: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", self.module, *args]

    def iterdev(
        self, *args: str, stdin: str = "", timeout: float = 120, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command in a process of its own, forked from one that has imported iterdev."""
        server = fork_server(self.module)
        return server.run(args, cwd=self.path, env=self.env | env, stdin=stdin, timeout=timeout)

    def behave(self, **steps: object) -> None:
        """What the agent `mine` does, by task id or role (`**{"DEV-001": {...}}`)."""
        (self.agent_folder / "agent.json").write_text(json.dumps(steps), encoding="utf-8")

    @property
    def agent_folder(self) -> Path:
        return self.home / "agent"

    def calls(self) -> list[dict[str, object]]:
        """What the agent was called with; a line that it is still writing is left out."""
        log = self.agent_folder / "calls.jsonl"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def folder(self, engine: str = "wave") -> Path:
        """The folder of the only session."""
        (found,) = (self.path / ".workflow" / {"wave": ".csv-wave", "beat": ".team"}[engine]).iterdir()
        return found

    def worktrees(self) -> list[str]:
        return self.git("worktree", "list", "--porcelain").split("\n\n")


def make_repo(root: Path, place: Place = Place.here) -> Repo:
    """A repository with one commit and an agent called `mine`, whose test command is `true`."""
    home = root / "home"
    for folder in ("agent", "tmp"):
        (home / folder).mkdir(parents=True)
    (home / "agent" / "agent.py").write_text(AGENT, encoding="utf-8")
    (home / ".gitconfig").write_text("[user]\n\tname = Tester\n\temail = tester@example.invalid\n", encoding="utf-8")
    path = root / "project"
    path.mkdir()
    repo = Repo(path, home, place)
    repo.git("init", "-q", "-b", "main")
    repo.write("README.md", "# Sample\n")
    repo.write(
        "iterdev.toml",
        f"""
        [run]
        agent = "mine"

        [project]
        test = "true"

        [agents.mine]
        command = ["{sys.executable}", "-I", "-S", "{home}/agent/agent.py"]
        """,
    )
    repo.commit("start")
    return repo


@pytest.fixture(scope="module")
def place_of_attempts(request: pytest.FixtureRequest) -> Place:
    """Where the attempts of the test's sessions are made."""
    place: Place = getattr(request, "param", Place.here)
    return place


@pytest.fixture
def repo(request: pytest.FixtureRequest, tmp_path: Path, place_of_attempts: Place) -> Iterator[Repo]:
    """A scratch repository for one test."""
    made = make_repo(tmp_path, place_of_attempts)
    with ExitStack() as stack:
        if place_of_attempts is Place.hosts:
            from tests.hosts import hosts_of  # noqa: PLC0415 - needs Temporal, which few tests do

            stack.enter_context(hosts_of(made, request.getfixturevalue("server"), "one"))
        yield made
    assert made_in_another_place(made.path, made.home, place_of_attempts) == []


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    """One real server for the tests of a worker of pytest; each test has its own names on it."""
    with temporal_server.running(tmp_path_factory.mktemp("temporal")) as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the text snapshots again")
    parser.addoption("--elsewhere", action="store_true", help="make all attempts of sessions on another host")


def makes_attempts(fixtures: Sequence[str]) -> bool:
    """Whether a test that uses these fixtures may run a session: without a team, `sessions` are only their journals."""
    return "place_of_attempts" in fixtures and ("team" in fixtures or "sessions" not in fixtures)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests of sessions in the places that their markers name."""
    marked, only_elsewhere = metafunc.definition.get_closest_marker, metafunc.config.getoption("elsewhere")
    if not makes_attempts(metafunc.fixturenames):
        return
    places = [] if only_elsewhere else [pytest.param(Place.here, id=pytest.HIDDEN_PARAM)]
    if (only_elsewhere or marked("elsewhere")) and not marked("local"):
        places.append(pytest.param(Place.elsewhere, id=Place.elsewhere))
    if marked("hosts") and not only_elsewhere:
        places.append(pytest.param(Place.hosts, id=Place.hosts, marks=pytest.mark.temporal))
    metafunc.parametrize("place_of_attempts", places, indirect=True, scope="module")


def pytest_configure() -> None:
    """A test run in the background of a shell, or under nohup, ignores signals, and so would all that it starts."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives every worker some of the slow tests to begin with, so that only quick ones are left to share in the end."""
    if config.getoption("elsewhere"):
        config.hook.pytest_deselected(items=[item for item in items if not makes_attempts(item.fixturenames)])
        items[:] = [item for item in items if makes_attempts(item.fixturenames)]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.nodeid.startswith(SLOW)]
    quick = [item for item in items if not item.nodeid.startswith(SLOW)]
    share = -(-len(quick) // workers)
    items[:] = [item for n in range(workers) for item in (*slow[n::workers], *quick[n * share : (n + 1) * share])]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many times the crash matrix killed an engine, and which coding agents were tried."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    tried = [value for report in reports for name, value in report.user_properties if name == "conformance"]
    if tried:
        terminalreporter.write_line(f"conformance: {', '.join(sorted(map(str, tried)))}")
    kills: Counter[str] = Counter()
    for report in reports:
        kills.update(dict(report.user_properties).get("kill points", {}))
    if kills:
        engines = ", ".join(f"{engine} {count}" for engine, count in sorted(kills.items()))
        terminalreporter.write_line(f"crash matrix: {kills.total()} kill points survived ({engines})")
