"""A pool of git worktrees outside the user's checkout, lent to attempts one at a time.

A worktree is made once and then reset for each attempt. It is removed only after everything in it has been kept
under a ref; what a killed engine left behind is found again by the note in each slot.
"""

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host.git import command, worktrees

NOTE = "attempt.json"
TRIES = 5
REMOVERS = 8


class Workspace(Struct, frozen=True):
    """One slot with the worktree, and a folder for temporary files elsewhere."""

    slot: Path
    temp: Path

    @property
    def tree(self) -> Path:
        return self.slot / "tree"

    @property
    def result(self) -> Path:
        return self.slot / "result.json"

    @property
    def private(self) -> Path:
        """What iterdev keeps for the workspace beside its tree, from one attempt to the next."""
        return self.slot / command.EXCLUDES.parent

    def strays(self) -> list[str]:
        """What lies in the slot that neither git nor iterdev put there."""
        ours = {self.tree.name, self.result.name, self.private.name, NOTE}
        return sorted(entry.name for entry in self.slot.glob("*") if entry.name not in ours)


class Leftover(Struct, frozen=True, kw_only=True):
    """A workspace that an engine did not give back, and the attempt it was lent to."""

    workspace: Workspace
    task: str
    number: int
    base: str


class Pool:
    """The worktrees of one session; only the session's engine touches them."""

    def __init__(self, top: Path, home: Path, temps: Path) -> None:
        self._top = top
        self._home = home
        self._temps = temps
        """Shared with all other pools."""
        self._free: list[Workspace] = []
        self._lent: set[Path] = set()
        self._made = 0
        self._clean: dict[Path, str] = {}
        self._lock = threading.Lock()

    def leftovers(self) -> Iterator[Leftover]:
        """What the engine before left lent out; everything else of its is simply removed."""
        for slot in sorted(self._home.glob("*")):
            if note := _note(slot / NOTE):
                task, number, base = note
                yield Leftover(workspace=self._workspace(slot), task=task, number=number, base=base)

    def borrow(self, commit: str, *, task: str, number: int) -> tuple[Workspace, bool]:
        """A workspace at the commit, and whether it is new and still has to be set up."""
        with self._lock:
            workspace = self._free.pop() if self._free else None
            if workspace is None:
                workspace = self._unused_slot()
            self._lent.add(workspace.slot)
        fresh = self._clean.pop(workspace.slot, None) != commit and not self._reset(workspace, commit)
        _make(workspace.temp)
        _write_note(workspace, task, number, commit)
        return workspace, fresh

    def vouch(self, workspace: Workspace, commit: str) -> None:
        """Says that a workspace was seen to be exactly the commit: for that one it need not be reset."""
        self._clean[workspace.slot] = commit

    def give_back(self, workspace: Workspace) -> None:
        """Only after everything in it has been kept.

        One that another engine lent is not lent again: nobody knows whether it was set up.
        """
        if workspace.slot not in self._lent:
            self._discard(workspace)
            return
        workspace.result.unlink(missing_ok=True)
        shutil.rmtree(workspace.temp, ignore_errors=True)
        for stray in workspace.strays():
            _remove(workspace.slot / stray)
        (workspace.slot / NOTE).unlink(missing_ok=True)
        with self._lock:
            self._lent.remove(workspace.slot)
            self._free.append(workspace)

    def close(self) -> None:
        """Removes the worktrees; those still lent out stay, for the next engine to find."""
        idle = [self._workspace(slot) for slot in sorted(self._home.glob("*")) if _note(slot / NOTE) is None]
        # Some disks take a second for a tree, and hardly longer for several at once.
        with ThreadPoolExecutor(REMOVERS) as helpers:
            list(helpers.map(_remove, (workspace.tree for workspace in idle)))
        for workspace in idle:
            self._discard(workspace)
        worktrees.prune_worktrees(self._top)
        for folder in (self._home, self._home.parent, self._temps):
            with suppress(OSError):
                folder.rmdir()

    def _discard(self, workspace: Workspace) -> None:
        worktrees.remove_worktree(self._top, workspace.tree)
        _remove(workspace.slot)
        _remove(workspace.temp)

    def _workspace(self, slot: Path) -> Workspace:
        """The temp dir is found again by the slot, also by the engine after one that was killed."""
        return Workspace(slot, self._temps / hashlib.sha256(str(slot).encode()).hexdigest()[:12])

    def _unused_slot(self) -> Workspace:
        """A slot of a number that no engine used before: what lies in the others may still be wanted."""
        while True:
            self._made += 1
            workspace = self._workspace(self._home / str(self._made))
            if not workspace.slot.exists():
                return workspace

    def _reset(self, workspace: Workspace, commit: str) -> bool:
        """True if an existing worktree could be reset; otherwise a new one is made in its place."""
        _make(workspace.slot)
        if (workspace.tree / ".git").exists():
            with suppress(command.GitFailed):
                worktrees.reset_worktree(workspace.tree, commit)
                return True
        if workspace.tree.exists():
            worktrees.remove_worktree(self._top, workspace.tree)
            _remove(workspace.tree)
        with self._lock:
            worktrees.add_worktree(self._top, workspace.tree, commit)
        return False


def _make(folder: Path) -> None:
    for _ in range(TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError:
            # Another engine removed a parent that was empty.
            continue
        except OSError as error:
            raise _unwritable(folder, error.strerror or str(error)) from error
        return
    raise _unwritable(folder, "it is removed again and again")


def _unwritable(folder: Path, reason: str) -> HostError:
    return HostError(
        f'Cannot create the workspace "{folder}": {reason}',
        hint="set ITERDEV_HOME to a folder with free space that you may write to",
    )


def _note(path: Path) -> tuple[str, int, str] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return str(document["task"]), int(document["number"]), str(document["base"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_note(workspace: Workspace, task: str, number: int, base: str) -> None:
    text = json.dumps({"task": task, "number": number, "base": base})
    (workspace.slot / NOTE).write_text(text, encoding="utf-8")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
