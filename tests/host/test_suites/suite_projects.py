"""Small projects with tests, and how they are measured without an engine."""

import asyncio
import math
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from iterdev.core.verification import SuiteReport
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.test_suites import find as found_in
from iterdev.host.test_suites.run import measure
from iterdev.host.test_suites.suite import Suite

LIMIT = math.inf
"""A runner that starts slowly on a busy machine must not be stopped."""


def python(*flags: str) -> str:
    """A stand-in for the project's own interpreter, which is ours and thus has pytest, or with -IS has nothing."""
    return f'#!/bin/sh\nexec {shlex.join((sys.executable, *flags))} "$@"\n'


WITH_PYTEST = {f"environment/bin/{name}": python() for name in ("python", "python3")}
WITHOUT_PYTEST = {f"environment/bin/{name}": python("-S") for name in ("python", "python3")}


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return root


def environment(root: Path) -> dict[str, str]:
    """Programs of the project's environment come first, as in a workspace."""
    path = f"{root / 'environment/bin'}:{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
    cargo = {"CARGO_HOME": f"{os.environ['HOME']}/.cargo", "RUSTUP_HOME": f"{os.environ['HOME']}/.rustup"}
    return {**cargo, **kept, "PATH": path, "HOME": str(root.parent)}


def find(root: Path) -> tuple[Suite, ...]:
    def works(argv: Sequence[str]) -> bool:
        try:
            # The program is looked for on this PATH, not on that of the tests themselves.
            command = ("/usr/bin/env", *argv)
            done = subprocess.run(command, cwd=root, check=False, capture_output=True, env=environment(root))
        except OSError:
            return False
        return done.returncode == 0

    return found_in.find(root, works)


def one(root: Path) -> Suite:
    """The only suite of a project."""
    suites = find(root)
    assert len(suites) == 1, suites
    return suites[0]


async def run(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([output], timeout=limit)
    if not done:
        os.killpg(process.pid, signal.SIGKILL)
    stdout, stderr = await output
    return ProgramResult(code=process.returncode or 0, timed_out=not done, stdout=stdout, stderr=stderr)


def measured(suite: Suite, root: Path, *, limit: float = LIMIT) -> SuiteReport:
    scratch = root.parent / "scratch of tests"

    async def main() -> SuiteReport:
        return await measure(suite, root, run=run, scratch=scratch, env=environment(root), limit=limit)

    return anyio.run(main)


def seen_by_git(root: Path) -> str:
    git = ("git", "-c", "safe.directory=*")
    subprocess.run((*git, "init", "--quiet"), cwd=root, check=True)
    listed = (*git, "ls-files", "--others", "--exclude-standard")
    return subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
