"""What a worktree of cloned files costs beside `git worktree add`: docs/large-repositories.md says what follows.

python bench/file_clones.py FOLDER FILES BYTES     in a folder whose file system can clone, such as of XFS or Btrfs

A clone shares its blocks with the original, as with `cp --reflink`. Here git then reads and hashes each file, so that
its index says what the files are, and not what they should be. Each file has that many bytes of random words.
"""

import fcntl
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

import large_repository
import page
import scratch

HEADER = ("", "processor time", "seconds", "disk")
FICLONE = 0x40049409
WORD = 8
VOCABULARY = 2_000


class Cost(Struct, frozen=True, kw_only=True):
    processor: float
    seconds: float
    disk: int
    """Bytes that are not free any more."""

    @property
    def cells(self) -> tuple[str, ...]:
        return f"{self.processor:.2f} s", f"{self.seconds:.2f} s", f"{self.disk / 1e6:.0f} MB"


def main(folder: Path, files: int, size: int) -> None:
    with tempfile.TemporaryDirectory(prefix="clones-", dir=folder) as path:
        root = Path(path).resolve()
        if not _can_clone(root):
            raise SystemExit(f'the file system of "{folder}" cannot clone files')
        repo = large_repository.repository(root / "repository", _commit(files, size))
        original, clone = root / "original", root / "clone"
        rows = {
            "`git worktree add`": _cost(root, lambda: _add(repo, original)),
            "clone each file": _cost(root, lambda: _clone(repo, original, clone)),
            "read and hash each file": _cost(root, lambda: _hash(repo, clone)),
        }
        if repo.git("status", "--porcelain", cwd=clone):
            raise SystemExit("the clone is not what it should be")
        print(page.table(HEADER, ((name, *cost.cells) for name, cost in rows.items())))


def _can_clone(folder: Path) -> bool:
    original = folder / "probe"
    original.write_bytes(b"x")
    try:
        _clone_file(str(original), str(folder / "clone-of-probe"))
    except OSError:
        return False
    return True


def _commit(files: int, size: int) -> Iterator[bytes]:
    chosen = random.Random(1)  # The same words in each run.
    words = [bytes(chosen.choices(b"abcdefghijklmnop", k=WORD)) for _ in range(VOCABULARY)]
    yield b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> 1700000000 +0000\ndata 5\nfiles\n"
    yield b"from refs/heads/main^0\n"
    for number in range(files):
        body = (b"%d " % number + b" ".join(chosen.choices(words, k=size // WORD + 1)))[:size]
        yield b"M 100644 inline %b\ndata %d\n%b\n" % (large_repository.name_of(number).encode(), len(body), body)


def _cost(root: Path, work: Callable[[], None]) -> Cost:
    taken, begin, used = _taken(root), time.perf_counter(), _used()
    work()
    seconds, processor = time.perf_counter() - begin, _used() - used
    return Cost(processor=processor, seconds=seconds, disk=_taken(root) - taken)


def _taken(root: Path) -> int:
    os.sync()
    found = os.statvfs(root)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _used() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _add(repo: scratch.Scratch, tree: Path) -> None:
    repo.git("worktree", "add", "-q", "--detach", tree, "HEAD")


def _clone(repo: scratch.Scratch, original: Path, clone: Path) -> None:
    repo.git("worktree", "add", "-q", "--no-checkout", "--detach", clone, "HEAD")
    for place, _, names in os.walk(original):
        folder = os.path.join(clone, os.path.relpath(place, original))  # noqa: PTH118 - pathlib would be half of the cost
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        for name in names:
            if name != ".git":
                _clone_file(f"{place}/{name}", f"{folder}/{name}")


def _clone_file(original: str, clone: str) -> None:
    source, target = os.open(original, os.O_RDONLY), os.open(clone, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        fcntl.ioctl(target, FICLONE, source)
    finally:
        os.close(source)
        os.close(target)


def _hash(repo: scratch.Scratch, tree: Path) -> None:
    repo.git("read-tree", "HEAD", cwd=tree)
    repo.git("update-index", "-q", "--refresh", cwd=tree)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
