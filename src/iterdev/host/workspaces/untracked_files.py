"""Untracked files of the checkout that a worktree needs, as copies or links.

Git ignores them in the worktree, so that they are neither committed nor reported as changes. What an agent writes and
git ignores is not part of its work, and must not be there when tests are to show that the work is complete.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.host import untrusted_files
from iterdev.host.git import command, scans, worktrees

Key = Literal["copy", "link"]
IGNORED = Path(untrusted_files.PRIVATE, "ignored")
"""Beside a worktree: the ignored files that were there before an agent came."""
CACHES = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})
CACHE_MARKS = ("CACHEDIR.TAG", "CMakeCache.txt", "meson-info", "pyvenv.cfg")
"""What a tool puts into a folder that it can make again."""
IS_TRACKED = ", which have it already, from git"


def bring(top: Path, worktree: Path, *, copies: Iterable[str], links: Iterable[str]) -> None:
    """Must be called on a new worktree, whose files are all tracked."""
    (worktree.parent / command.EXCLUDES).unlink(missing_ok=True)
    brought = [part for name in copies for part in _copy(top, worktree, _checked(top, name, "copy"))]
    for name in links:
        place = worktree / _checked(top, name, "link")
        if os.path.lexists(place):
            raise _problem(UserError, name, "link", IS_TRACKED)
        with _folder_of(place, worktree, name, "link") as folder:
            os.symlink(top / name, place.name, dir_fd=folder)
        brought.append(name)
    _remember_links(worktree, [os.fsencode(top / name) for name in links])
    ignore(worktree, brought)


def _remember_links(worktree: Path, targets: Iterable[bytes]) -> None:
    """Files behind these links may be read although they are outside of the workspace."""
    if found := list(targets):
        path = worktree.parent / untrusted_files.PRIVATE / untrusted_files.LINKS
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\0".join(found))


@contextmanager
def _folder_of(place: Path, worktree: Path, name: str, key: Key) -> Iterator[int]:
    """The folder that a file is brought to, which is never reached by a link out of the worktree."""
    try:
        with untrusted_files.opened_folder(place.parent, worktree) as folder:
            yield folder
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.ELOOP, errno.ENOTDIR}:
            raise
        raise _problem(HostError, name, key, ", and a link in the repository leads outside of them") from error


def ignore(worktree: Path, names: Iterable[str]) -> None:
    """Makes git ignore further files in this worktree and nowhere else, in addition to the user's global patterns."""
    patterns = worktree.parent / command.EXCLUDES
    known = patterns.read_bytes().splitlines() if patterns.exists() else _users_patterns(worktree)
    new = [os.fsencode("/" + re.sub(r"[][*?\\ ]", r"\\\g<0>", name)) for name in sorted(names)]
    if added := [line for line in new if line not in known]:
        patterns.parent.mkdir(exist_ok=True)
        patterns.write_bytes(b"\n".join([*known, *added]) + b"\n")


def _users_patterns(worktree: Path) -> list[bytes]:
    own = command.users_excludes(worktree)
    return own.read_bytes().splitlines() if own.is_file() else []


def visible(worktree: Path) -> frozenset[str]:
    """The untracked files that git does not ignore; of a folder with nothing else in it, only the folder."""
    options = ("--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
    return frozenset(command.git_names("ls-files", *options, cwd=worktree))


@contextmanager
def ignoring_new_files(worktree: Path) -> Iterator[None]:
    """What appears in the worktree meanwhile is no work: git ignores it."""
    seen = visible(worktree)
    yield
    ignore(worktree, visible(worktree) - seen)


@contextmanager
def restoring_tracked_files(worktree: Path) -> Iterator[None]:
    """What is written to tracked files meanwhile is undone, unless they had been changed before."""
    changed = _changed(worktree)
    yield
    if written := _changed(worktree) - changed:
        options = ("--pathspec-from-file=-", "--pathspec-file-nul")
        command.git("checkout", "--quiet", *options, cwd=worktree, stdin="\0".join(sorted(written)))


def _changed(worktree: Path) -> frozenset[str]:
    return frozenset(command.git_names("diff-files", "--name-only", "-z", cwd=worktree))


def note_ignored(worktree: Path) -> None:
    """To be called before an agent comes."""
    path = worktree.parent / IGNORED
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\0".join(map(os.fsencode, sorted(_ignored(worktree)))))


def new_ignored(worktree: Path) -> list[str]:
    """The ignored files that came since, apart from what tools cache."""
    path = worktree.parent / IGNORED
    if not path.exists() or not worktree.is_dir():
        return []
    known = set(map(os.fsdecode, path.read_bytes().split(b"\0")))
    caches: dict[Path, bool] = {}
    return sorted(name for name in _ignored(worktree) - known if not _is_cached(worktree, Path(name).parent, caches))


def remove_new_ignored(worktree: Path) -> None:
    """They are in no commit, so that tests which need them would fail for everybody else."""
    for name in new_ignored(worktree):
        untrusted_files.remove(worktree / name, root=worktree)
        for folder in (worktree / name).relative_to(worktree).parents:
            if folder == Path() or not untrusted_files.remove_empty(worktree / folder, root=worktree):
                break


def _ignored(worktree: Path) -> set[str]:
    """The ignored files that are there, apart from those in folders that tools cache in."""
    known = worktrees.known_ignored(worktree)
    if known is not None:
        kept = (name for name in known if not CACHES.intersection(name.split("/")[:-1]))
        return {os.fsencode(name).decode("utf-8", "backslashreplace") for name in kept}
    found: set[str] = set()
    for name in scans.scan(worktree).ignored:
        folder = name.endswith("/")
        if not CACHES.isdisjoint(Path(name).parts if folder else Path(name).parent.parts):
            continue
        if folder:
            found.update(_inside(worktree, name))
        elif os.path.lexists(worktree / name):
            found.add(name)
    return found


def _inside(worktree: Path, folder: str) -> Iterator[str]:
    """The files in an ignored folder; of a repository in it, only the folder. No link is followed."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(worktree / folder) as entries:
        for entry in entries:
            name = f"{folder}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif os.path.lexists(Path(entry.path, ".git")):
                yield f"{name}/"
            elif entry.name not in CACHES:
                yield from _inside(worktree, f"{name}/")


def _is_cached(worktree: Path, folder: Path, known: dict[Path, bool]) -> bool:
    if folder == Path():
        return False
    if folder not in known:
        marked = any(os.path.lexists(worktree / folder / mark) for mark in CACHE_MARKS)
        known[folder] = marked or _is_cached(worktree, folder.parent, known)
    return known[folder]


def git_variables(worktree: Path) -> dict[str, str]:
    """The variables with which an agent's own git ignores the same files."""
    patterns = worktree.parent / command.EXCLUDES
    if not patterns.exists():
        return {}
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": str(patterns)}


def _checked(top: Path, name: str, key: Key) -> str:
    plain = os.path.normpath(name)
    if Path(plain).parts[:1] in {(), (os.sep,), ("..",), (".git",)}:
        raise _problem(UserError, name, key, " but is no path inside of the repository")
    if not (top / plain).exists():
        raise _problem(HostError, name, key, " but does not exist")
    return plain


def _problem(error: type[IterdevError], name: str, key: Key, problem: str) -> IterdevError:
    done = {"copy": "copied", "link": "linked"}[key]
    hint = f"fix `{key}` under [project] in iterdev.toml"
    return error(f'"{name}" is to be {done} into worktrees{problem}', hint=hint)


def _copy(top: Path, worktree: Path, name: str) -> Iterator[str]:
    """Copies what is not there, and yields it; of a folder with tracked files only the others are copied."""
    source, target = top / name, worktree / name
    if source.is_dir() and target.is_dir():
        for child in sorted(source.iterdir()):
            if child.is_dir() or not os.path.lexists(target / child.name):
                yield from _copy(top, worktree, f"{name}/{child.name}")
        return
    if os.path.lexists(target):
        raise _problem(UserError, name, "copy", IS_TRACKED)
    with _folder_of(target, worktree, name, "copy") as folder:
        # The folder as it was opened: no link can be put in its place meanwhile.
        place = Path("/proc/self/fd", str(folder), target.name)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True)
        else:
            shutil.copy2(source, place)
    yield name
