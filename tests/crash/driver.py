"""Kills an engine at one of its marks, lets another one go on, and checks what is left.

    driver.py SCRATCH ENGINE count           prints how many marks a whole run passes
    driver.py SCRATCH ENGINE SHARD SHARDS    kills at every mark of a shard, one JSON line each
    driver.py SCRATCH ENGINE again MARK      kills at MARK, and then the resuming engine at each of its marks

A single-threaded program of its own, so that it can fork: every run is a fresh process with everything loaded.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from iterdev.core.events import AttemptEnded, AttemptStarted, Done, Landed
from iterdev.core.request import Request
from iterdev.core.words import Engine, Pipeline, SessionId, Status
from iterdev.engine import wire
from iterdev.engine.repository import Repository
from iterdev.host import git, lease

AGENT = r"""
cat > /dev/null
case $ITERDEV_ROLE in
architect) more=',"design":"one file","components":[{"name":"a","dependencies":[]}],"tasks":[{"id":"t","title":"t"}]' ;;
developer) echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt" ;;
reviewer)
  score=9
  if [ "$ITERDEV_TASK" = REVIEW-001 ]; then score=5; fi
  more=',"scores":{"correctness":'$score',"completeness":'$score',"maintainability":'$score',"security":'$score'}' ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
"""
SETTINGS = '[run]\nagent = "mine"\n[project]\ntest = "true"\n[agents.mine]\ncommand = ["sh", "{agent}"]\n'
TASKS = ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001", "DEV-fix-1", "REVIEW-002"]
REQUEST = Request(requirement="Add a greeting", auto=True, pipeline=Pipeline.sprint)
PATIENCE = 10.0


class Scratch:
    """A repository that is made once and copied for each kill."""

    def __init__(self, root: Path, engine: Engine) -> None:
        self.root, self.engine = root, engine
        self.home = root / "home"
        self.template = root / "template"
        self.project = root / "project"
        os.environ |= {"ITERDEV_HOME": str(self.home), "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        root.mkdir(parents=True, exist_ok=True)
        (root / "agent.sh").write_text(AGENT)
        self.template.mkdir()
        (self.template / "README.md").write_text("# Sample\n")
        (self.template / "iterdev.toml").write_text(SETTINGS.format(agent=root / "agent.sh"))
        who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        for args in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "start"]):
            subprocess.run(["git", *args], cwd=self.template, check=True)

    def renew(self) -> None:
        for folder in (self.project, self.home):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, self.project)

    def session(self) -> SessionId:
        repository = Repository(self.project)
        try:
            return repository.newest()
        finally:
            repository.close()


def run_in_child(scratch: Scratch, work: Callable[[], int]) -> int:
    """The wait status of a forked child that does the work."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.chdir(scratch.project)
        try:
            os._exit(work())
        except Exception as error:  # noqa: BLE001 - a forked child must not run on into its parent's code
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
    return os.waitpid(child, 0)[1]


def run_engine(scratch: Scratch, mark: Callable[[str], None], session: SessionId | None = None) -> int:
    repository = Repository(scratch.project)
    if session is None:
        request = Request(requirement=REQUEST.requirement, auto=True, pipeline=REQUEST.pipeline, engine=scratch.engine)
        session = wire.begin(repository, request)
    audience = wire.Audience(ask=wire.nobody)
    anyio.run(lambda: wire.drive(repository, session, audience, mark=mark))
    return 0


class Killer:
    """Kills its own process at the n-th mark, counted from 0; remembers the names of those before."""

    def __init__(self, at: int, log: Path) -> None:
        self._at, self._log, self._passed = at, log, 0

    def __call__(self, name: str) -> None:
        with self._log.open("a") as file:
            file.write(f"{name}\n")
        if self._passed == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._passed += 1


def killed_run(scratch: Scratch, at: int, session: SessionId | None = None) -> str:
    """Runs until the mark and returns its name; an empty name means that the run ended before it."""
    log = scratch.root / "marks"
    log.unlink(missing_ok=True)
    status = run_in_child(scratch, lambda: run_engine(scratch, Killer(at, log), session))
    if os.WIFSIGNALED(status):
        return log.read_text().splitlines()[-1]
    return ""


def problems(scratch: Scratch) -> list[str]:
    """Everything that is not as it should be after the second engine has ended."""
    repository = Repository(scratch.project)
    session = repository.newest()
    state = repository.state(session)
    found = [f"{task.id} is {p.status}" for task, p in state.rows() if p.status is not Status.completed]
    if [*state.tasks] != TASKS:
        found.append(f"tasks are {[*state.tasks]}")
    found += journal_problems(repository, session)
    found += git_problems(scratch, session, state.tip)
    folder = repository.folder(state)
    found += [f"left: {path.name}" for path in folder.rglob("*iterdev-tmp")]
    found += [f"left: {path.name}" for path in folder.glob("wave-*.csv")]
    found += [f"left: {path}" for path in scratch.home.rglob("*")]
    if lease.is_held(folder):
        found.append("the lease is held")
    repository.close()
    return found + [f"alive: {process}" for process in processes_of(scratch)]


def journal_problems(repository: Repository, session: SessionId) -> list[str]:
    found: list[str] = []
    finished: set[str] = set()
    landed: list[str] = []
    for entry in repository.journal.read(session):
        match entry.event:
            case AttemptStarted(task) if task in finished:
                found.append(f"{task} ran again after it had ended")
            case AttemptEnded(task, _, _, outcome):
                if outcome.commit and git.resolve(repository.top, outcome.commit) is None:
                    found.append(f"the commit of {task} is lost")
                if isinstance(outcome, Done):
                    finished.add(task)
            case Landed(task):
                landed.append(task)
            case _:
                pass
    if sorted(landed) != ["DEV-001", "DEV-fix-1"]:
        found.append(f"landed: {landed}")
    return found


def git_problems(scratch: Scratch, session: SessionId, tip: str) -> list[str]:
    def ask(*args: str) -> str:
        return git.run(*args, cwd=scratch.project).stdout.strip()

    found: list[str] = []
    branch = f"iterdev/{session}"
    if ask("rev-parse", branch) != tip:
        found.append("the branch is not where the journal says")
    tasks = ask("log", "--reverse", "--format=%(trailers:key=Iterdev-Task,valueonly,separator=%x2C)", branch).split()
    if tasks != ["DEV-001", "DEV-fix-1"]:
        found.append(f"on the branch: {tasks}")
    if sorted(ask("ls-tree", "--name-only", branch).split()) != [
        "DEV-001.txt",
        "DEV-fix-1.txt",
        "README.md",
        "iterdev.toml",
    ]:
        found.append(f"the tree is {ask('ls-tree', '--name-only', branch)}")
    if ask("rev-list", "--count", "main") != "1" or ask("status", "--porcelain"):
        found.append("the user's branch or files changed")
    if ask("worktree", "list").count("\n"):
        found.append(f"worktrees: {ask('worktree', 'list')}")
    return found


def processes_of(scratch: Scratch) -> list[str]:
    """Processes whose environment or command line names the scratch folder, other than this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in {os.getpid(), os.getppid()}:
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            if str(scratch.root).encode() in text and ") Z " not in stat:
                found.append(f"{entry.name} {text[-80:]!r}")
    return found


def wait_for_silence(scratch: Scratch) -> list[str]:
    """The processes that are still there when a killed engine's tree should be gone."""
    end = time.monotonic() + PATIENCE
    while (left := processes_of(scratch)) and time.monotonic() < end:
        time.sleep(0.005)
    return [f"outlived the engine: {process}" for process in left]


def crash(scratch: Scratch, *kills: int) -> dict[str, object]:
    """Kills one engine after another at the given marks, then lets the last one finish."""
    scratch.renew()
    names, found = [], []
    for number, at in enumerate(kills):
        name = killed_run(scratch, at, scratch.session() if number else None)
        if not name:
            return {"kills": kills, "ended": True, "problems": problems(scratch)}
        names.append(name)
        found += wait_for_silence(scratch)
    session = scratch.session()
    status = run_in_child(scratch, lambda: run_engine(scratch, lambda _: None, session))
    if status:
        found.append(f"the resuming engine ended with {status}")
    return {"kills": kills, "at": names, "problems": found + problems(scratch)}


def count(scratch: Scratch) -> int:
    scratch.renew()
    if killed_run(scratch, 1_000_000):
        raise SystemExit("the run without a kill was killed")
    if found := problems(scratch):
        raise SystemExit(f"the run without a kill left: {found}")
    return len((scratch.root / "marks").read_text().splitlines())


def main(scratch: Scratch, words: list[str]) -> None:
    match words:
        case ["count"]:
            print(count(scratch))
        case ["again", first]:
            for at in range(1_000):
                result = crash(scratch, int(first), at)
                print(json.dumps(result), flush=True)
                if result.get("ended"):
                    break
        case [shard, shards]:
            for at in range(int(shard), count(scratch), int(shards)):
                print(json.dumps(crash(scratch, at)), flush=True)


if __name__ == "__main__":
    main(Scratch(Path(sys.argv[1]), Engine(sys.argv[2])), sys.argv[3:])
