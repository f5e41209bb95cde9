"""Reading and writing where an agent can write: nothing leads out of its workspace, blocks, or is larger than allowed.

A link counts only if it leads to a place inside of the same root. The kernel sees to that while it opens the file, so
that an agent that is still at work cannot replace a folder in between.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that a project declares something in."""
PRIVATE, TREE, LINKS = ".iterdev", "tree", "links"
"""Beside a worktree is the folder of what iterdev keeps for it, with the list of the links that iterdev itself made."""

_TREES = re.compile(f"(?<={os.sep}){TREE}{os.sep}")
_OPENAT2 = 437
_BENEATH, _NO_MAGIC_LINKS = 0x08, 0x02
_TRIES = 8
_CHUNK = 65536
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


def root_of(path: Path) -> Path | None:
    """The worktree of a workspace that a path is in; None outside of workspaces.

    It is the outermost: an agent can make folders that look like a workspace inside of its own.
    """
    return next(roots_of(path), None)


def roots_of(path: Path) -> Iterator[Path]:
    """All folders on the way to a path that look like the worktree of a workspace, the outermost first."""
    # As text, because every git and every read begins with this.
    text = f"{os.fspath(path)}{os.sep}"
    ends = (found.end() - 1 for found in _TREES.finditer(text))
    return (Path(text[:end]) for end in ends if os.path.isdir(f"{text[: end - len(TREE)]}{PRIVATE}"))  # noqa: PTH112


def read_bytes(path: Path, *, root: Path | None = None, most: int = LARGEST) -> bytes:
    """The content of a regular file; raises OSError for everything else, also for a file that is too large.

    Without a root, it is the worktree that the path is in. A file outside of workspaces may be anywhere.
    """
    content = read_beginning(path, most + 1, root=root)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"It is larger than {most} bytes", str(path))
    return content


def read_beginning(path: Path, most: int, *, root: Path | None = None) -> bytes:
    """The same for a file of any size, of which no more is read."""
    descriptor = _opened(path, root or root_of(path))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", str(path))
        # Python sets aside as much memory as is asked for.
        content = os.read(descriptor, min(most, found.st_size + 1))
        while len(content) < most and (more := os.read(descriptor, min(most - len(content), _CHUNK))):
            content += more
        return content
    finally:
        os.close(descriptor)


def read_or_empty(path: Path, *, root: Path | None = None, most: int = LARGEST) -> bytes:
    """The content of a regular file; empty if there is none that may be read."""
    # Mostly there is none: a project is looked through for many files in which it could declare something.
    with suppress(OSError, ValueError):
        os.lstat(path)
        return read_bytes(path, root=root, most=most)
    return b""


def read_text(path: Path, *, most: int = LARGEST) -> str:
    """The same as text; what is not UTF-8 in it is replaced."""
    return read_or_empty(path, most=most).decode("utf-8", "replace")


def write_bytes(path: Path, content: bytes, *, root: Path, mode: int = 0o666) -> None:
    """Puts a new file in the place of whatever has the name; folders above it are made."""
    with opened_folder(path.parent, root) as folder, open(create(path.name, folder, mode), "wb") as file:
        file.write(content)


def create(name: str, folder: int, mode: int = 0o666) -> int:
    """A descriptor to write to, of a new file in an opened folder; a file or link of that name is removed."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            return os.open(name, _NEW, mode, dir_fd=folder)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def unlink(path: Path, *, root: Path) -> None:
    """Deletes a file or link, if there is one."""
    with suppress(FileNotFoundError, NotADirectoryError), opened_folder(path.parent, root, make=False) as folder:
        os.unlink(path.name, dir_fd=folder)


def remove(path: Path, *, root: Path) -> None:
    """Deletes a file, a link, or a folder with all that is in it, as far as possible."""
    with suppress(OSError), opened_folder(path.parent, root, make=False) as folder:
        try:
            os.unlink(path.name, dir_fd=folder)
        except OSError:
            shutil.rmtree(path.name, ignore_errors=True, dir_fd=folder)


def remove_empty(path: Path, *, root: Path) -> bool:
    """Deletes a folder if nothing is in it, and says whether it did."""
    with suppress(OSError), opened_folder(path.parent, root, make=False) as folder:
        os.rmdir(path.name, dir_fd=folder)
        return True
    return False


def move(path: Path, target: Path, *, root: Path, target_root: Path) -> None:
    """Renames a file or folder of one root into another; what is at the target must not be a folder with content."""
    with opened_folder(path.parent, root, make=False) as source, opened_folder(target.parent, target_root) as folder:
        os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=folder)


@contextmanager
def opened_folder(path: Path, root: Path, *, make: bool = True) -> Iterator[int]:
    """A descriptor of a folder inside of the root: what is done by it stays in there."""
    top = os.open(root, _FOLDER)
    try:
        parts = path.relative_to(root).parts
        descriptor = _made(top, parts) if make else _open_beneath(top, parts, _FOLDER)
    finally:
        os.close(top)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _made(top: int, parts: Sequence[str]) -> int:
    try:
        return _open_beneath(top, parts, _FOLDER)
    except FileNotFoundError:
        parent = _made(top, parts[:-1])
        try:
            with suppress(FileExistsError):
                os.mkdir(parts[-1], dir_fd=parent)
        finally:
            os.close(parent)
        return _open_beneath(top, parts, _FOLDER)


def _opened(path: Path, root: Path | None) -> int:
    if root is None:
        return os.open(path, _READ)
    text, above = os.fspath(path), f"{os.fspath(root).rstrip(os.sep)}{os.sep}"
    if not f"{text}{os.sep}".startswith(above):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), text)
    top = os.open(root, _FOLDER)
    try:
        return _open_beneath(top, [*filter(None, text[len(above) :].split("/"))], _READ)
    except OSError as error:
        link = _own_link(path, root) if error.errno in {errno.EXDEV, errno.ELOOP} else None
        if link is None:
            raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from error
        target = link.readlink()
        return _opened(target / path.relative_to(link), target) if path != link else os.open(target, _READ)
    finally:
        os.close(top)


def _own_link(path: Path, root: Path) -> Path | None:
    """The link on the way to a path, if iterdev made it because the configuration says so."""
    link = next(
        (place for place in (*reversed(path.parents), path) if root in place.parents and place.is_symlink()), None
    )
    with suppress(OSError):
        known = (root.parent / PRIVATE / LINKS).read_bytes().split(b"\0")
        return link if link and os.fsencode(link.readlink()) in known else None
    return None


def _open_beneath(top: int, parts: Sequence[str], flags: int) -> int:
    name = os.fsencode(os.path.join(*parts) if parts else ".")  # noqa: PTH118
    if b"\0" in name:
        raise OSError(errno.EINVAL, "The name contains a null character")
    how = struct.pack("QQQ", flags, 0, _BENEATH | _NO_MAGIC_LINKS)
    for _ in range(_TRIES):
        descriptor = _libc.syscall(_OPENAT2, top, ctypes.c_char_p(name), how, len(how))
        if descriptor >= 0:
            return int(descriptor)
        problem = ctypes.get_errno()
        if problem in {errno.ENOSYS, errno.EPERM}:
            # Before Linux 5.6, and where a filter of system calls does not know it.
            return open_without_links(top, parts, flags)
        if problem != errno.EAGAIN:
            break
    raise OSError(problem, os.strerror(problem), os.fsdecode(name))


def open_without_links(top: int, parts: Sequence[str], flags: int) -> int:
    """One folder after the other; no link counts at all."""
    descriptor = os.dup(top)
    for number, part in enumerate(parts):
        if part == "..":
            os.close(descriptor)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        try:
            inner = os.open(part, (flags if number == len(parts) - 1 else _FOLDER) | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
