"""What a worktree needs that git does not bring: copies of files of the checkout, and links to them.

None of it is work: git overlooks it there, so that it is neither committed nor taken for a change.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from iterdev.core.errors import HostError, UserError
from iterdev.host.git import command


def bring(top: Path, worktree: Path, *, copies: Iterable[str], links: Iterable[str]) -> None:
    """For a worktree that is new: whatever lies in it already is git's."""
    brought = [part for name in copies for part in _copy(top, worktree, _checked(top, name, "copied", "copy"))]
    for name in links:
        place = worktree / _checked(top, name, "linked", "link")
        if os.path.lexists(place):
            raise _is_tracked(name, "linked", "link")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(top / name)
        brought.append(name)
    if brought:
        _overlook(worktree, brought)


def _overlook(worktree: Path, names: Iterable[str]) -> None:
    """Makes git ignore them in this worktree and nowhere else, beside what the user has it ignore everywhere."""
    patterns = worktree.parent / command.EXCLUDES
    patterns.unlink(missing_ok=True)
    own = command.users_excludes(worktree)
    lines = [os.fsdecode(own.read_bytes())] if own.is_file() else []
    lines += ["/" + re.sub(r"[][*?\\ ]", r"\\\g<0>", name) for name in names]
    patterns.parent.mkdir(exist_ok=True)
    patterns.write_bytes(os.fsencode("\n".join(lines) + "\n"))


def overlooking(worktree: Path) -> dict[str, str]:
    """The variables with which an agent's own git ignores the same."""
    patterns = worktree.parent / command.EXCLUDES
    if not patterns.exists():
        return {}
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": str(patterns)}


def _checked(top: Path, name: str, done: str, key: str) -> str:
    plain = os.path.normpath(name)
    if Path(plain).parts[:1] in {(), (os.sep,), ("..",), (".git",)}:
        raise UserError(
            f'"{name}" is to be {done} into worktrees but is no path inside of the repository',
            hint=f"mend `{key}` under [project] in iterdev.toml",
        )
    if not (top / plain).exists():
        raise HostError(
            f'"{name}" is to be {done} into worktrees but does not exist',
            hint=f"mend `{key}` under [project] in iterdev.toml",
        )
    return plain


def _is_tracked(name: str, done: str, key: str) -> UserError:
    return UserError(
        f'"{name}" is to be {done} into worktrees, which have it already, from git',
        hint=f"mend `{key}` under [project] in iterdev.toml",
    )


def _copy(top: Path, worktree: Path, name: str) -> Iterator[str]:
    """Copies what is not there, and yields it; of a folder that git knows in part only the rest is copied."""
    source, target = top / name, worktree / name
    if source.is_dir() and target.is_dir():
        for child in sorted(source.iterdir()):
            if child.is_dir() or not os.path.lexists(target / child.name):
                yield from _copy(top, worktree, f"{name}/{child.name}")
        return
    if os.path.lexists(target):
        raise _is_tracked(name, "copied", "copy")
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
    yield name
