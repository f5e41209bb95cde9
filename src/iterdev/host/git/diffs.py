"""Differences between two commits: as git shows them to the user, and as data."""

import re
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host.git.command import ALL_SUBMODULES, git, users_variables

EXACT = ("--no-color", "--no-ext-diff", "--no-textconv", ALL_SUBMODULES)
"""What makes the output the same for every user."""
BROKEN_PIPE = (-13, 141)
"""How git ends when the reader has left, as `| head` does."""


HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class FileChange(Struct, frozen=True, kw_only=True):
    path: str
    additions: int | None
    """None for a binary file."""
    deletions: int | None


def files(top: Path, old: str, new: str, only: str = "") -> tuple[FileChange, ...]:
    lines = git("diff", *EXACT, "--numstat", "--no-renames", "-z", old, new, *_path(only), cwd=top).stdout.split("\0")
    return tuple(_file_change(line) for line in lines if line)


def _file_change(line: str) -> FileChange:
    added, deleted, path = line.split("\t", 2)
    return FileChange(path=path, additions=_lines(added), deletions=_lines(deleted))


def _lines(count: str) -> int | None:
    return int(count) if re.fullmatch("[0-9]{1,18}", count) else None


def text(top: Path, old: str, new: str, only: str = "") -> str:
    return git("diff", *EXACT, old, new, *_path(only), cwd=top).stdout


def _path(only: str) -> tuple[str, ...]:
    """One file by its name, in which no character is special."""
    return ("--", f":(literal,top){only}") if only else ()


def file_text(top: Path, old: str, new: str, path: str) -> str:
    """The difference of one file; bytes that are not UTF-8 are replaced."""
    return git("diff", *EXACT, "--no-renames", old, new, "--", f":(top,literal){path}", cwd=top).stdout


def shown_lines(top: Path, old: str, new: str) -> dict[str, list[range]]:
    """The lines of the new files that a difference shows, with those around each change."""
    shown: dict[str, list[range]] = {}
    name = ""
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--no-renames")
    for line in git("diff", *EXACT, *prefixes, old, new, cwd=top).stdout.split("\n"):
        if line.startswith("+++ "):
            name = line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")
        elif hunk := HUNK.match(line):
            start = int(hunk[1])
            shown.setdefault(name, []).append(range(start, start + int(hunk[2] or 1)))
    return shown


def show(top: Path, old: str, new: str, *, stat: bool = False, plain: bool = False) -> None:
    """Prints a difference as `git diff` does, with the pager and the colours of the user's configuration.

    Git writes to standard output itself, because a patch need not be UTF-8.
    """
    sys.stdout.flush()
    options = ("--no-pager", "diff", *EXACT) if plain else ("diff",)
    shown = subprocess.run(["git", *options, *_form(stat=stat), old, new], cwd=top, env=users_variables(), check=False)
    if shown.returncode not in {0, *BROKEN_PIPE}:
        raise HostError(f"`git diff {old[:12]} {new[:12]}` failed with {shown.returncode}", hint="git fsck")


def _form(*, stat: bool) -> tuple[str, ...]:
    return ("--stat",) if stat else ()
