"""A pool of git worktrees outside the user's checkout, lent to attempts one at a time.

A worktree is made once and then reset for each attempt. It is removed only after everything in it has been kept
under a ref. A file in each slot names the attempt that has borrowed it, so that the next engine finds the work of one
that was killed.
"""

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host import paths
from iterdev.host.git import checkout, command, commits, worktrees

_delete = partial(worktrees.delete, ignore_errors=True)
BORROWER = "attempt.json"
TREE = "tree"
"""The name of the worktree in its slot."""
SET_ASIDE = "set-aside"
"""The folder, beside those of the repositories, of slots whose work could not be kept under a ref."""
USED = "used"
"""In the private folder of a workspace."""
TRIES = 5
DELETIONS = 8
"""At once."""


class Workspace(Struct, frozen=True, dict=True):
    """One slot with the worktree, and a folder for temporary files elsewhere."""

    slot: Path
    temp: Path

    @cached_property
    def tree(self) -> Path:
        return self.slot / TREE

    @cached_property
    def result(self) -> Path:
        return self.slot / "result.json"

    @cached_property
    def scratch(self) -> Path:
        """For files that iterdev and a program in the workspace exchange: reports of tests, answers of interpreters.

        In the sandbox, only that program can write there, and nothing of it is left when iterdev reads them.
        """
        return self.private / "scratch"

    @cached_property
    def private(self) -> Path:
        """What iterdev keeps for the workspace beside its tree, from one attempt to the next."""
        return self.slot / command.EXCLUDES.parent

    @property
    def environments(self) -> Path:
        """What programs in the workspace import; agents may install more."""
        return self.private / "environments"

    @property
    def was_used(self) -> bool:
        """Whether an agent has been at work in it, or code that one wrote: ignored files may be left of that."""
        return (self.private / USED).exists()

    def mark_used(self) -> None:
        if not self.was_used:
            self.private.mkdir(parents=True, exist_ok=True)
            (self.private / USED).touch()

    def unexpected_entries(self) -> list[str]:
        """The entries of the slot that neither git nor iterdev made."""
        ours = {self.tree.name, self.result.name, self.private.name, BORROWER}
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(entry.name for entry in self.slot.iterdir() if entry.name not in ours)
        return []

    def restore_name(self) -> None:
        """Gives the tree its name back, if it was renamed inside of its slot."""
        if os.path.lexists(self.tree):
            return
        others = [self.slot / name for name in self.unexpected_entries()]
        renamed = [other for other in others if (other / ".git").is_file() and not other.is_symlink()]
        if len(renamed) == 1:
            renamed[0].rename(self.tree)


def workspace_around(folder: Path) -> Path | None:
    """The worktree of a workspace that the folder is in."""
    slots = (Workspace(place.parent, place) for place in (folder, *folder.parents) if place.name == TREE)
    return next((slot.tree for slot in slots if slot.private.is_dir() or (slot.slot / BORROWER).is_file()), None)


class Borrower(Struct, frozen=True, kw_only=True):
    task: str
    number: int
    base: str


class Pool:
    """The worktrees of one session; only the session's engine touches them."""

    def __init__(self, top: Path, home: Path, temps: Path, confine_git: Callable[[Path], None] | None = None) -> None:
        """`confine_git` has git in a slot run in the sandbox, if there is one."""
        self._top = top
        self._confine_git = confine_git
        self._home = home
        self._temps = temps
        """Shared with all other pools."""
        self._free: list[Workspace] = []
        self._lent: set[Path] = set()
        self._made = 0
        self._clean: dict[Path, str] = {}
        self._base_files: dict[tuple[str, ...], Path | None] = {}
        self._lock = threading.Lock()

    def leftovers(self) -> Iterator[tuple[Workspace, Borrower]]:
        """The workspaces that the previous engine did not get back."""
        for slot in sorted(self._home.glob("*")):
            if borrower := _borrower(slot):
                yield self._workspace(slot), borrower

    def fetch_moved(self) -> None:
        """Brings in the slots of a session whose repository was moved: they are at the place of its former path.

        The worktree then leads to a repository that does not exist. Worktrees of a repository that was copied still
        lead to the original, and stay there.
        """
        root = self._home.parent.parent
        for tree in checkout.checkouts(self._top)[1:]:
            slot = root / tree.parent.relative_to(tree.parents[3]) if len(tree.parents) > 4 else tree
            is_former = slot.parent.name == self._home.name and slot.parent != self._home and tree.name == TREE
            if not is_former or os.path.realpath(slot) != str(tree.parent) or worktrees.leads_somewhere(tree):
                continue
            target = self._unused_slot()
            _make(target.slot.parent)
            _delete(self._workspace(slot).temp)
            slot.rename(target.slot)
            worktrees.follow(self._top, tree, target.tree)
            for folder in (slot.parent, slot.parent.parent):
                with suppress(OSError):
                    folder.rmdir()

    def set_aside(self, workspace: Workspace) -> Path:
        """Moves a slot whose work cannot be kept under a ref to where no engine touches it; nothing in it changes."""
        folder = self._home.parent.parent / SET_ASIDE / self._home.parent.name
        _make(folder)
        name = f"{self._home.name}-{workspace.slot.name}"
        names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
        target = next(folder / free for free in names if not os.path.lexists(folder / free))
        _delete(workspace.temp)
        try:
            workspace.slot.rename(target)
        except OSError as error:
            raise HostError(
                f'Cannot move the workspace "{workspace.slot}" to "{target}": {error.strerror}',
                hint="make ITERDEV_HOME writable, then run `iterdev resume`",
            ) from error
        with self._lock:
            self._lent.discard(workspace.slot)
        return target

    def borrow(self, commit: str, *, task: str, number: int) -> tuple[Workspace, bool]:
        """A workspace at the commit, and whether it is new and still has to be set up."""
        workspace, fresh = self.lend(commit)
        borrower = Borrower(task=task, number=number, base=commit)
        (workspace.slot / BORROWER).write_bytes(msgspec.json.encode(borrower))
        return workspace, fresh

    def lend(self, commit: str) -> tuple[Workspace, bool]:
        """The same for what is no attempt: nothing in the workspace has to be kept, whoever is killed."""
        with self._lock:
            workspace = self._take_free(commit) or self._unused_slot()
            self._lent.add(workspace.slot)
        fresh = self._clean.pop(workspace.slot, None) != commit and not self._reset(workspace, commit)
        _make(workspace.temp)
        return workspace, fresh

    def _take_free(self, commit: str) -> Workspace | None:
        """One that need not be reset to the commit, or else the one that was given back last."""
        at_commit = (one for one in self._free if self._clean.get(one.slot) == commit)
        if chosen := next(at_commit, self._free[-1] if self._free else None):
            self._free.remove(chosen)
        return chosen

    def spare(self, commit: str) -> Workspace:
        """A new workspace that is no attempt's: nothing in it has to be kept. Given back, it counts as set up."""
        with self._lock:
            workspace = self._unused_slot()
            self._lent.add(workspace.slot)
        self._reset(workspace, commit)
        _make(workspace.temp)
        return workspace

    def has_looked_for(self, commit: str, words: Sequence[str]) -> bool:
        """Whether `base_files` has its answer at hand."""
        return (commit, *words) in self._base_files

    def base_files(self, commit: str, words: Sequence[str]) -> Path | None:
        """A copy of all files of a commit, if some of the words are names of such files; kept until the pool is closed.

        Agents can write their worktrees, but not this.
        """
        with self._lock:
            if (commit, *words) not in self._base_files:
                named = commits.has_files(self._top, commit, words)
                self._base_files[commit, *words] = self._copy(commit) if named else None
            return self._base_files[commit, *words]

    def _copy(self, commit: str) -> Path:
        folder = self._home / f"base-{commit[:12]}"
        if not folder.exists():
            _make(self._home)
            new = folder.with_name(f"{folder.name}.new")
            _delete(new)
            commits.copy_files(self._top, commit, new)
            new.rename(folder)
        return folder

    def mark_clean(self, workspace: Workspace, commit: str) -> None:
        """Records that a workspace is exactly the commit, so that it need not be reset to it."""
        self._clean[workspace.slot] = commit

    def give_back(self, workspace: Workspace) -> None:
        """Only after everything in it has been kept.

        One that another engine lent is deleted, because it may not have been set up completely.
        """
        if workspace.slot not in self._lent:
            self._discard(workspace)
            return
        _delete(workspace.result)
        for folder in (workspace.temp, workspace.scratch):
            if not _is_unused(folder):
                _delete(folder)
        for name in workspace.unexpected_entries():
            _delete(workspace.slot / name)
        _delete(workspace.slot / BORROWER)
        with self._lock:
            self._lent.remove(workspace.slot)
            self._free.append(workspace)

    def close(self) -> None:
        """Removes the worktrees, except those still borrowed, which the next engine recovers."""
        idle = [self._workspace(slot) for slot in sorted(self._home.glob("*")) if _borrower(slot) is None]
        # Some disks take a second to delete a tree, and hardly longer for several at once.
        with ThreadPoolExecutor(DELETIONS) as executor:
            list(executor.map(_delete, (workspace.tree for workspace in idle)))
        for workspace in idle:
            self._discard(workspace)
        worktrees.forget_deleted(self._top, self._home)
        for folder in (self._home, self._home.parent, self._temps):
            with suppress(OSError):
                folder.rmdir()

    def _discard(self, workspace: Workspace) -> None:
        worktrees.remove(self._top, workspace.tree)
        # The slot is the last: without it, no later engine would find what a kill left.
        _delete(workspace.temp)
        _delete(workspace.slot)

    def _workspace(self, slot: Path) -> Workspace:
        """The path of the temp dir follows from the slot, so that the next engine finds it too."""
        return Workspace(slot, self._temps / hashlib.sha256(str(slot).encode()).hexdigest()[:12])

    def _unused_slot(self) -> Workspace:
        """A slot that no engine has used before: the others may hold work."""
        while True:
            self._made += 1
            workspace = self._workspace(self._home / str(self._made))
            if not workspace.slot.exists():
                return workspace

    def _reset(self, workspace: Workspace, commit: str) -> bool:
        """True if an existing worktree could be reset; otherwise a new one is made in its place."""
        _make(workspace.slot)
        if self._confine_git:
            self._confine_git(workspace.slot)
        if worktrees.is_linked(self._top, workspace.tree):
            with suppress(command.GitFailed):
                worktrees.reset(self._top, workspace.tree, commit)
                return True
        if workspace.tree.exists():
            worktrees.remove(self._top, workspace.tree)
            _delete(workspace.tree)
        worktrees.add(self._top, workspace.tree, commit)
        return False


def _make(folder: Path) -> None:
    for remaining in range(TRIES, -1, -1):
        try:
            paths.make_private(folder)
            break
        except OSError as error:
            # Another engine may have removed a parent that was empty.
            if not isinstance(error, FileNotFoundError) or not remaining:
                raise HostError(
                    f'Cannot create the workspace "{folder}": {error.strerror}',
                    hint="set ITERDEV_HOME to a folder with free space that you may write to",
                ) from error


def _is_unused(folder: Path) -> bool:
    """Whether it is as it was made, so that it need not be made again, which takes longer than a look."""
    with suppress(OSError):
        mode = os.lstat(folder).st_mode
        return stat.S_ISDIR(mode) and mode & stat.S_IRWXU == stat.S_IRWXU and not any(folder.iterdir())
    return False


def _borrower(slot: Path) -> Borrower | None:
    with suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode((slot / BORROWER).read_bytes(), type=Borrower)
    return None
