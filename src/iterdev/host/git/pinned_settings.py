"""The git settings and hooks of a repository while an engine runs: those from its start count.

Without a sandbox, an agent can write `.git/config` and hooks. iterdev's own git runs no hooks at all, and of the
settings that start programs, or decide which changes are seen, it goes on to use the earlier ones. What changed is
told, because the user's own git will use it.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from msgspec import Struct

from iterdev.host.git.command import git, overrides
from iterdev.host.git.refs import common_dir

PINNED = re.compile(
    r"filter\..+\.(clean|smudge|process)|merge\..+\.driver|diff\..+\.(command|textconv)|diff\.external"
    r"|core\.(sshcommand|gitproxy|alternaterefscommand|askpass)|credential\.(.+\.)?helper"
    r"|core\.(excludesfile|attributesfile|filemode|symlinks|ignorecase|autocrlf|eol|sparsecheckout(cone)?)"
    r"|submodule\..+\.ignore|diff\.ignoresubmodules"
)
"""The settings that start programs, apart from those that iterdev's git never uses, or decide which changes it sees."""
NOTHING = {"driver": "false", "filemode": "true", "symlinks": "true", "eol": "native", "ignore": "none"}
"""What a setting that is new is replaced by, if an empty one has a meaning of its own: such a merge is a conflict."""
FILES = ("info/exclude", "info/attributes", "info/grafts")
IN_USE = frozenset(FILES[:2])
"""Git has no way to leave them out."""
SAMPLE = ".sample"
"""Hooks that git does not run."""
REPLACED = "refs/replace"
UNTOLD = ("branch.", "submodule.")
"""Settings that git itself changes when it works on branches and submodules."""

Settings = Mapping[str, tuple[str, ...]]


class Seen(Struct, frozen=True):
    stamp: tuple[object, ...]
    settings: Settings
    files: Mapping[str, object]
    """Hooks, and what else git reads of the repository."""


class PinnedSettings:
    """Use `pinned`."""

    def __init__(self, top: Path) -> None:
        self._common = Path(os.path.realpath(common_dir(top)))
        self._config = self._common / "config"
        self._lock = Lock()
        self._first = self._told = self._last = self._look()
        self._options: tuple[str, ...] = ()

    def options(self) -> tuple[str, ...]:
        """The options by which git uses the earlier settings; reading the stamp of a file is all that it costs."""
        if self._stamp() != self._last.stamp and self._lock.acquire(blocking=False):
            try:
                # Git is called meanwhile, which asks for the options again.
                self._last = self._look()
                self._options = tuple(_options(self._first.settings, self._last.settings))
            finally:
                self._lock.release()
        return self._options

    def changes(self) -> list[str]:
        """The names of settings and hooks that changed since the last call; values may be secrets."""
        before = self._told
        if self._stamp() == before.stamp and dict(_files(self._common)) == before.files:
            return []
        self._told = self._look()
        return sorted(
            [
                *(name for name in _different(before.settings, self._told.settings) if not name.startswith(UNTOLD)),
                *_different(before.files, self._told.files),
            ]
        )

    def _stamp(self) -> tuple[object, ...]:
        return _stamp(self._config)

    def _look(self) -> Seen:
        path, stamp = self._config, self._stamp()
        listed = git("config", "--file", str(path), "--includes", "--list", "-z", cwd=self._common, accept=(0, 1, 128))
        settings: dict[str, tuple[str, ...]] = {}
        for entry in filter(None, listed.stdout.split("\0")):
            name, _, value = entry.partition("\n")
            settings[name] = (*settings.get(name, ()), value)
        return Seen(stamp, settings, dict(_files(self._common)))


def told(changed: Sequence[str]) -> str:
    """What the user should know about settings and hooks that changed."""
    in_use = [name for name in changed if name in IN_USE]
    apart = f" (except {' and '.join(in_use)})" if in_use else ""
    return (
        f"git settings or hooks of your repository changed meanwhile: {', '.join(changed)}; this session does not use "
        f"them{apart}, but your own git will, so look at .git/config and .git/hooks"
    )


@contextmanager
def pinned(top: Path) -> Iterator[PinnedSettings]:
    """While it is open, the git commands of this process use the settings of the repository as they are now."""
    settings = PinnedSettings(top)
    overrides.append(settings.options)
    try:
        yield settings
    finally:
        overrides.remove(settings.options)


def _options(before: Settings, now: Settings) -> Iterator[str]:
    for name in _different(before, now):
        if PINNED.fullmatch(name):
            nothing = NOTHING.get(name.rpartition(".")[2], "")
            yield from ("-c", f"{name}={before[name][-1] if name in before else nothing}")


def _different(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def _files(common: Path) -> Iterator[tuple[str, object]]:
    yield from ((f"hook {name}", stamp) for name, stamp in _entries(common / "hooks"))
    yield from ((f"{REPLACED}/{name}", stamp) for name, stamp in _entries(common / REPLACED))
    yield from ((name, stamp) for name in FILES if (stamp := _stamp(common / name)))


def _entries(folder: Path) -> Iterator[tuple[str, object]]:
    try:
        with os.scandir(folder) as entries:
            yield from ((entry.name, _stamp(entry.path)) for entry in entries if not entry.name.endswith(SAMPLE))
    except OSError:
        return


def _stamp(path: str | Path) -> tuple[object, ...]:
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
