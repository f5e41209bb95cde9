"""Untracked files of the checkout that a worktree needs, as copies or links.

Git ignores them in the worktree, so that they are neither committed nor reported as changes.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.host.git import command

Key = Literal["copy", "link"]
IS_TRACKED = ", which have it already, from git"


def bring(top: Path, worktree: Path, *, copies: Iterable[str], links: Iterable[str]) -> None:
    """Must be called on a new worktree, whose files are all tracked."""
    brought = [part for name in copies for part in _copy(top, worktree, _checked(top, name, "copy"))]
    for name in links:
        place = worktree / _checked(top, name, "link")
        if os.path.lexists(place):
            raise _problem(UserError, name, "link", IS_TRACKED)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(top / name)
        brought.append(name)
    if brought:
        _ignore(worktree, brought)


def _ignore(worktree: Path, names: Iterable[str]) -> None:
    """Makes git ignore them in this worktree and nowhere else, in addition to the user's global patterns."""
    patterns = worktree.parent / command.EXCLUDES
    patterns.unlink(missing_ok=True)
    own = command.users_excludes(worktree)
    lines = [os.fsdecode(own.read_bytes())] if own.is_file() else []
    lines += ["/" + re.sub(r"[][*?\\ ]", r"\\\g<0>", name) for name in names]
    patterns.parent.mkdir(exist_ok=True)
    patterns.write_bytes(os.fsencode("\n".join(lines) + "\n"))


def git_variables(worktree: Path) -> dict[str, str]:
    """The variables with which an agent's own git ignores the same files."""
    patterns = worktree.parent / command.EXCLUDES
    if not patterns.exists():
        return {}
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": str(patterns)}


def _checked(top: Path, name: str, key: Key) -> str:
    plain = os.path.normpath(name)
    if Path(plain).parts[:1] in {(), (os.sep,), ("..",), (".git",)}:
        raise _problem(UserError, name, key, " but is no path inside of the repository")
    if not (top / plain).exists():
        raise _problem(HostError, name, key, " but does not exist")
    return plain


def _problem(error: type[IterdevError], name: str, key: Key, problem: str) -> IterdevError:
    done = {"copy": "copied", "link": "linked"}[key]
    hint = f"fix `{key}` under [project] in iterdev.toml"
    return error(f'"{name}" is to be {done} into worktrees{problem}', hint=hint)


def _copy(top: Path, worktree: Path, name: str) -> Iterator[str]:
    """Copies what is not there, and yields it; of a folder with tracked files only the others are copied."""
    source, target = top / name, worktree / name
    if source.is_dir() and target.is_dir():
        for child in sorted(source.iterdir()):
            if child.is_dir() or not os.path.lexists(target / child.name):
                yield from _copy(top, worktree, f"{name}/{child.name}")
        return
    if os.path.lexists(target):
        raise _problem(UserError, name, "copy", IS_TRACKED)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
    yield name
