"""Submodules in the worktrees of attempts: each is a worktree of the user's own submodule repository.

Nothing has to be fetched, and a commit that an agent makes in one is in the user's repository at once, where a ref
keeps it. A submodule that the user has not initialised is left alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.host.git import refs
from iterdev.host.git.checkout import checkouts, status
from iterdev.host.git.command import Identity, git, git_names

GITLINK = "160000"
FILE = ".gitmodules"


class Submodule(Struct, frozen=True):
    path: str
    commit: str
    """What the superproject's index names."""


class Work(Struct, frozen=True, kw_only=True):
    """How the work of an attempt in submodules is kept."""

    ref: str
    message: str
    author: Identity


def listed(worktree: Path) -> list[Submodule]:
    """The submodules in the index of a worktree; most projects have none, which costs nothing."""
    if not (worktree / FILE).is_file():
        return []
    pattern = ("--get-regexp", r"^submodule\..*\.path$")
    settings = git("config", "--file", FILE, "--null", *pattern, cwd=worktree, accept=(0, 1)).stdout.split("\0")
    paths = [f":(literal){setting.partition(chr(10))[2]}" for setting in settings if setting]
    entries = git_names("ls-files", "--stage", "-z", "--", *paths, cwd=worktree) if paths else []
    fields = (entry.partition("\t")[::2] for entry in entries)
    return [Submodule(path, stage.split()[1]) for stage, path in fields if stage.startswith(GITLINK)]


def check_out(worktree: Path, *tops: Path) -> None:
    """Makes the submodules of a worktree exactly what it names, as far as a checkout of the user has them.

    The first of the checkouts that has one provides it; without any, those that git knows.
    """
    for module in listed(worktree):
        own = worktree / module.path
        if not _is_repository(own):
            others = (top / module.path for top in (*tops, *checkouts(worktree)))
            users = next((place for place in others if _is_repository(place)), None)
            if users is None or refs.resolve(users, module.commit) is None:
                continue
            git("worktree", "add", "--quiet", "--force", "--detach", str(own), module.commit, cwd=users)
        elif refs.resolve(own, module.commit):
            git("checkout", "--quiet", "--force", "--detach", module.commit, cwd=own)
            git("clean", "--quiet", "-ffd", cwd=own)
        check_out(own, *(top / module.path for top in tops))


def is_touched(worktree: Path) -> bool:
    """Whether a submodule is not exactly what the worktree names."""
    present = [module for module in listed(worktree) if _is_repository(worktree / module.path)]
    return any(
        refs.resolve(worktree / module.path, "HEAD") != module.commit or status(worktree / module.path)
        for module in present
    )


def prune(top: Path) -> None:
    """Lets the user's submodules forget worktrees that are gone."""
    for module in listed(top):
        if _is_repository(users := top / module.path):
            git("worktree", "prune", cwd=users)
            prune(users)


def keep(worktree: Path, base: str, work: Work) -> None:
    """Commits all that an attempt left in submodules, and puts it under the attempt's ref there.

    The inner ones come first, because the outer ones name their commits.
    """
    for module in listed(worktree):
        own = worktree / module.path
        if not _is_repository(own) or (head := refs.resolve(own, "HEAD")) is None:
            continue
        before = _named(worktree, base, module.path)
        keep(own, before or head, work)
        git("add", "--all", cwd=own)
        tree = git("write-tree", cwd=own).stdout.strip()
        if tree != git("rev-parse", f"{head}^{{tree}}", cwd=own).stdout.strip():
            commit = ("commit-tree", tree, "-p", head)
            head = git(*commit, cwd=own, stdin=work.message, env=work.author.variables).stdout.strip()
            git("update-ref", "--no-deref", "HEAD", head, cwd=own)
        if head != before:
            _keep_head(worktree, own, module.path, head, work)


def _keep_head(worktree: Path, own: Path, path: str, head: str, work: Work) -> None:
    if not _is_added(worktree, own):
        refs.keep_under(own, work.ref, head)
    elif not _has_ref(own, head, "refs/remotes"):
        # The repository of a submodule that the agent has added goes with the worktree.
        target = f"+HEAD:{work.ref}-{re.sub('[^A-Za-z0-9]+', '-', path)}"
        git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(own), target, cwd=worktree)


def _is_added(worktree: Path, own: Path) -> bool:
    """Whether the repository of a submodule is inside of the part of git's folder that belongs to the worktree."""
    common, admin = (
        Path(git("rev-parse", "--path-format=absolute", option, cwd=folder).stdout.rstrip("\n"))
        for option, folder in (("--git-common-dir", own), ("--git-dir", worktree))
    )
    return common.is_relative_to(admin)


def publish(top: Path, old: str, new: str, session: SessionId) -> list[str]:
    """Prepares the user's submodules for a change of the superproject; says what is left for the user to do.

    A commit that no branch has gets the session's branch in its submodule. No files of the user change.
    """
    return [
        note for path, before, after in _changed(top, old, new) for note in _publish(top, path, before, after, session)
    ]


def _publish(top: Path, path: str, before: str, after: str, session: SessionId) -> Iterator[str]:
    users, branch = top / path, ids.branch(session)
    if not _is_repository(users):
        yield f"{path} is a submodule that you have not initialised: git submodule update --init {path}"
        return
    if refs.resolve(users, after) is None:
        raise UserError(
            f'The work names commit {after[:12]} of the submodule "{path}", which its repository does not have',
            hint=f"git -C {users} fetch origin {after}",
        )
    yield from (f"{path}: {note}" for note in publish(users, before, after, session))
    yield f"{path} has a new commit, {after[:12]}: git submodule update {path}"
    if _has_ref(users, after, "refs/remotes"):
        return
    if not _has_ref(users, after, "refs/heads"):
        at = refs.resolve(users, f"refs/heads/{branch}")
        behind = at is None or refs.is_ancestor(users, at, after)
        if not behind or not refs.move_ref(users, f"refs/heads/{branch}", after, at or refs.ZERO):
            raise UserError(
                f'No branch of the submodule "{path}" has commit {after[:12]}, and "{branch}" is taken there',
                hint=f"git -C {users} branch {branch}-work {after}",
            )
        yield f"others cannot get it before it is pushed: git -C {path} push origin {branch}"


def _changed(top: Path, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """The submodules that differ between two commits or trees: path, and both of the commits that are named."""
    fields = git_names("diff", "--raw", "--no-abbrev", "--no-renames", "-z", old, new, cwd=top)
    for entry, path in zip(fields[::2], fields[1::2], strict=True):
        modes, (before, after) = entry.split()[:2], entry.split()[2:4]
        if modes[1] == GITLINK:
            yield path, before, after


def _named(worktree: Path, commit: str, path: str) -> str:
    """The commit of a submodule that a commit of its superproject names; empty if there is none."""
    entry = git("ls-tree", commit, "--", path, cwd=worktree, accept=(0, 128)).stdout
    return entry.split()[2] if entry.startswith(GITLINK) else ""


def _has_ref(folder: Path, commit: str, *where: str) -> bool:
    return bool(git("for-each-ref", "--count=1", f"--contains={commit}", *where, cwd=folder).stdout)


def _is_repository(folder: Path) -> bool:
    return (folder / ".git").exists()
