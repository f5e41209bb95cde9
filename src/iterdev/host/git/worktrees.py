"""Worktrees: added, reset, read and removed."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from iterdev.host.git import submodules
from iterdev.host.git.checkout import status
from iterdev.host.git.command import git, git_names
from iterdev.host.git.refs import resolve


def add(top: Path, path: Path, commit: str) -> None:
    git("worktree", "add", "--quiet", "--force", "--detach", str(path), commit, cwd=top)
    submodules.check_out(top, path)


def remove(top: Path, path: Path) -> None:
    git("worktree", "remove", "--force", "--force", str(path), cwd=top, accept=(0, 128))


def prune(top: Path) -> None:
    git("worktree", "prune", cwd=top)
    submodules.prune(top)


def reset(top: Path, path: Path, commit: str) -> None:
    """Makes a worktree exactly the commit again; ignored files stay, they are what `setup` made."""
    git("checkout", "--quiet", "--force", "--detach", commit, cwd=path)
    git("clean", "--quiet", "-ffd", cwd=path)
    submodules.check_out(top, path)


def write_tree(worktree: Path) -> str:
    """The tree of everything in a worktree that git does not ignore."""
    stage(worktree)
    return git("write-tree", cwd=worktree).stdout.strip()


def restore_staged(worktree: Path) -> None:
    """Makes the files of a worktree what they were when they were staged; ignored files stay."""
    git("restore", "--worktree", "--", ".", cwd=worktree, accept=(0, 1))
    git("clean", "--quiet", "-ffd", cwd=worktree)


def stage(worktree: Path) -> None:
    """Puts everything into the index that git does not ignore."""
    added = git("add", "--all", cwd=worktree, accept=(0, 1, 128))
    if added.returncode or "embedded git repository" in added.stderr:
        _remove_obstacles(worktree)
        git("add", "--all", cwd=worktree)


def _remove_obstacles(worktree: Path) -> None:
    """Removes the lock of a git that was killed, and makes repositories inside the worktree plain folders.

    Git would record only the commit id of such a repository, and none of its files.
    """
    (worktree / git("rev-parse", "--git-path", "index.lock", cwd=worktree).stdout.strip()).unlink(missing_ok=True)
    git("reset", "--quiet", cwd=worktree)
    listed = ("ls-files", "--others", "--exclude-standard", "-z")
    while inner := [name for name in git_names(*listed, cwd=worktree) if name.endswith("/")]:
        for name in inner:
            delete(worktree / name / ".git")


def delete(path: Path, *, ignore_errors: bool = False) -> None:
    """Deletes a file, a link or a whole folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def relink(top: Path, worktree: Path, base: str) -> None:
    """Restores the link from a worktree to its repository if it was removed, or a repository was made in its place.

    Without the link, git would search the parent folders for a repository. If the repository has forgotten the
    worktree, it becomes a new one of it, at the base.
    """
    link = worktree / ".git"
    if link.is_file() and git_dir(worktree).is_dir():
        return
    delete(link)
    git("worktree", "repair", cwd=top)
    if link.is_file():
        return
    new = worktree.with_name(f"{worktree.name}.new")
    git("worktree", "add", "--quiet", "--no-checkout", "--force", "--detach", str(new), base, cwd=top)
    (new / ".git").rename(link)
    new.rmdir()
    git("worktree", "repair", str(worktree), cwd=top)
    git("reset", "--quiet", cwd=worktree)


def head_of_deleted(top: Path, worktree: Path) -> str:
    """The commit of a worktree whose folder is gone; empty if the repository has forgotten it."""
    entries = iter(git_names("worktree", "list", "--porcelain", "-z", cwd=top))
    for entry in entries:
        if entry == f"worktree {worktree}":
            return next(entries).removeprefix("HEAD ")
    return ""


def head(worktree: Path) -> str:
    """The commit of a linked worktree; empty if it has none yet.

    Reading the file is a hundred times as fast as a process.
    """
    text = (git_dir(worktree) / "HEAD").read_text(encoding="utf-8").strip()
    return (resolve(worktree, "HEAD") or "") if text.startswith("ref:") else text


def git_dir(worktree: Path) -> Path:
    """Git's folder of a linked worktree."""
    return worktree / (worktree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()


def set_head(worktree: Path, commit: str) -> None:
    """Moves the HEAD of a worktree to the commit that was just made of its files; no file is changed."""
    if (git_dir(worktree) / "MERGE_HEAD").exists():
        git("merge", "--quit", cwd=worktree)
    git("update-ref", "--no-deref", "HEAD", commit, cwd=worktree)


def is_untouched(worktree: Path, commit: str) -> bool:
    """Whether a worktree is exactly the commit, apart from ignored files."""
    return head(worktree) == commit and not status(worktree)


def restore_files(top: Path, worktree: Path, commit: str, names: Iterable[str]) -> None:
    """Puts files back to what they are in the commit, or removes those that are not in it."""
    stage(worktree)
    options = (f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
    git("restore", *options, cwd=worktree, stdin="\0".join(names))
    submodules.check_out(top, worktree)
