"""The user's checkout: where it is, what git says of it, and noticing changes while agents work."""

import re
import shlex
import time
from pathlib import Path
from threading import Lock

from iterdev.core.errors import HostError, UserError
from iterdev.host.checkout_top import git_folder
from iterdev.host.folder_stamp import FolderStamp, file_stamp, folder_stamp
from iterdev.host.git import refs
from iterdev.host.git.command import git, git_names

STATUS = ("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z")
LONG = 0.1
REST = 20
"""The pause after a longer one, as a multiple of its duration."""
IGNORED = "!! "
BRANCH = "   branch "
"""What stands before the name of a branch, where status has two letters."""


class NotInRepository(UserError):
    """The folder is in no checkout of a git repository."""


def top_level(folder: Path) -> Path:
    """The top of the checkout that the folder is in; a linked worktree is a checkout of its own."""
    found = git("rev-parse", "--show-toplevel", cwd=folder, accept=(0, 128))
    if found.returncode:
        if "dubious ownership" in found.stderr:
            named = re.search("repository at '(.+)'", found.stderr)
            place = named[1] if named else str(folder)
            trust = f"git config --global --add safe.directory {shlex.quote(place)}"
            raise HostError(f'git does not trust "{place}"', hint=trust)
        about = git("rev-parse", "--is-inside-git-dir", "--is-bare-repository", cwd=folder, accept=(0, 128))
        if "true" in about.stdout.split():
            raise _without_files(folder)
        raise NotInRepository(f'"{folder}" is not in a git repository', hint="cd into one, or run `git init`")
    return Path(found.stdout.rstrip("\n"))


def _without_files(folder: Path) -> UserError:
    """The folder is in git's own part of a repository; a bare one has no other part."""
    found = Path(git("rev-parse", "--absolute-git-dir", cwd=folder).stdout.rstrip("\n"))
    if git("rev-parse", "--is-bare-repository", cwd=folder).stdout.strip() != "true":
        return UserError(f'"{folder}" is inside of git\'s own folder', hint=f"cd {shlex.quote(str(found.parent))}")
    if there := next((path for path in checkouts(folder)[1:] if path.is_dir()), None):
        hint = f"cd {shlex.quote(str(there))}"
        return UserError(f'"{folder}" has no files to work on: its repository "{found}" is a bare one', hint=hint)
    # git names the branch of a new worktree after its folder.
    name = f"{'-'.join(found.stem.split()).lstrip('.')}-work"
    bare, work = (shlex.quote(str(path)) for path in (found, found.parent / name))
    return UserError(
        f'"{found}" is a bare repository, without files to work on',
        hint=f"git -C {bare} worktree add {work} && cd {work}",
    )


def status(top: Path, *more: str) -> list[str]:
    """What differs from HEAD in a checkout: two letters, a space and the name for each file. Nothing is changed."""
    return git_names(*STATUS, *more, cwd=top)


def checkouts(top: Path) -> list[Path]:
    """All checkouts of the repository, the main one first, also those whose folder is gone."""
    entries = git_names("worktree", "list", "--porcelain", "-z", cwd=top)
    return [Path(entry.removeprefix("worktree ")) for entry in entries if entry.startswith("worktree ")]


def main_checkout(top: Path) -> Path:
    """The checkout that linked worktrees of the repository belong to."""
    return top if git_folder(top) else checkouts(top)[0]


def uncommitted(top: Path) -> list[str]:
    """Names of changed files, and of untracked files and folders that are not ignored."""
    listed = git_names("status", "--porcelain", "--untracked-files=normal", "--no-renames", "-z", cwd=top)
    return [entry[3:] for entry in listed]


def login_settings(top: Path) -> list[tuple[str, str]]:
    """The settings of git that may hold a password, by their names: addresses of remotes, and headers."""
    wanted = r"^(remote\..*url|url\..*insteadof|http\..*extraheader)$"
    listed = git("config", "-z", "--get-regexp", wanted, cwd=top, accept=(0, 1)).stdout.split("\0")
    return [(name, value) for name, _, value in (entry.partition("\n") for entry in listed)]


def exclude(top: Path, pattern: str) -> None:
    """Makes git ignore our files, by the one file of patterns that is never committed."""
    path = refs.common_dir(top) / "info" / "exclude"
    try:
        text = path.read_bytes() if path.exists() else b""
        if pattern.encode() not in text.splitlines():
            path.parent.mkdir(parents=True, exist_ok=True)
            separator = b"\n" if text and not text.endswith(b"\n") else b""
            path.write_bytes(b"%s%s%s\n" % (text, separator, pattern.encode()))
    except OSError as error:
        hint = "make the repository writable, then try again"
        raise HostError(f'Cannot write "{path}": {error.strerror}', hint=hint) from error


def init(top: Path, branch: str) -> None:
    git("init", "--quiet", f"--initial-branch={branch}", cwd=top)


def short_log(top: Path, ref: str) -> str:
    """One line per commit."""
    return git("log", "--oneline", "--no-decorate", ref, cwd=top).stdout


class CheckoutWatch:
    """Notices when the user's checkout changes, and never changes it.

    Git is asked again only if a stamp says that something may have changed: of a file, of git's index or settings, or
    of what git ignores.
    """

    def __init__(self, top: Path, long: float = LONG) -> None:
        """`long`: the seconds that a look may take without a pause after it."""
        self._top, self._common, self._long = top, refs.common_dir(top), long
        own = git_folder(top) or Path(git("rev-parse", "--absolute-git-dir", cwd=top).stdout.rstrip("\n"))
        names = ("config", "info/exclude", "info/attributes", "info/sparse-checkout")
        self._git_files = (
            own / "index",
            own / "HEAD",
            own / "config.worktree",
            *(self._common / name for name in names),
        )
        self._lock = Lock()
        self._branches_stamp: tuple[object, ...] = ()
        self._branches: list[str] = []
        self._stamp: tuple[FolderStamp, tuple[object, ...]] | None = None
        self._ignored: frozenset[str] = frozenset()
        self._rests_until = 0.0
        self._omitted = False
        """Whether there was a pause instead of the last look."""
        self._seen = self._look()

    def changes(self, *, last: bool = False) -> list[str]:
        """Files and branches that changed since the last call; agents must not touch them.

        After a look that takes long there is a pause, so that a large checkout does not keep the machine busy: what
        changes meanwhile is told by the next look; the `last` call makes up for one that was left out.
        """
        with self._lock:
            began = time.monotonic()
            if not self._omitted if last else began < self._rests_until:
                self._omitted |= not last
                return []
            self._omitted = False
            before, self._seen = self._seen, self._look()
            taken = time.monotonic() - began
            self._rests_until = began + REST * taken if taken > self._long else 0.0
        return sorted(entry[3:] for entry in self._seen - before)

    def _look(self) -> frozenset[str]:
        branches = refs.branches_stamp(self._top)
        files = self._files(branches)
        if branches != self._branches_stamp:
            self._branches_stamp, self._branches = branches, refs.branches(self._top)
        return frozenset((*files, *(f"{BRANCH}{branch}" for branch in self._branches)))

    def _files(self, branches: tuple[object, ...]) -> list[str]:
        """What git says of the files, as last time if nothing has changed since."""
        before, now = self._stamp, self._take_stamp(branches)
        if before and now and before[1] == now[1] and before[0].still_holds(now[0], self._common):
            return [entry for entry in self._seen if not entry.startswith(BRANCH)]
        # The stamp is older than what git says: what changes meanwhile is found the next time.
        listed = git_names(*STATUS, "--ignored=matching", cwd=self._top)
        self._ignored = frozenset(entry[3:-1] for entry in listed if entry.startswith(IGNORED) and entry.endswith("/"))
        self._stamp = (now[0].without(self._ignored), now[1]) if now else None
        return [entry for entry in listed if not entry.startswith(IGNORED)]

    def _take_stamp(self, branches: tuple[object, ...]) -> tuple[FolderStamp, tuple[object, ...]] | None:
        others = (*map(file_stamp, self._git_files), *branches)
        folder = folder_stamp(self._top, self._ignored)
        return (folder, others) if folder else None
