"""The user's checkout: where it is, what git says of it, and merging into it."""

import os
from functools import lru_cache
from pathlib import Path

from iterdev.core.errors import HostError, UserError
from iterdev.host.git.command import GitFailed, git


def top_level(folder: Path) -> Path:
    """The top of the checkout that the folder is in; a linked worktree is a checkout of its own."""
    found = git("rev-parse", "--show-toplevel", cwd=folder, accept=(0, 128))
    if found.returncode:
        if "dubious ownership" in found.stderr:
            raise HostError(f'git does not trust "{folder}"', hint=f"git config --global --add safe.directory {folder}")
        raise UserError(f'"{folder}" is not in a git repository', hint="cd into one, or run `git init`")
    return Path(found.stdout.rstrip("\n"))


def status(top: Path) -> str:
    """What differs from HEAD in a checkout, one line per file; looking changes nothing."""
    return git("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z", cwd=top).stdout


@lru_cache(maxsize=64)
def _common_dir(top: Path) -> Path:
    return top / git("rev-parse", "--git-common-dir", cwd=top).stdout.rstrip("\n")


def exclude(top: Path, pattern: str) -> None:
    """Keeps our files out of the user's sight, in the one file that is never committed."""
    path = Path(git("rev-parse", "--git-path", "info/exclude", cwd=top).stdout.strip())
    path = path if path.is_absolute() else top / path
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if pattern not in text.splitlines():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{pattern}\n", encoding="utf-8"
            )
    except OSError as error:
        raise HostError(
            f'Cannot write "{path}": {error.strerror}', hint="make the repository writable, then try again"
        ) from error


def init(top: Path, branch: str) -> None:
    git("init", "--quiet", f"--initial-branch={branch}", cwd=top)


def short_log(top: Path, ref: str) -> str:
    """One line per commit."""
    return git("log", "--oneline", "--no-decorate", ref, cwd=top).stdout


def merge(top: Path, commit: str, message: str) -> tuple[str, ...]:
    """Merges into the branch that is checked out, fast-forward where possible; conflicts undo it and are named."""
    merged = git("merge", "--quiet", "--ff", "-m", message, commit, cwd=top, accept=(0, 1, 2, 128))
    if merged.returncode == 0:
        return ()
    names = git("diff", "--name-only", "--diff-filter=U", "-z", cwd=top).stdout
    git("merge", "--abort", cwd=top, accept=(0, 128))
    if not names:
        raise GitFailed(("merge", commit), merged.returncode, merged.stderr or merged.stdout)
    return tuple(name for name in names.split("\0") if name)


def in_the_way(top: Path, commit: str) -> list[str]:
    """Files of a clean checkout that git does not track, and that checking out the commit would overwrite."""
    names = git("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD", commit, cwd=top).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(top / name)]
