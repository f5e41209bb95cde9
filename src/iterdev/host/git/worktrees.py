"""Worktrees: added, reset, read and removed.

Git keeps a folder for each (`.git/worktrees/NAME`), which says where the worktree is; the file `.git` of the worktree
leads back to it. An agent can damage both. Git fails when it finds a worktree half registered, so that one process at a
time registers and removes them.
"""

import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host import untrusted_files
from iterdev.host.folder_stamp import FolderStamp, file_stamp, folder_stamp
from iterdev.host.git import commits, confinement, index, object_import, scans, submodules
from iterdev.host.git.command import GitFailed, git, git_names
from iterdev.host.git.confinement import common_dir as common_dir_of
from iterdev.host.git.confinement import git_dir
from iterdev.host.git.index import ADD_ALL, Tracked
from iterdev.host.git.refs import common_dir, detach, repository_lock, resolve
from iterdev.host.git.scans import Scan, started_programs

INITIALIZING = "initializing"
"""Why git locks a worktree that it is adding; a git that is killed leaves the lock behind."""
LARGEST_HEAD = 4096
"""Bytes of the name of a branch, or of a commit id."""
UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE")
"""Files of an operation that is not finished; `git checkout` ends it."""
ABANDONED = 60.0
"""Seconds after which no git can still be adding a worktree without having said where."""


def add(top: Path, path: Path, commit: str) -> None:
    _register(top, path, commit)
    try:
        git("reset", "--quiet", "--hard", cwd=path)
    except GitFailed as error:
        hint = "set ITERDEV_HOME to a folder with free space that you may write to"
        raise HostError(f'Cannot create the workspace "{path}": {error.message}', hint=hint) from error
    index.remember_settings(path)
    index.remember(path)
    submodules.check_out(top, path)


def _register(top: Path, path: Path, commit: str) -> None:
    """Adds a worktree without files. Forced twice, it also replaces one that is locked and gone."""
    options = ("--quiet", "--force", "--force", "--no-checkout", "--detach")
    with repository_lock(top):
        git("worktree", "add", *options, str(path), commit, cwd=top)


def remove(top: Path, path: Path) -> None:
    make_writable(path)
    with repository_lock(top):
        git("worktree", "remove", "--force", "--force", str(path), cwd=top, accept=(0, 128))


def forget_deleted(top: Path, home: Path) -> None:
    """Lets the repository forget the worktrees below `home` that are gone, also locked ones; the user's stay."""
    with repository_lock(top):
        for name in forgotten(top, home):
            shutil.rmtree(common_dir(top) / "worktrees" / name, ignore_errors=True)
    submodules.prune(top)


def forgotten(top: Path, home: Path) -> list[str]:
    """The names by which the repository knows worktrees below `home` that are gone, and those never completed."""
    return [admin.name for admin in _admin_folders(top) if _is_gone(admin, home)]


def _is_gone(admin: Path, home: Path) -> bool:
    place = _place(admin)
    return _is_below(place, home) and not place.exists() if place else _is_abandoned(admin)


def _admin_folders(top: Path) -> list[Path]:
    """Git's folders of all linked worktrees."""
    return sorted((common_dir(top) / "worktrees").glob("*"))


def _place(admin: Path) -> Path | None:
    """Where git's folder says that the link of its worktree is."""
    with suppress(OSError):
        return admin / os.fsdecode(untrusted_files.read_bytes(admin / "gitdir", root=admin, most=LARGEST_HEAD)).rstrip(
            "\n"
        )
    return None


def _is_below(place: Path, home: Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(home))


def _is_abandoned(admin: Path) -> bool:
    with suppress(OSError):
        lock = admin / "locked"
        return lock.read_bytes().strip() == INITIALIZING.encode() and lock.stat().st_mtime < time.time() - ABANDONED
    return False


def reset(top: Path, path: Path, commit: str) -> None:
    """Makes a worktree exactly the commit again; ignored files stay, they are what `setup` made."""
    _remove_links(path)
    known = known_commit(path)
    index.put_back(path)
    # Where nothing was untracked, something is only if it was ignored before.
    changed = commits.changed_files(top, known, commit) if known else ()
    ignored_before = None if not known or any(name.endswith(".gitignore") for name in changed) else scans.last(path)
    if not known or not _moved(top, path, known, commit):
        make_writable(path)
        git("checkout", "--quiet", "--force", "--detach", commit, cwd=path)
        git("clean", "--quiet", "-ffd", cwd=path)
    elif any(name.endswith(".gitignore") for name in changed):
        git("clean", "--quiet", "-ffd", cwd=path)
    index.remember(path)
    submodules.check_out(top, path)
    remember(path, commit, folder_stamp(path))
    scans.after_own_change(path, ignored_before)


def _moved(top: Path, path: Path, known: str, commit: str) -> bool:
    """Moves a worktree that is exactly a commit to another one. Git looks only at the files in which they differ.

    False if git cannot, such as for an ignored file in the place of one of the commit, or a folder that is read-only.
    """
    admin = git_dir(path)
    if any(os.path.lexists(admin / name) for name in UNDER_WAY):
        return False
    moved = git("read-tree", "-m", "-u", known, commit, cwd=path, accept=(0, 128))
    if moved.returncode or "unable to unlink" in moved.stderr:
        return False
    set_head(top, path, commit)
    return True


class _Known(Struct, frozen=True):
    """What a worktree is known to be."""

    commit: str
    files: FolderStamp | None
    """None if there are too many: then it is known until a program is started in the worktree."""
    index: tuple[int, ...]
    programs: int
    """How many had been started until then; negative while one was running."""


_known: dict[Path, _Known] = {}
"""By worktree. Its files are the commit's, and so is its index, for as long as the stamps hold."""


def remember(worktree: Path, commit: str, files: FolderStamp | None) -> None:
    """Records that a worktree was exactly the commit when the stamp of its files was taken."""
    _known[worktree] = _Known(commit, files, file_stamp(git_dir(worktree) / "index"), started_programs(worktree))


def known_commit(worktree: Path) -> str:
    """The commit that a worktree is known to be, its index too; empty if it has to be looked at."""
    known = _known.get(worktree)
    if known is None:
        return ""
    try:
        stamp = file_stamp(git_dir(worktree) / "index")
    except (OSError, ValueError):
        return ""
    if stamp != known.index:
        return ""
    if known.files is None:
        return known.commit if started_programs(worktree) == known.programs >= 0 else ""
    files = folder_stamp(worktree)
    return known.commit if files and known.files.still_holds(files, worktree.parent) else ""


def known_ignored(worktree: Path) -> list[str] | None:
    """The files that are not in the commit that a worktree is known to be; None if it has to be looked at."""
    known = _known.get(worktree)
    if known is None or known.files is None or not known_commit(worktree):
        return None
    tracked = index.names(worktree)
    return None if tracked is None else [name for name in known.files.names if name not in tracked]


def write_tree(worktree: Path) -> str:
    """The tree of everything in a worktree that git does not ignore."""
    stage(worktree)
    seen = scans.last(worktree) if is_worktree(worktree) else None
    tree = git("write-tree", cwd=worktree).stdout.strip()
    if is_worktree(worktree):
        # It notes the trees in the index, which otherwise would look like written by an agent.
        index.remember(worktree)
        scans.after_own_change(worktree, seen)
    object_import.import_new(worktree)
    return tree


def restore_staged(worktree: Path, commit: str) -> None:
    """Makes the files of a worktree what they were when they were staged; ignored files stay.

    If they were those of a commit, git is first asked whether they still are, which they mostly are.
    """
    if commit and is_untouched(worktree, commit):
        return
    index.put_back(worktree)
    git("restore", "--worktree", "--", ".", cwd=worktree, accept=(0, 1))
    git("clean", "--quiet", "-ffd", cwd=worktree)
    scans.after_own_change(worktree, None)


def staged(worktree: Path) -> str:
    """Puts everything into the index, unless it is there already: then the commit is returned that the worktree is."""
    commit = known_commit(worktree)
    if not commit:
        stage(worktree)
    return commit


def stage(worktree: Path) -> None:
    """Puts everything into the index that git does not ignore, or that was added before all the same."""
    found = _own_index(worktree)
    seen = _new_scan(worktree)
    added = _add(worktree, seen)
    if added.returncode or "embedded git repository" in added.stderr:
        _remove_obstacles(worktree)
        git(*ADD_ALL, cwd=worktree)
        seen = None
    if is_worktree(worktree):
        if index.add_forced(worktree, found.names):
            # They are no ignored files any more.
            seen = None
        index.remember(worktree)
        scans.after_own_change(worktree, seen)


def _new_scan(worktree: Path) -> Scan | None:
    try:
        return scans.new_scan(worktree) if is_worktree(worktree) else None
    except GitFailed:
        return None


def _add(worktree: Path, seen: Scan | None) -> subprocess.CompletedProcess[str]:
    """Adds the files that a scan found; without one that names them all, git looks at every file itself."""
    if seen is None or not seen.can_be_listed:
        return git(*ADD_ALL, cwd=worktree, accept=(0, 1, 128))
    options, names = ("--pathspec-from-file=-", "--pathspec-file-nul"), seen.unstaged
    if not names:
        return subprocess.CompletedProcess((), 0, "", "")
    return git("--literal-pathspecs", *ADD_ALL, *options, cwd=worktree, stdin="\0".join(names), accept=(0, 1, 128))


def is_worktree(folder: Path) -> bool:
    """Whether it is a linked worktree, and not the checkout that a repository was made in."""
    return (folder / ".git").is_file()


def _own_index(worktree: Path) -> Tracked:
    try:
        return index.put_back(worktree) if is_worktree(worktree) else Tracked()
    except GitFailed:
        _remove_obstacles(worktree)
        return Tracked()


def _remove_obstacles(worktree: Path) -> None:
    """Removes the lock of a git that was killed and a damaged index, and makes repositories inside plain folders.

    Git would record only the commit id of such a repository, and none of its files.
    """
    file = worktree / git("rev-parse", "--git-path", "index", cwd=worktree).stdout.rstrip("\n")
    delete(file.with_name("index.lock"))
    if git("reset", "--quiet", cwd=worktree, accept=(0, 128)).returncode:
        delete(file)
        git("reset", "--quiet", cwd=worktree)
    listed = ("ls-files", "--others", "--exclude-standard", "-z")
    while inner := [name for name in git_names(*listed, cwd=worktree) if name.endswith("/")]:
        for name in inner:
            delete(worktree / name / ".git")


def delete(path: Path, *, ignore_errors: bool = False) -> None:
    """Deletes a file, a link or a whole folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            shutil.rmtree(path)
            return
        make_writable(path)
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def make_writable(folder: Path) -> None:
    """Gives its owner all rights on every folder: nothing in a read-only one, such as Go makes, can be deleted."""
    pending = [str(folder)]
    while pending:
        place = pending.pop()
        with suppress(OSError):
            mode = os.lstat(place).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(place, stat.S_IMODE(mode) | stat.S_IRWXU)  # noqa: PTH101 - called for every folder
            with os.scandir(place) as entries:
                pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def relink(top: Path, worktree: Path, base: str) -> None:
    """Makes a folder the worktree of the repository that it was: with its link, and git's folder behind that.

    Without the link, git would search the parent folders for a repository. If the repository has forgotten the
    worktree, or what it knows of it is damaged, it becomes a new one of it, at the base. No file of the work changes.
    """
    if is_linked(top, worktree):
        return
    link = worktree / ".git"
    if _claim(top, worktree):
        return
    delete(link)
    for admin in _admin_folders(top):
        if (place := _place(admin)) and os.path.realpath(place) == os.path.realpath(link):
            untrusted_files.write_bytes(link, _link_to(admin), root=worktree)
            if is_linked(top, worktree):
                return
            delete(link)
            shutil.rmtree(admin)
    # In the sandbox, agents can write beside the worktree, but not in its private folder.
    private = worktree.parent / untrusted_files.PRIVATE
    new = (private if private.is_dir() else worktree.parent) / f"{worktree.name}.new"
    delete(new)
    _register(top, new, base)
    (new / ".git").rename(link)
    new.rmdir()
    with repository_lock(top):
        git("worktree", "repair", str(worktree), cwd=top)
    git("reset", "--quiet", cwd=worktree)
    index.remember(worktree)


def adopt(worktree: Path, base: str) -> None:
    """Takes over what an agent in the sandbox did with git; without a sandbox there is nothing to do.

    A HEAD that was deleted or replaced by a link is restored to the base; git's other files cannot be deleted in the
    sandbox. Repositories that were made inside of the worktree are made plain folders.
    """
    if not confinement.is_confined(worktree) or not worktree.is_dir():
        return
    store = confinement.store(worktree)
    _remove_links(worktree)
    if not (store.admin / "HEAD").is_file():
        untrusted_files.remove(store.admin / "HEAD", root=store.admin)
        untrusted_files.write_bytes(store.admin / "HEAD", f"{base}\n".encode(), root=store.admin)
    submodules.disarm(worktree, store.common, store.admin)
    object_import.import_new(worktree)


def _remove_links(worktree: Path) -> None:
    """Git itself makes none in its folder of a worktree; with one, what it writes would be lost with the sandbox."""
    if confinement.is_confined(worktree):
        admin = confinement.store(worktree).admin
        for folder, folders, files in os.walk(admin):
            for path in (Path(folder, name) for name in (*folders, *files)):
                if path.is_symlink():
                    untrusted_files.unlink(path, root=admin)


def _claim(top: Path, worktree: Path) -> bool:
    """Corrects where git's folder says that the worktree is, if it leads there and no other worktree does."""
    with suppress(OSError, ValueError):
        admin = Path(os.path.realpath(git_dir(worktree)))
        place = _place(admin)
        if place and not os.path.lexists(place) and admin in map(Path.resolve, _admin_folders(top)):
            untrusted_files.write_bytes(admin / "gitdir", _name_of(worktree), root=admin)
            return is_linked(top, worktree)
    return False


_links: dict[tuple[Path, Path], tuple[Path, tuple[object, ...]]] = {}
"""By repository and worktree that are linked: git's folder of it, and the stamps of the files that say so."""


def is_linked(top: Path, worktree: Path) -> bool:
    """Whether git would work in the worktree, and on nothing but this repository. Reading files is fast."""
    if (seen := _links.get((top, worktree))) and _link_stamps(worktree, seen[0]) == seen[1]:
        return True
    with suppress(OSError, ValueError):
        admin = git_dir(worktree)
        stamps = _link_stamps(worktree, admin)
        if _leads_to(top, worktree):
            _links[top, worktree] = admin, stamps
            return True
    return False


def _link_stamps(worktree: Path, admin: Path) -> tuple[object, ...]:
    names = ("commondir", "gitdir", "HEAD")
    return (file_stamp(worktree / ".git"), file_stamp(admin)[:2], *(file_stamp(admin / name) for name in names))


def _leads_to(top: Path, worktree: Path) -> bool:
    link, known = worktree / ".git", Path(os.path.realpath(common_dir(top)))
    try:
        if link.is_symlink() or not link.is_file():
            return False
        admin = Path(os.path.realpath(git_dir(worktree)))
        common, head = common_dir_of(admin), _head_text(admin)
    except (OSError, ValueError):
        return False
    place = _place(admin)
    return (
        admin.parent == known / "worktrees"
        and common == known
        and place is not None
        and os.path.realpath(place) == os.path.realpath(link)
        and bool(re.fullmatch(r"ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64}", head))
    )


def leads_somewhere(worktree: Path) -> bool:
    """Whether the link of a worktree leads to a repository that exists."""
    with suppress(OSError, ValueError):
        return git_dir(worktree).is_dir()
    return False


def follow(top: Path, old: Path, new: Path) -> None:
    """Has the repository know where a worktree is now, and the worktree where the repository is."""
    for admin in _admin_folders(top):
        if _place(admin) == old / ".git":
            untrusted_files.write_bytes(admin / "gitdir", _name_of(new), root=admin)
            untrusted_files.write_bytes(new / ".git", _link_to(admin), root=new)


def _link_to(admin: Path) -> bytes:
    """The content of the file by which a worktree leads to git's folder of it."""
    return b"gitdir: " + os.fsencode(admin) + b"\n"


def _name_of(worktree: Path) -> bytes:
    """The content of the file by which git's folder leads to the worktree."""
    return os.fsencode(worktree / ".git") + b"\n"


def head_of_deleted(top: Path, worktree: Path) -> str:
    """The commit of a worktree whose folder is gone; empty if the repository has forgotten it."""
    entries = iter(git_names("worktree", "list", "--porcelain", "-z", cwd=top))
    for entry in entries:
        if os.path.realpath(entry.removeprefix("worktree ")) == os.path.realpath(worktree):
            return next(entries).removeprefix("HEAD ")
    return ""


def head(worktree: Path) -> str:
    """The commit of a linked worktree; empty if it has none yet.

    Reading the file is a hundred times as fast as a process.
    """
    text = _head_text(git_dir(worktree))
    return (resolve(worktree, "HEAD") or "") if text.startswith("ref:") else text


def _head_text(admin: Path) -> str:
    return untrusted_files.read_bytes(admin / "HEAD", root=admin, most=LARGEST_HEAD).decode("utf-8").strip()


def set_head(top: Path, worktree: Path, commit: str) -> None:
    """Moves the HEAD of a worktree to the commit that was just made of its files; no file is changed."""
    admin = git_dir(worktree)
    if (admin / "MERGE_HEAD").exists():
        git("merge", "--quit", cwd=worktree)
    if confinement.is_confined(worktree):
        git("update-ref", "--no-deref", "HEAD", commit, cwd=worktree)
    else:
        detach(top, f"worktrees/{admin.name}/HEAD", commit)


def is_untouched(worktree: Path, commit: str) -> bool:
    """Whether a worktree is exactly the commit, apart from ignored files; one that git cannot read is not."""
    try:
        if head(worktree) != commit:
            return False
        if known_commit(worktree) == commit:
            return True
        index.put_back(worktree)
        found = scans.scan(worktree, commit)
        if found.changed:
            return False
    except GitFailed:
        return False
    remember(worktree, commit, found.files)
    return True


def restore_files(top: Path, worktree: Path, commit: str, names: Iterable[str]) -> None:
    """Puts files back to what they are in the commit, or removes those that are not in it."""
    stage(worktree)
    options = (f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
    git("restore", *options, cwd=worktree, stdin="\0".join(names))
    submodules.check_out(top, worktree)
    scans.after_own_change(worktree, None)
