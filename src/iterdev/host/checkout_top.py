"""The top of the checkout that a folder is in. Every command asks, so git is started only where it might object."""

import os
import stat
from pathlib import Path

LARGEST = 65_536
"""Bytes of settings that are looked at."""
ON_BRANCH = b"ref: refs/heads/"
HARMLESS = {"bare": "false", "repositoryformatversion": "0", "worktree": None}
"""Settings, in any section, that may be in an ordinary repository only with this value, or not at all."""
SPECIAL_SECTIONS = ("extensions", "include", "includeif")


def top_level(folder: Path) -> Path:
    """A linked worktree is a checkout of its own. Raises `UserError` if there is none, `HostError` if git refuses."""
    if top := plain_top(folder):
        return top
    from iterdev.host.git import checkout  # noqa: PLC0415 - see above

    return checkout.top_level(folder)


def git_folder(top: Path) -> Path | None:
    """Git's folder of the main checkout of an ordinary repository; None leaves the question to git."""
    return top / ".git" if plain_top(top) == top else None


def plain_top(folder: Path) -> Path | None:
    """The top, where git would say the same for certain: the nearest folder above with an ordinary `.git` in it.

    None for all else: no repository, a bare one, a linked worktree, a submodule, a repository of another owner or that
    goes on to another file system, and one whose settings may lead elsewhere or may be wrong.
    """
    try:
        place = folder.resolve()
        device = place.stat().st_dev
        while not os.path.lexists(git := place / ".git"):
            # Git's own folders, and bare repositories, have a file of that name.
            if os.path.lexists(place / "HEAD") or place == place.parent:
                return None
            place = place.parent
            if place.stat().st_dev != device:
                return None
        return place if _is_own(place) and _is_own(git) and _is_ordinary(git) else None
    except (OSError, ValueError):
        return None


def _is_own(folder: Path) -> bool:
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _is_ordinary(git: Path) -> bool:
    """Whether git would take the folder for its own, and the one above it for the checkout."""
    if os.path.lexists(git / "commondir"):
        return False
    with (git / "HEAD").open("rb") as head, (git / "config").open("rb") as config:
        begins, settings = head.read(len(ON_BRANCH)), config.read(LARGEST + 1)
    if begins != ON_BRANCH or len(settings) > LARGEST or not all((git / name).is_dir() for name in ("objects", "refs")):
        return False
    return all(map(_is_harmless, settings.decode().lower().split("\n")))


def _is_harmless(line: str) -> bool:
    """Whether a line of git's settings can be read in one way only, and does not concern where the checkout is."""
    line = line.strip()
    if not line or line.startswith(("#", ";")):
        return True
    if line.startswith("["):
        section, _, name = line[1:-1].partition(" ")
        is_simple = not name or (len(name) > 1 and name[0] + name[-1] == '""' and not set(name[1:-1]) & set('"\\[]'))
        return line.endswith("]") and is_simple and section.isalnum() and section not in SPECIAL_SECTIONS
    name, sign, value = map(str.strip, line.partition("="))
    is_simple = bool(sign) and name.replace("-", "").isalnum() and not set(value) & set('"\\#;')
    return is_simple and HARMLESS.get(name, value) == value
