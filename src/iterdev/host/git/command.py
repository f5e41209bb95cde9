"""The git command: how it is run, and which version is needed.

Everything runs without optional locks (a look at the user's checkout must not even refresh its index), without
prompts, and without the GIT_* variables of the process that started iterdev.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError

OLDEST = (2, 38)
"""The first version with `git merge-tree --write-tree`."""
SECONDS = 300
EXCLUDES = Path(".iterdev", "exclude")
"""Beside a worktree of ours: the patterns that git ignores in it, in place of those that the user has everywhere."""


class Identity(Struct, frozen=True):
    name: str
    email: str


class GitFailed(HostError):
    """git ended with an error; the message quotes its last words."""

    def __init__(self, args: Iterable[str], code: int, stderr: str) -> None:
        lines = stderr.strip().splitlines()
        telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines or ["no message"]
        super().__init__(
            f"`git {' '.join(args)}` failed with {code}: {telling[0]}",
            hint="check the free space and the permissions with `iterdev doctor`, then go on with `iterdev resume`",
        )
        self.code = code
        self.stderr = stderr


def git(
    *args: str,
    cwd: Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    accept: tuple[int, ...] = (0,),
) -> subprocess.CompletedProcess[str]:
    """Runs git and returns what it said; an exit code that was not expected raises."""
    try:
        finished = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", *_overlooking(cwd), *args],
            cwd=cwd,
            input=stdin,
            env=_environment() | dict(env or {}),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        if not cwd.exists():
            raise HostError(f'The folder "{cwd}" does not exist', hint="run `iterdev doctor`") from error
        raise HostError("git is not installed", hint="install git 2.38 or newer") from error
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"`git {' '.join(args)}` did not end within {SECONDS} s", hint="run `iterdev doctor`"
        ) from error
    if finished.returncode not in accept:
        raise GitFailed(args, finished.returncode, finished.stderr)
    return finished


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": "true"}


def _overlooking(worktree: Path) -> tuple[str, ...]:
    patterns = worktree.parent / EXCLUDES
    return ("-c", f"core.excludesFile={patterns}") if patterns.exists() else ()


def users_excludes(folder: Path) -> Path:
    """The file of patterns that the user has git ignore everywhere."""
    named = git("config", "--type=path", "--get", "core.excludesFile", cwd=folder, accept=(0, 1)).stdout.rstrip("\n")
    return Path(named or Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git", "ignore"))


def version() -> tuple[int, ...]:
    text = git("--version", cwd=Path("/")).stdout
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def check_version(found: tuple[int, ...]) -> None:
    if found < OLDEST:
        raise HostError(
            f"git {'.'.join(map(str, found))} is too old, iterdev needs {'.'.join(map(str, OLDEST))} or newer",
            hint="upgrade git",
        )


def _as(author: Identity) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_COMMITTER_NAME": author.name,
        "GIT_COMMITTER_EMAIL": author.email,
    }
