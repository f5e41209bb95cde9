"""The least that a life costs: what git and the agent take when a script runs them with nothing around."""

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import scratch

AGENTS_PER_LIFE = 2
"""One that develops and one that reviews; the test gate needs none."""


def git_floor(root: Path, lives: int, concurrency: int) -> float:
    """Seconds for all lives: worktree add, a file, commit, merge into another worktree, remove."""
    repo = scratch.make(root)
    target = root / "target"
    repo.git("worktree", "add", "-q", "-b", "target", target)
    # git reads the list of all worktrees in each of these, and fails when it meets one that is half made or half gone.
    alone = Lock()

    def live(number: int) -> None:
        name, tree = f"task-{number}", root / f"task-{number}"
        with alone:
            repo.git("worktree", "add", "-q", "-b", name, tree, "target")
        (tree / f"{name}.txt").write_text(f"{name}\n")
        repo.git("add", "-A", cwd=tree)
        repo.git("commit", "-q", "-m", name, cwd=tree)
        with alone:
            repo.git("merge", "-q", "--no-edit", name, cwd=target)
            repo.git("worktree", "remove", tree)
            repo.git("branch", "-q", "-D", name)

    return _spread(live, lives, concurrency)


def agents_alone(root: Path, agent: Path, lives: int, concurrency: int) -> float:
    """Seconds for all agents of all lives, when nothing but a shell starts them."""
    root.mkdir(parents=True)

    def start(number: int) -> None:
        variables = {"ITERDEV_TASK": f"DEV-{number}", "ITERDEV_ROLE": "developer", "ITERDEV_RESULT": f"{number}.json"}
        subprocess.run(["sh", agent], cwd=root, env=variables, stdin=subprocess.DEVNULL, check=True)

    return _spread(start, lives * AGENTS_PER_LIFE, concurrency)


def _spread(work: Callable[[int], None], times: int, concurrency: int) -> float:
    with ThreadPoolExecutor(concurrency) as pool:
        begin = time.perf_counter()
        list(pool.map(work, range(times)))
        return time.perf_counter() - begin
