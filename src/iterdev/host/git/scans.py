"""What git finds in a worktree, and for how long that holds: in a large one, looking at every file takes a while.

A scan tells everything at once: what differs from HEAD, what is untracked, and what is ignored. It holds until a
program is started in the worktree or a file of git's changes; in a small worktree, until a stamp of all files differs.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.folder_stamp import FolderStamp, file_stamp, folder_stamp
from iterdev.host.git.checkout import STATUS
from iterdev.host.git.command import EXCLUDES, git_names
from iterdev.host.git.confinement import git_dir

IGNORED = "!!"
GIT_FILES = ("index", "config.worktree", "info/sparse-checkout")
"""Files of git's folder of a worktree that decide what it finds."""

_programs: dict[Path, tuple[int, int]] = {}
"""By worktree: how many programs are running in it, and how many were ever started."""


@contextmanager
def occupied(worktree: Path) -> Iterator[None]:
    """While a program runs in the worktree, and all that it starts."""
    running, started = _programs.get(worktree, (0, 0))
    _programs[worktree] = running + 1, started + 1
    try:
        yield
    finally:
        running, started = _programs[worktree]
        _programs[worktree] = running - 1, started


def started_programs(worktree: Path) -> int:
    """How many programs were started in a worktree so far; negative while one is running."""
    running, started = _programs.get(worktree, (0, 0))
    return -1 if running else started


class Scan(Struct, frozen=True):
    head: str
    """The commit of HEAD; empty if it is not known what differs from it."""
    changed: tuple[str, ...]
    """Two letters, a space and the name of each file that differs: from HEAD, or in the worktree from the index."""
    ignored: tuple[str, ...]
    """The names of ignored files, and with a slash those of folders that are ignored as a whole."""
    files: FolderStamp | None
    """Taken before git looked; None if there are too many files."""

    @property
    def unstaged(self) -> list[str]:
        """The names of files that differ from the index."""
        return [entry[3:] for entry in self.changed if entry[1] != " "]

    @property
    def can_be_listed(self) -> bool:
        """Whether the names say all: nothing is unmerged, no folder is a repository, every name is text."""
        return not any(
            "U" in entry[:2] or entry[:2] in {"AA", "DD"} or entry.endswith("/") or "\\" in entry
            for entry in self.changed
        )


class _Mark(Struct, frozen=True):
    """What a scan depends on, apart from the files themselves."""

    git_files: tuple[tuple[int, ...], ...]
    programs: int


_scans: dict[Path, tuple[_Mark, Scan]] = {}


def scan(worktree: Path, head: str = "") -> Scan:
    """What git finds, or found before if nothing can have changed since.

    If what is `changed` matters, the caller says which commit HEAD is.
    """
    known = last(worktree)
    return known if known and (not head or known.head == head) else new_scan(worktree, head)


def new_scan(worktree: Path, head: str = "") -> Scan:
    """What git finds now, with the index that is there."""
    # The mark and the stamp are older than what git says: what changes meanwhile is found the next time.
    mark, files = _mark(worktree), folder_stamp(worktree)
    listed = git_names(*STATUS, "--ignore-submodules=none", "--ignored=matching", cwd=worktree)
    found = Scan(
        head=head or _detached_head(worktree),
        changed=tuple(entry for entry in listed if not entry.startswith(IGNORED)),
        ignored=tuple(entry[3:] for entry in listed if entry.startswith(IGNORED)),
        files=files,
    )
    _scans[worktree] = mark, found
    return found


def after_own_change(worktree: Path, before: Scan | None) -> None:
    """Records that iterdev's own git changed a worktree, and that of the last scan what is ignored still holds."""
    if before is None:
        _scans.pop(worktree, None)
        return
    files = folder_stamp(worktree) if before.files else None
    _scans[worktree] = _mark(worktree), Scan(head="", changed=(), ignored=before.ignored, files=files)


def last(worktree: Path) -> Scan | None:
    """The last scan, if it still holds."""
    known = _scans.get(worktree)
    if known is None or known[0].programs < 0:
        return None
    mark, found = known
    try:
        now = _mark(worktree)
    except (OSError, ValueError):
        return None
    if now.git_files != mark.git_files:
        return None
    if found.files is None:
        return found if now.programs == mark.programs else None
    files = folder_stamp(worktree)
    return found if files and found.files.still_holds(files, worktree.parent) else None


def _detached_head(worktree: Path) -> str:
    """The commit that HEAD names itself; empty if it names a branch, which can be moved elsewhere."""
    admin = git_dir(worktree)
    text = untrusted_files.read_or_empty(admin / "HEAD", root=admin).decode("ascii", "replace").strip()
    return text if re.fullmatch(r"[0-9a-f]{40,64}", text) else ""


def _mark(worktree: Path) -> _Mark:
    admin = git_dir(worktree)
    files = (*(file_stamp(admin / name) for name in GIT_FILES), file_stamp(worktree.parent / EXCLUDES))
    return _Mark(files, started_programs(worktree))
