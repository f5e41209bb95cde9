"""What the end-to-end tests share: scripted agents, runs in the background, a real terminal, and what must not stay."""

import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from types import TracebackType
from typing import Self, TypeVar

import pytest
from tests.conftest import Repo, make_repo
from tests.places import Place
from tests.session_files import processes

T = TypeVar("T")
PATIENCE = 60.0
LOOK_AGAIN = 0.05


@pytest.fixture(scope="module")
def module_repo(tmp_path_factory: pytest.TempPathFactory, place_of_attempts: Place) -> Repo:
    """A scratch repository for the one long run that a module looks at from many sides."""
    return make_repo(tmp_path_factory.mktemp("scratch"), place_of_attempts)


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], T]) -> T:
    """What `make` returns in an empty folder; made by the first of the workers that want it, for all of them."""
    base = factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = place / "kept"
        if not kept.exists():
            (place / "scratch").mkdir()
            kept.write_bytes(pickle.dumps(make(place / "scratch")))
        made: T = pickle.loads(kept.read_bytes())
        return made


def eventually(look: Callable[[], T], what: str) -> T:
    """Looks again and again until there is something to see."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if seen := look():
            return seen
        time.sleep(LOOK_AGAIN)
    raise AssertionError(f"waited {PATIENCE:g} s in vain for {what}")


def script(repo: Repo, text: str, more: str = "") -> None:
    """Makes `mine` the scripted agent of docs/scripted-agent.md, playing this text."""
    (repo.home / "script.toml").write_text(dedent(text), encoding="utf-8")
    settings = f'[run]\nagent = "mine"\n[project]\ntest = "true"\n[agents.mine]\nscript = "{repo.home}/script.toml"\n'
    repo.write("iterdev.toml", settings + dedent(more))
    repo.commit("a scripted agent")


def every_file(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def typed(repo: Repo, line: str) -> subprocess.CompletedProcess[str]:
    """Pastes a line into a shell."""
    return subprocess.run(
        ["bash", "-c", line], cwd=repo.path, env=repo.env, capture_output=True, text=True, check=False
    )


class Background:
    """The command, running while a test does something else."""

    def __init__(self, repo: Repo, *args: str, **env: str) -> None:
        self._repo = repo
        self.process = subprocess.Popen(
            repo.command(*args),
            cwd=repo.path,
            env=repo.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def until_agent_works_on(self, task: str) -> None:
        """Waits until the agent `mine` has been called for the task."""
        eventually(lambda: any(call["task"] == task for call in self._repo.calls()), f"an agent at {task}")

    def end(self) -> subprocess.CompletedProcess[str]:
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, stdout, stderr)

    def kill(self) -> None:
        """As `kill -9`, and then until nothing of its tree is left."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        eventually(lambda: not processes(self._repo), "the end of a killed engine's processes")


class Terminal:
    """A person at a terminal: types, and looks at the screen."""

    def __init__(self, repo: Repo) -> None:
        # Its own folder, since tmux leaves the socket behind, and a short one, since the path of a socket must be.
        self._folder = Path(tempfile.mkdtemp(prefix="tmux-"))
        self._env = repo.env | {"TERM": "screen-256color", "PS1": "$ "}
        shell = ["bash", "--noprofile", "--norc"]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "45", "-c", str(repo.path), *shell)

    def type(self, text: str) -> None:
        """Types a line; the terminal keeps it until somebody reads it."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def screen(self, *options: str) -> str:
        return self._tmux("capture-pane", "-p", "-S", "-200", *options)

    def until(self, *texts: str) -> str:
        """The screen, once all the texts are on it."""

        def look() -> str:
            screen = self.screen()
            return screen if all(text in screen for text in texts) else ""

        try:
            return eventually(look, " and ".join(texts))
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen was:\n{self.screen()}") from None

    def close(self) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._folder)

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._folder / "socket"), *words]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def terminal(repo: Repo) -> Iterator[Terminal]:
    opened = Terminal(repo)
    yield opened
    opened.close()


@contextmanager
def agent_at_work(repo: Repo, *args: str, **others: object) -> Iterator[Background]:
    """A run whose developer has been started and takes its time; the other agents do what they are told."""
    repo.behave(developer={"write": {"half.txt": "half\n"}, "sleep": 600}, **others)
    with Background(repo, *args) as running:
        running.until_agent_works_on("DEV-001")
        yield running


def repository_bytes(repo: Repo) -> dict[str, bytes]:
    """The user's branch, index and files; not git's objects, and not what is iterdev's own."""
    git = repo.path / ".git"
    seen = {name: data for name, data in every_file(repo.path).items() if not name.startswith((".git/", ".workflow/"))}
    return seen | {name: (git / name).read_bytes() for name in ("HEAD", "index", "refs/heads/main", "config")}
