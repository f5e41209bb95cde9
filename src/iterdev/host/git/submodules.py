"""Submodules in the worktrees of attempts: each is a worktree of the user's own submodule repository.

Nothing has to be fetched, and a commit that an agent makes in one is in the user's repository at once, where a ref
keeps it. A submodule that the user has not initialised is left alone.
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.host import untrusted_files
from iterdev.host.git import confinement, index, object_import, refs
from iterdev.host.git.checkout import status
from iterdev.host.git.command import ALL_SUBMODULES, Identity, git, git_names
from iterdev.host.git.index import GITLINK

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
    named = [Path(setting.partition("\n")[2]) for setting in settings if setting]
    paths = [f":(literal){path}" for path in named if ".." not in path.parts and not path.is_absolute()]
    entries = git_names("ls-files", "--stage", "-z", "--", *paths, cwd=worktree) if paths else []
    fields = (entry.partition("\t")[::2] for entry in entries)
    return [Submodule(path, stage.split()[1]) for stage, path in fields if stage.startswith(GITLINK)]


def check_out(top: Path, worktree: Path) -> None:
    """Makes the submodules of a worktree exactly what it names, as far as the user has them in the checkout `top`."""
    for module in listed(worktree):
        users, own = top / module.path, worktree / module.path
        if not _is_repository(users) or refs.resolve(users, module.commit) is None:
            continue
        if _is_linked(own, users):
            index.put_back(own)
            git("checkout", "--quiet", "--force", "--detach", module.commit, cwd=own)
            git("clean", "--quiet", "-ffd", cwd=own)
        else:
            _add(users, own, module.commit, untrusted_files.root_of(own) or worktree)
            confinement.add_submodule(own)
            git("reset", "--quiet", "--hard", module.commit, cwd=own)
        index.remember(own)
        check_out(users, own)


def _add(users: Path, own: Path, commit: str, root: Path) -> None:
    """Makes a folder of a worktree one of the submodule's own worktrees, without files.

    Git adds it elsewhere first: it would follow links that an agent put in the way.
    """
    untrusted_files.remove(own, root=root)
    private = root.parent / untrusted_files.PRIVATE
    with TemporaryDirectory(dir=private if private.is_dir() else refs.common_dir(users), prefix="new-") as folder:
        new = Path(folder, own.name)
        options = ("--quiet", "--force", "--no-checkout", "--detach")
        git("worktree", "add", *options, str(new), commit, cwd=users)
        link = (new / ".git").read_bytes()
        admin = Path(os.fsdecode(link).removeprefix("gitdir:").strip())
        (admin / "gitdir").write_bytes(os.fsencode(own / ".git") + b"\n")
    untrusted_files.write_bytes(own / ".git", link, root=root)


def disarm(worktree: Path, trusted: Path, writable: Path) -> None:
    """Cuts the links from a worktree to repositories that an agent in a sandbox could write.

    Git would run in them to look for changes, with their settings, which can name programs to start. Repositories in
    the folder `trusted` cannot have been written, except for its part that is `writable`.
    """
    for entry in git_names("ls-files", "--stage", "-z", cwd=worktree):
        stage, _, path = entry.partition("\t")
        own = worktree / path
        if not stage.startswith(GITLINK) or not os.path.lexists(own / ".git"):
            continue
        target = _target(own)
        if target and target.is_relative_to(trusted) and not target.is_relative_to(writable):
            disarm(own, trusted, writable)
        else:
            untrusted_files.remove(own / ".git", root=untrusted_files.root_of(own) or worktree)


def is_touched(top: Path, worktree: Path) -> bool:
    """Whether a submodule is not exactly what the worktree names."""
    return any(_differs(own, module.commit) for module, _, own in _present(top, worktree))


def _differs(own: Path, commit: str) -> bool:
    index.put_back(own)
    return refs.resolve(own, "HEAD") != commit or bool(status(own, "--ignore-submodules=none"))


def prune(top: Path) -> None:
    """Lets the user's submodules forget worktrees that are gone."""
    for module in listed(top):
        if _is_repository(users := top / module.path):
            git("worktree", "prune", cwd=users)
            prune(users)


def keep(top: Path, worktree: Path, base: str, work: Work) -> None:
    """Commits all that an attempt left in submodules, and puts it under the attempt's ref there.

    The inner ones come first, because the outer ones name their commits.
    """
    for module, users, own in _present(top, worktree):
        before, head = _named(worktree, base, module.path), refs.resolve(own, "HEAD")
        keep(users, own, before or module.commit, work)
        found = index.put_back(own)
        git(*index.ADD_ALL, cwd=own)
        index.add_forced(own, found.names)
        index.remember(own)
        tree, parents = git("write-tree", cwd=own).stdout.strip(), ("-p", head) if head else ()
        if not head or tree != git("rev-parse", f"{head}^{{tree}}", cwd=own).stdout.strip():
            made = git("commit-tree", tree, *parents, cwd=own, stdin=work.message, env=work.author.variables)
            head = made.stdout.strip()
            git("update-ref", "--no-deref", "HEAD", head, cwd=own)
        object_import.import_new(untrusted_files.root_of(own) or worktree)
        if head != before:
            refs.keep_under(users, work.ref, head)
    _keep_added(top, worktree, work)


def _keep_added(top: Path, worktree: Path, work: Work) -> None:
    """Keeps the commits of submodules that the agent has added, whose repositories go with the worktree.

    They are not trusted: no git is run in one, except to read its objects, and not even that after a sandbox.
    """
    if confinement.is_confined(untrusted_files.root_of(worktree) or worktree):
        return
    for module in listed(worktree):
        own = worktree / module.path
        if _is_repository(own) and not _is_repository(top / module.path):
            target = f"+HEAD:{work.ref}-{re.sub('[^A-Za-z0-9]+', '-', module.path)}"
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
            git("fetch", *options, str(own), target, cwd=worktree, accept=(0, 1, 128))


def _present(top: Path, worktree: Path) -> Iterator[tuple[Submodule, Path, Path]]:
    """The submodules of a worktree that are worktrees of the user's, with both folders.

    What leads to any other repository is put right first: its settings could make git run a program.
    """
    for module in listed(worktree):
        users, own = top / module.path, worktree / module.path
        if not _is_repository(users) or not own.is_dir() or own.is_symlink():
            continue
        if not _is_linked(own, users):
            _relink(users, own, untrusted_files.root_of(own) or worktree)
        if _is_linked(own, users):
            yield module, users, own


def _is_linked(own: Path, users: Path) -> bool:
    target = _target(own)
    return target is not None and target.parent == Path(os.path.realpath(refs.common_dir(users)), "worktrees")


def _target(own: Path) -> Path | None:
    """The folder of git that the link of a submodule leads to, if there is such a link and such a folder."""
    if (own / ".git").is_symlink() or own.is_symlink():
        return None
    with suppress(OSError):
        target = Path(os.path.realpath(confinement.git_dir(own)))
        return target if target.is_dir() else None
    return None


def _relink(users: Path, own: Path, root: Path) -> None:
    """Puts the link to the submodule's repository back, if that knows the worktree."""
    untrusted_files.remove(own / ".git", root=root)
    for admin in sorted(Path(os.path.realpath(refs.common_dir(users)), "worktrees").glob("*")):
        place = untrusted_files.read_or_empty(admin / "gitdir", root=admin)
        if os.path.realpath(os.fsdecode(place.rstrip(b"\n"))) == os.path.realpath(own / ".git"):
            untrusted_files.write_bytes(own / ".git", b"gitdir: " + os.fsencode(admin) + b"\n", root=root)


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
        yield f"{path} is a submodule that you have not initialised: git submodule update --init {shlex.quote(path)}"
        return
    if refs.resolve(users, after) is None:
        raise UserError(
            f'The work names commit {after[:12]} of the submodule "{path}", which its repository does not have',
            hint=f"git -C {shlex.quote(str(users))} fetch origin {after}",
        )
    yield from (f"{path}: {note}" for note in publish(users, before, after, session))
    yield f"{path} has a new commit, {after[:12]}: git submodule update {shlex.quote(path)}"
    if _has_ref(users, after, "refs/remotes"):
        return
    if not _has_ref(users, after, "refs/heads"):
        at = refs.resolve(users, f"refs/heads/{branch}")
        behind = at is None or refs.is_ancestor(users, at, after)
        if not behind or not refs.move_ref(users, f"refs/heads/{branch}", after, at or refs.ZERO):
            raise UserError(
                f'No branch of the submodule "{path}" has commit {after[:12]}, and "{branch}" is taken there',
                hint=f"git -C {shlex.quote(str(users))} branch {branch}-work {after}",
            )
        yield f"others cannot get it before it is pushed: git -C {shlex.quote(path)} push origin {branch}"


def _changed(top: Path, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """The submodules that differ between two commits or trees: path, and both of the commits that are named."""
    fields = git_names("diff", "--raw", "--no-abbrev", "--no-renames", ALL_SUBMODULES, "-z", old, new, cwd=top)
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
