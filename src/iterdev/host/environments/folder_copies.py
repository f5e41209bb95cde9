"""Copies of a folder at another place: the paths that its files mention are replaced, everything else is shared.

A file is shared by a reflink where the file system can make one: it costs no space, and a write to one side does not
reach the other. Otherwise compiled and large files are hard links, and the others are copied, because an agent may
edit them in place.
"""

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from iterdev.host.untrusted_files import create, opened_folder

FICLONE = 0x40049409
LARGEST_TEXT = 1 << 20
"""Larger files are not searched for paths."""
LONGEST_SHEBANG = 127
"""Linux before 5.1 cuts a longer first line."""
COMPILED = (".pyc", ".so", ".a", ".o", ".node", ".wasm", ".dylib", ".exe", ".gz", ".zip", ".whl", ".png", ".jpg")


class File(Struct, frozen=True, array_like=True):
    """A file or symbolic link of a folder, with what shows whether it was changed."""

    path: str
    size: int
    modified: int
    target: str | None = None
    mentions: bool = False
    """Whether it contains a path that has to be replaced."""


class Listing(Struct, frozen=True):
    """What is in a folder; parents come before their children."""

    folders: tuple[str, ...] = ()
    files: tuple[File, ...] = ()


class Moves(Struct, frozen=True):
    """Which paths are replaced by which. A path counts only where its last name ends."""

    places: Mapping[str, str]

    def apply(self, content: bytes) -> bytes:
        if not self.places:
            return content
        forms = {form(old): form(new) for old, new in self.places.items() for form in (_quoted, os.fsencode)}
        return _pattern(forms).sub(lambda match: forms[match[0]], content)

    def apply_to(self, path: str) -> str:
        return os.fsdecode(self.apply(os.fsencode(path)))

    def mentioned_in(self, content: bytes) -> bool:
        forms = [form(old) for old in self.places for form in (_quoted, os.fsencode)]
        return bool(forms) and b"\0" not in content and _pattern(forms).search(content) is not None


def _quoted(path: str) -> bytes:
    """As in the URL of a file."""
    return quote(path).encode()


def _pattern(paths: Mapping[bytes, bytes] | list[bytes]) -> re.Pattern[bytes]:
    longest_first = sorted(paths, key=len, reverse=True)
    return re.compile(rb"(?<![\w.-])(?:" + b"|".join(map(re.escape, longest_first)) + rb")(?![\w.-])")


def listing(root: Path, moves: Moves, *, skip: Callable[[str], bool] = lambda _: False) -> Listing:
    """Lists a folder, and reads its small text files to see which of them mention a path that has to be replaced."""
    folders: list[str] = []
    files: list[File] = []
    for entry, path in _walk(root, ""):
        if skip(path):
            continue
        if entry.is_dir(follow_symlinks=False):
            folders.append(path)
            continue
        status = entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            files.append(File(path, 0, 0, target=str(Path(entry.path).readlink())))
        elif stat.S_ISREG(status.st_mode):
            files.append(File(path, status.st_size, status.st_mtime_ns, mentions=_mentions(entry.path, status, moves)))
    return Listing(tuple(folders), tuple(files))


def _walk(root: Path, prefix: str) -> Iterator[tuple[os.DirEntry[str], str]]:
    with os.scandir(root / prefix) as entries:
        children = sorted(entries, key=lambda entry: entry.name)
    for entry in children:
        path = f"{prefix}{entry.name}"
        yield entry, path
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, f"{path}/")


def _mentions(path: str, status: os.stat_result, moves: Moves) -> bool:
    if status.st_size > LARGEST_TEXT or path.endswith(COMPILED):
        return False
    with open(path, "rb") as file:  # noqa: PTH123 - called for every file of an environment
        return moves.mentioned_in(file.read())


def is_intact(root: Path, listed: Listing) -> bool:
    """Whether the files are as they were listed, except for those in which paths are replaced."""
    top = str(root)
    try:
        for file in listed.files:
            status = os.lstat(f"{top}/{file.path}")
            if file.target is not None:
                if not stat.S_ISLNK(status.st_mode):
                    return False
            elif not file.mentions and (status.st_size, status.st_mtime_ns) != (file.size, file.modified):
                return False
    except OSError:
        return False
    return True


def lay(source: Path, listed: Listing, target: Path, moves: Moves, *, root: Path, hard_links: bool = True) -> None:
    """Makes the copy at a target inside of the root, which programs of the workspace can write too.

    Without hard links, the copy shares nothing that a write in place could change.
    """
    for folder in listed.folders:
        with opened_folder(target / folder, root):
            pass
    share = Sharing(hard_links=hard_links)
    for folder, files in groupby(sorted(listed.files, key=_folder), key=_folder):
        with opened_folder(target / folder, root) as opened:
            for file in files:
                _lay_file(f"{source}/{file.path}", file, opened, moves, share)


def _folder(file: File) -> str:
    return os.path.dirname(file.path)  # noqa: PTH120 - called for every file of an environment


def _lay_file(old: str, file: File, folder: int, moves: Moves, share: "Sharing") -> None:
    name = os.path.basename(file.path)  # noqa: PTH119
    if file.target is not None:
        os.symlink(moves.apply_to(file.target), name, dir_fd=folder)
    elif file.mentions:
        _rewrite(old, name, folder, moves)
    else:
        share.file(old, name, folder, file)


def _rewrite(old: str, name: str, folder: int, moves: Moves) -> None:
    content = _runnable(moves.apply(Path(old).read_bytes()))
    with open(create(name, folder), "wb") as copy:  # noqa: PTH123
        copy.write(content)
        os.fchmod(copy.fileno(), stat.S_IMODE(os.stat(old).st_mode))  # noqa: PTH116 - a string


def _runnable(content: bytes) -> bytes:
    """Starts a script through the shell if the path of its interpreter is too long for the first line."""
    first, newline, rest = content.partition(b"\n")
    if not first.startswith(b"#!/") or len(first) <= LONGEST_SHEBANG or b"python" not in first:
        return content
    return b"#!/bin/sh\n'''exec' \"" + first[2:].strip() + b'" "$0" "$@"\n\' \'\'\'' + newline + rest


class Sharing:
    """Shares files in the cheapest way that the file system offers."""

    def __init__(self, *, hard_links: bool) -> None:
        self._hard_links = hard_links
        self._reflinks = hasattr(fcntl, "ioctl")

    def file(self, old: str, name: str, folder: int, listed: File) -> None:
        if self._reflinks and listed.size and self._reflink(old, name, folder, listed):
            return
        if self._hard_links and (listed.size > LARGEST_TEXT or old.endswith(COMPILED) or "/node_modules/" in old):
            with suppress(OSError):
                os.link(old, name, dst_dir_fd=folder)
                return
        _copy(old, name, folder, listed)

    def _reflink(self, old: str, name: str, folder: int, listed: File) -> bool:
        with open(old, "rb") as source, open(create(name, folder), "wb") as copy:  # noqa: PTH123
            try:
                fcntl.ioctl(copy.fileno(), FICLONE, source.fileno())
            except OSError:
                self._reflinks = False
            else:
                _keep_status(source.fileno(), copy.fileno(), listed)
        if not self._reflinks:
            os.unlink(name, dir_fd=folder)
        return self._reflinks


def _copy(old: str, name: str, folder: int, listed: File) -> None:
    with open(old, "rb", 0) as source, open(create(name, folder), "wb", 0) as copy:  # noqa: PTH123
        while chunk := source.read(1 << 22):
            copy.write(chunk)
        _keep_status(source.fileno(), copy.fileno(), listed)


def _keep_status(old: int, new: int, listed: File) -> None:
    mode = stat.S_IMODE(os.fstat(old).st_mode)
    if mode & 0o111:
        os.fchmod(new, mode)
    os.utime(new, ns=(listed.modified, listed.modified))
