"""Refs and branches: reading them, moving them by compare and swap, and the lock on the whole repository."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from subprocess import CompletedProcess

from iterdev.core.errors import UserError
from iterdev.host.checkout_top import git_folder
from iterdev.host.git import full_disk
from iterdev.host.git.command import GitFailed, ask, git
from iterdev.host.processes.answering import EndedError
from iterdev.host.processes.open_files import opened

LOCKED = 2.0
"""Seconds after which a ref is not locked by a git that is at work: it takes milliseconds."""
PAUSE = 0.05
ZERO = ""
"""The old value of a ref that must not exist, whatever the length of the repository's hashes."""


def head(top: Path) -> str:
    if commit := resolve(top, "HEAD"):
        return commit
    raise UserError(f'The repository "{top}" has no commits yet', hint='git add -A && git commit -m "Start"')


def current_branch(top: Path) -> str:
    """The branch that is checked out; empty when HEAD is detached."""
    # The short form of a branch that a tag has the name of too begins with "heads/".
    return git("symbolic-ref", "--quiet", "HEAD", cwd=top, accept=(0, 1)).stdout.strip().removeprefix("refs/heads/")


def resolve(top: Path, ref: str) -> str | None:
    found = git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", cwd=top, accept=(0, 1, 128))
    return found.stdout.strip() or None


def branches(top: Path) -> list[str]:
    """The user's branches and their commits, without the branches of sessions."""
    lines = git("for-each-ref", "--format=%(refname:short) at %(objectname:short)", "refs/heads", cwd=top).stdout
    return [line for line in lines.splitlines() if not line.startswith("iterdev/")]


def branches_stamp(top: Path) -> tuple[object, ...]:
    """Changes whenever one of the user's branches does; reads file stamps instead of starting a process.

    A repository that keeps its refs in tables has one stamp for all of them, which also changes when a task lands.
    """
    common = common_dir(top)
    heads = common / "refs" / "heads"
    loose: list[object] = []
    for folder, inner, files in os.walk(heads):
        if Path(folder) == heads and "iterdev" in inner:
            inner.remove("iterdev")
        loose += [_stamp(Path(folder, name)) for name in files]
    return (*loose, _stamp(common / "packed-refs"), _stamp(common / "reftable" / "tables.list"))


@lru_cache(maxsize=64)
def common_dir(top: Path) -> Path:
    return git_folder(top) or top / git("rev-parse", "--git-common-dir", cwd=top).stdout.rstrip("\n")


@contextmanager
def repository_lock(top: Path) -> Iterator[None]:
    """For the few things that only one process at a time may do in a repository; waits for its turn.

    It is a lock on git's own folder, so that no lock file can be left behind, and all worktrees share it. It must not
    be held while another program of the user's may run.
    """
    descriptor = os.open(common_dir(top), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _stamp(path: Path) -> object:
    with suppress(OSError):
        stat = path.stat()
        return str(path), stat.st_ino, stat.st_mtime_ns, stat.st_size
    return None


def can_be_written(top: Path) -> bool:
    """Whether git works in the repository, and has the space to write."""
    unique = f"iterdev {os.getpid()} {time.time_ns()}"
    return git("hash-object", "-w", "--stdin", cwd=top, stdin=unique, accept=(0, 1, 128)).returncode == 0


def is_ancestor(top: Path, commit: str, of: str) -> bool:
    return git("merge-base", "--is-ancestor", commit, of, cwd=top, accept=(0, 1)).returncode == 0


def contains(top: Path, branch: str, commit: str) -> bool:
    """Whether a branch of the user has a commit; both may be gone."""
    tip = resolve(top, f"refs/heads/{branch}")
    return bool(tip and resolve(top, commit) and is_ancestor(top, commit, tip))


def move_refs(top: Path, *moves: tuple[str, str, str | None]) -> bool:
    """Moves all of the refs from their old values to their new ones, or none of them; see `move_ref`."""
    lines = (
        f"create {ref} {new}" if old == ZERO else f"update {ref} {new} {old or ''}".rstrip() for ref, new, old in moves
    )
    return _moved(_update(top, "\n".join(lines) + "\n"), moves[0][0])


def keep_under(top: Path, ref: str, commit: str) -> None:
    """Puts the commit under a ref; a different commit that the ref had before gets a ref of its own."""
    if move_ref(top, ref, commit, ZERO):
        return
    before = resolve(top, ref)
    if before and before != commit:
        move_ref(top, f"{ref}-{before[:12]}", before)
    move_ref(top, ref, commit)


def move_ref(top: Path, ref: str, new: str, old: str | None = None) -> bool:
    """Compare and swap: False when the ref is not `old` any more. None means any value."""
    return move_refs(top, (ref, new, old))


def detach(top: Path, ref: str, commit: str) -> None:
    """Makes a HEAD name the commit itself, and no branch."""
    _moved(_update(top, f"option no-deref\nupdate {ref} {commit}\n"), ref)


def _update(top: Path, lines: str) -> CompletedProcess[str]:
    """Waits for another git that moves a ref; the locks of one that was killed are removed."""
    since: dict[str, float] = {}
    while True:
        done = _served(top, lines) or git("update-ref", "--stdin", cwd=top, stdin=lines, accept=(0, 128))
        locked = re.search(r"Unable to create '(.+\.lock)': File exists", done.stderr)
        if not done.returncode or not locked:
            return done
        lock, now = Path(locked[1]), time.monotonic()
        if now > since.setdefault(locked[1], now) + LOCKED:
            if "iterdev" not in lock.parts or locked[1] in opened() or not lock.exists():
                return done
            lock.unlink(missing_ok=True)
        time.sleep(PAUSE)


def _served(top: Path, lines: str) -> CompletedProcess[str] | None:
    """The same by a git process that stays, if there is one for the repository."""
    request = f"start\n{lines}prepare\ncommit\n".encode()
    try:
        answer = ask("update-ref", "--stdin", cwd=top, request=request, end=b"commit: ok\n")
    except EndedError as error:
        if error.code < 0:
            # It was killed, perhaps after it had done it: whoever moves a ref by compare and swap finds that.
            return None
        return CompletedProcess(("git", "update-ref"), error.code, "", error.stderr)
    return None if answer is None else CompletedProcess(("git", "update-ref"), 0, "", "")


def _moved(done: CompletedProcess[str], ref: str) -> bool:
    full = full_disk.is_reason(done.stderr.encode())
    if done.returncode and (full or "cannot lock ref" not in done.stderr):
        raise GitFailed(("update-ref", ref), done.returncode, done.stderr)
    return done.returncode == 0
