"""Worktrees: added, reset, looked at and removed."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from iterdev.core.errors import HostError
from iterdev.host.git.checkout import status
from iterdev.host.git.command import git
from iterdev.host.git.refs import resolve


def add_worktree(top: Path, path: Path, commit: str) -> None:
    git("worktree", "add", "--quiet", "--force", "--detach", str(path), commit, cwd=top)


def remove_worktree(top: Path, path: Path) -> None:
    git("worktree", "remove", "--force", "--force", str(path), cwd=top, accept=(0, 128))


def prune_worktrees(top: Path) -> None:
    git("worktree", "prune", cwd=top)


def reset_worktree(path: Path, commit: str) -> None:
    """Makes a worktree exactly the commit again; ignored files stay, they are what `setup` made."""
    git("checkout", "--quiet", "--force", "--detach", commit, cwd=path)
    git("clean", "--quiet", "-ffd", cwd=path)


def write_tree(worktree: Path) -> str:
    """The tree of everything in a worktree that git does not ignore."""
    _stage_everything(worktree)
    return git("write-tree", cwd=worktree).stdout.strip()


def _stage_everything(worktree: Path) -> None:
    added = git("add", "--all", cwd=worktree, accept=(0, 1, 128))
    if added.returncode or "embedded git repository" in added.stderr:
        _clear_the_way(worktree)
        git("add", "--all", cwd=worktree)


def _clear_the_way(worktree: Path) -> None:
    """Removes the lock of a git that was killed, and makes plain folders of repositories inside the worktree.

    Git keeps only the name of a commit of such a repository, and none of its files.
    """
    (worktree / git("rev-parse", "--git-path", "index.lock", cwd=worktree).stdout.strip()).unlink(missing_ok=True)
    git("reset", "--quiet", cwd=worktree)
    while inner := [name for name in _untracked(worktree) if name.endswith("/")]:
        for name in inner:
            _remove(worktree / name / ".git")


def _untracked(worktree: Path) -> list[str]:
    return git("ls-files", "--others", "--exclude-standard", "-z", cwd=worktree).stdout.split("\0")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def relink(top: Path, worktree: Path) -> None:
    """Ties a worktree to its repository again if somebody removed the link, or made a repository in its place.

    Without the link, git would look for a repository in the folders above.
    """
    link = worktree / ".git"
    if link.is_file():
        return
    _remove(link)
    git("worktree", "repair", cwd=top)
    if not link.is_file():
        raise HostError(f'"{worktree}" is no worktree of "{top}" any more', hint="save what you need from it")


def worktree_head(worktree: Path) -> str:
    """The commit that a linked worktree is at, or nothing if it has none yet.

    Read from its file: a process would take a hundred times as long.
    """
    text = (_admin(worktree) / "HEAD").read_text(encoding="utf-8").strip()
    return (resolve(worktree, "HEAD") or "") if text.startswith("ref:") else text


def _admin(worktree: Path) -> Path:
    """Git's folder of a linked worktree."""
    return worktree / (worktree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def settle(worktree: Path, commit: str) -> None:
    """Says that a worktree, whose files were just committed, is at that commit; no file is touched."""
    if (_admin(worktree) / "MERGE_HEAD").exists():
        git("merge", "--quit", cwd=worktree)
    git("update-ref", "--no-deref", "HEAD", commit, cwd=worktree)


def is_untouched(worktree: Path, commit: str) -> bool:
    """Whether a worktree is exactly the commit, apart from ignored files."""
    return worktree_head(worktree) == commit and not status(worktree)


def restore_files(worktree: Path, commit: str, names: Iterable[str]) -> None:
    """Puts files back to what they are in the commit, or removes those that are not in it."""
    paths = "\0".join(names)
    _stage_everything(worktree)
    git(
        "restore", f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul",
        cwd=worktree, stdin=paths,
    )  # fmt: skip
