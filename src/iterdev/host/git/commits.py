"""Commits, what is in them, and what they change."""

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

from iterdev.host.git.command import ALL_SUBMODULES, Identity, ask, git, git_bytes, git_names
from iterdev.host.processes.answering import EndedError, TooLongError

UNNAMEABLE = str.maketrans("", "", "\n<>")
EDGES = "".join(map(chr, range(33))) + ".,:;<>\"\\'"
"""What git leaves out of the name of an author, and at its ends."""
PLAIN_PATH = re.compile(r"[\w.-]+(/[\w.-]+)*")
"""Of a file whose name git takes without quotes."""
NOBODY = "committer iterdev <documents@iterdev.invalid> 0 +0000"
PASSING = "refs/iterdev/_documents"
"""The ref that git needs while it makes a commit of documents, and that is gone afterwards."""


def changed_files(top: Path, old: str, new: str, *, in_both: bool = False) -> tuple[str, ...]:
    if not in_both and (names := _served_names(top, old, new)) is not None:
        return names
    which = ("--diff-filter=MT",) if in_both else ()
    return tuple(git_names("diff", "--name-only", "--no-renames", ALL_SUBMODULES, *which, "-z", old, new, cwd=top))


def _served_names(top: Path, old: str, new: str) -> tuple[str, ...] | None:
    with suppress(EndedError):
        listed = _served_difference(top, old, new, "-r", "--no-renames", "--name-only", "-z")
        if listed is not None:
            return tuple(filter(None, listed.decode("utf-8", "backslashreplace").split("\0")))
    return None


def _served_difference(top: Path, old: str, new: str, *options: str, most: float = math.inf) -> bytes | None:
    """What a git process that stays says; it repeats each line that names no objects."""
    end = f"end {os.urandom(8).hex()}\n".encode()
    trees = f"{tree_of(top, old)} {tree_of(top, new)}\n".encode()
    words, most = ("diff-tree", "--stdin", ALL_SUBMODULES, *options), most + len(trees)
    answer = ask(*words, cwd=top, request=trees + end, end=end, most=most)
    return None if answer is None else answer.removeprefix(trees)


def count(top: Path, old: str, new: str) -> int:
    """How many commits lead from one to the other."""
    return int(git("rev-list", "--count", f"{old}..{new}", cwd=top).stdout)


def contents(top: Path, commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """The files of a commit, as far as it has them."""
    asked = "".join(f"{commit}:{name}\n" for name in names if "\n" not in name)
    rest = git_bytes("cat-file", "--batch", cwd=top, stdin=asked.encode("utf-8", "surrogateescape"))
    found: dict[str, bytes] = {}
    for name in (name for name in names if "\n" not in name):
        header, _, rest = rest.partition(b"\n")
        if about := re.fullmatch(rb"[0-9a-f]+ (\w+) ([0-9]+)", header):
            size = int(about[2])
            content, rest = rest[:size], rest[size + 1 :]
            found |= {name: content} if about[1] == b"blob" else {}
    return found


def ignored(worktree: Path, names: Sequence[str]) -> set[str]:
    """Those of the paths that git ignores."""
    asked = "\0".join(names)
    listed = git("check-ignore", "-z", "--stdin", cwd=worktree, stdin=asked, accept=(0, 1, 128)).stdout
    return {name for name in listed.split("\0") if name}


def has_files(top: Path, commit: str, words: Sequence[str]) -> bool:
    """Whether one of the words is the path of a file in the commit."""
    names = [os.path.normpath(word) for word in words if word and not word.startswith(("-", "/"))]
    inside = [f":(literal){name}" for name in names if name != "." and not name.startswith("..")]
    return bool(inside and git("ls-tree", "-r", "--name-only", commit, "--", *inside, cwd=top).stdout)


def copy_files(top: Path, commit: str, folder: Path) -> None:
    """Writes all files of a commit to a new folder, as a checkout would."""
    folder.mkdir(parents=True)
    with TemporaryDirectory() as temporary:
        # The repository may be a bare one.
        places = {"GIT_INDEX_FILE": str(Path(temporary, "index")), "GIT_WORK_TREE": str(folder)}
        git("read-tree", commit, cwd=top, env=places)
        git("checkout-index", "--all", "--force", cwd=top, env=places)


def write_patch(top: Path, old: str, new: str, path: Path) -> None:
    """Writes the difference of two commits for `git apply`. Git writes the file, because it need not be UTF-8."""
    # Settings of the user may ask for other forms, which cannot be applied.
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/")
    git("diff", "--binary", *plain, ALL_SUBMODULES, f"--output={path}", old, new, cwd=top)


def diff_text(
    top: Path, old: str, new: str, limit: int, *, without: Collection[str] = (), most: float = math.inf
) -> str:
    """The difference of two commits as people read it; empty if it has more bytes than the limit.

    `without`: files that are left out. Where all files together are too long, that is done for so many others at most.
    """
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", ALL_SUBMODULES)
    with suppress(EndedError):
        try:
            # A part with a rename has two names, of which one may be among those that are left out.
            renames = "--no-renames" if without else "--find-renames"
            served = _served_difference(top, old, new, "--patch", renames, *plain, most=limit)
        except TooLongError:
            if not without:
                return ""
        else:
            if served is not None:
                return _without(served.decode("utf-8", "replace"), without)
    shown = [f":(literal){name}" for name in changed_files(top, old, new) if name not in without] if without else []
    # A name that is not UTF-8 came with backslashes, and git would find no such file.
    if without and (not 0 < len(shown) <= most or any("\\" in name for name in shown)):
        return ""
    with TemporaryDirectory() as folder:
        # In a file, because it can be larger than the memory.
        path = Path(folder, "diff")
        git("diff", *plain, f"--output={path}", old, new, "--", *shown, cwd=top)
        return path.read_bytes().decode("utf-8", "replace") if path.stat().st_size <= limit else ""


def _without(diff: str, files: Collection[str]) -> str:
    """The difference without the parts of these files; one whose name git quotes stays."""
    headers = {f"diff --git a/{name} b/{name}" for name in files}
    parts = re.split(r"^(?=diff --git )", diff, flags=re.MULTILINE) if files else [diff]
    return "".join(part for part in parts if part.partition("\n")[0] not in headers)


def diff_stat(top: Path, old: str, new: str, most: int) -> str:
    """How many lines of which files differ, for so many files."""
    width = ("--stat-width=120", "--stat-name-width=90", f"--stat-count={most}")
    return git("diff", "--no-ext-diff", "--no-color", ALL_SUBMODULES, *width, old, new, cwd=top).stdout


def file_names(top: Path, commit: str) -> list[str]:
    return git_names("ls-tree", "-r", "-z", "--name-only", commit, cwd=top)


def file_text(top: Path, commit: str, path: str) -> str:
    return git("cat-file", "blob", f"{commit}:{path}", cwd=top).stdout


_trees: dict[str, str] = {}
"""The trees of commits that were asked for or made here; a commit's tree never changes."""


def tree_of(top: Path, commit: str) -> str:
    if commit not in _trees:
        _trees[commit] = git("rev-parse", f"{commit}^{{tree}}", cwd=top).stdout.strip()
    return _trees[commit]


def parents_and_tree(top: Path, commit: str) -> list[str]:
    return git("show", "--no-patch", "--format=%P %T", commit, cwd=top).stdout.split()


def commit_tree(top: Path, tree: str, parents: Iterable[str], message: str, author: Identity) -> str:
    parents = tuple(parents)
    options = [word for parent in parents for word in ("-p", parent)]
    commit = _served_commit(top, commit_text(tree, parents, message, author, datetime.now().astimezone())) or (
        git("commit-tree", tree, *options, cwd=top, stdin=message, env=author.variables).stdout.strip()
    )
    _trees[commit] = tree
    return commit


def commit_text(tree: str, parents: Iterable[str], message: str, author: Identity, time: datetime) -> bytes:
    """The object that `git commit-tree` makes."""
    name, email = (person.translate(UNNAMEABLE).strip(EDGES) for person in (author.name, author.email))
    who = f"{name} <{email}> {int(time.timestamp())} {time:%z}"
    lines = (f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}")
    return "\n".join((*lines, "", message)).encode("utf-8", "backslashreplace")


def _served_commit(top: Path, text: bytes) -> str:
    """Writes a commit by a git process that stays; empty if there is none."""
    with suppress(EndedError), NamedTemporaryFile(prefix="iterdev-") as file:
        file.write(text)
        file.flush()
        request = os.fsencode(file.name) + b"\n"
        answer = ask("hash-object", "-t", "commit", "-w", "--stdin-paths", cwd=top, request=request, end=b"\n")
        return (answer or b"").decode()
    return ""


def index_pack(pack: Path) -> None:
    """Reads every object of a pack, and writes the index with which git uses it."""
    git("index-pack", str(pack), cwd=pack.parent)


def commit_documents(top: Path, files: Mapping[str, bytes], *, known: str, parent: str = "") -> str:
    """The commit with exactly these files, which are in no worktree; no ref leads to it.

    Files whose path needs quotes are left out. Ids are as long as a `known` one.
    """
    before = f"from {parent}\ndeleteall\n" if parent else ""
    lines = [f"reset {PASSING}\n\ncommit {PASSING}\nmark :1\n{NOBODY}\ndata 0\n{before}".encode()]
    for name, body in sorted(files.items()):
        if PLAIN_PATH.fullmatch(name) and ".." not in name and ".git" not in name.split("/"):
            lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(body), body))
    lines.append(f"get-mark :1\nreset {PASSING}\nfrom {'0' * len(known)}\n".encode())
    return git_bytes("fast-import", "--quiet", "--force", cwd=top, stdin=b"".join(lines)).decode().strip()
