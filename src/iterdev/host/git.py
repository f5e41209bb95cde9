"""The git command, and the only place that spells its arguments.

Everything runs without optional locks (a look at the user's checkout must not even refresh its index), without
prompts, and without the GIT_* variables of whoever started iterdev.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError, UserError

OLDEST = (2, 38)
"""The first version with `git merge-tree --write-tree`."""
SECONDS = 300
ZERO = ""
"""What a ref is that does not exist, whatever the length of the repository's hashes."""
EXCLUDES = Path(".iterdev", "exclude")
"""Beside a worktree of ours: the patterns that git ignores in it, in place of those that the user has everywhere."""


class Identity(Struct, frozen=True):
    name: str
    email: str


class GitFailed(HostError):
    """git ended with an error; the message quotes its last words."""

    def __init__(self, args: Iterable[str], code: int, stderr: str) -> None:
        lines = stderr.strip().splitlines()
        telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines or ["no message"]
        super().__init__(
            f"`git {' '.join(args)}` failed with {code}: {telling[0]}",
            hint="check the free space and the permissions with `iterdev doctor`, then go on with `iterdev resume`",
        )
        self.code = code
        self.stderr = stderr


def run(
    *args: str,
    cwd: Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    accept: tuple[int, ...] = (0,),
) -> subprocess.CompletedProcess[str]:
    """Runs git and returns what it said; an exit code that was not expected raises."""
    try:
        finished = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", *_overlooking(cwd), *args],
            cwd=cwd,
            input=stdin,
            env=_environment() | dict(env or {}),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        if not cwd.exists():
            raise HostError(f'The folder "{cwd}" does not exist', hint="run `iterdev doctor`") from error
        raise HostError("git is not installed", hint="install git 2.38 or newer") from error
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"`git {' '.join(args)}` did not end within {SECONDS} s", hint="run `iterdev doctor`"
        ) from error
    if finished.returncode not in accept:
        raise GitFailed(args, finished.returncode, finished.stderr)
    return finished


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": "true"}


def _overlooking(worktree: Path) -> tuple[str, ...]:
    patterns = worktree.parent / EXCLUDES
    return ("-c", f"core.excludesFile={patterns}") if patterns.exists() else ()


def users_excludes(folder: Path) -> Path:
    """The file of patterns that the user has git ignore everywhere."""
    named = run("config", "--type=path", "--get", "core.excludesFile", cwd=folder, accept=(0, 1)).stdout.rstrip("\n")
    return Path(named or Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git", "ignore"))


def version() -> tuple[int, ...]:
    text = run("--version", cwd=Path("/")).stdout
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def check_version(found: tuple[int, ...]) -> None:
    if found < OLDEST:
        raise HostError(
            f"git {'.'.join(map(str, found))} is too old, iterdev needs {'.'.join(map(str, OLDEST))} or newer",
            hint="upgrade git",
        )


def top_level(folder: Path) -> Path:
    """The top of the checkout that the folder is in; a linked worktree is a checkout of its own."""
    found = run("rev-parse", "--show-toplevel", cwd=folder, accept=(0, 128))
    if found.returncode:
        if "dubious ownership" in found.stderr:
            raise HostError(f'git does not trust "{folder}"', hint=f"git config --global --add safe.directory {folder}")
        raise UserError(f'"{folder}" is not in a git repository', hint="cd into one, or run `git init`")
    return Path(found.stdout.rstrip("\n"))


def head(top: Path) -> str:
    found = run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", cwd=top, accept=(0, 1, 128))
    if found.returncode:
        raise UserError(
            f'The repository "{top}" has no commits yet',
            hint='git add -A && git commit -m "Start"',
        )
    return found.stdout.strip()


def current_branch(top: Path) -> str:
    """The branch that is checked out, or nothing when HEAD is detached."""
    return run("symbolic-ref", "--quiet", "--short", "HEAD", cwd=top, accept=(0, 1)).stdout.strip()


def resolve(top: Path, ref: str) -> str | None:
    found = run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", cwd=top, accept=(0, 1, 128))
    return found.stdout.strip() or None


def status(top: Path) -> str:
    """What differs from HEAD in a checkout, one line per file; looking changes nothing."""
    return run("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z", cwd=top).stdout


def branches(top: Path) -> list[str]:
    """The user's own branches and where they are; those of sessions are ours."""
    lines = run("for-each-ref", "--format=%(refname:short) at %(objectname:short)", "refs/heads", cwd=top).stdout
    return [line for line in lines.splitlines() if not line.startswith("iterdev/")]


def branches_stamp(top: Path) -> tuple[object, ...]:
    """Changes whenever one of the user's branches does; a few looks at files instead of a process.

    A repository that keeps its refs in tables has one stamp for all of them, which also changes when we land.
    """
    common = _common_dir(top)
    heads = common / "refs" / "heads"
    loose: list[object] = []
    for folder, inner, files in os.walk(heads):
        if Path(folder) == heads and "iterdev" in inner:
            inner.remove("iterdev")
        loose += [_stamp(Path(folder, name)) for name in files]
    return (*loose, _stamp(common / "packed-refs"), _stamp(common / "reftable" / "tables.list"))


@lru_cache(maxsize=64)
def _common_dir(top: Path) -> Path:
    return top / run("rev-parse", "--git-common-dir", cwd=top).stdout.rstrip("\n")


def _stamp(path: Path) -> object:
    with suppress(OSError):
        seen = path.stat()
        return str(path), seen.st_ino, seen.st_mtime_ns, seen.st_size
    return None


def changed_files(top: Path, old: str, new: str, *, in_both: bool = False) -> tuple[str, ...]:
    which = ("--diff-filter=MT",) if in_both else ()
    names = run("diff", "--name-only", "--no-renames", *which, "-z", old, new, cwd=top).stdout
    return tuple(name for name in names.split("\0") if name)


def write_patch(top: Path, old: str, new: str, path: Path) -> None:
    """Writes what leads from one commit to the other, for `git apply`; git does, since it need not be our text."""
    run("diff", "--binary", "--no-ext-diff", "--no-color", f"--output={path}", old, new, cwd=top)


def is_ancestor(top: Path, commit: str, of: str) -> bool:
    return run("merge-base", "--is-ancestor", commit, of, cwd=top, accept=(0, 1)).returncode == 0


def merge_base(top: Path, one: str, other: str) -> str:
    """Where two histories went apart: one of the two, if the other was built on it; nothing, if they never met."""
    return run("merge-base", one, other, cwd=top, accept=(0, 1)).stdout.strip()


def exclude(top: Path, pattern: str) -> None:
    """Keeps our files out of the user's sight, in the one file that is never committed."""
    path = Path(run("rev-parse", "--git-path", "info/exclude", cwd=top).stdout.strip())
    path = path if path.is_absolute() else top / path
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if pattern not in text.splitlines():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{pattern}\n", encoding="utf-8"
            )
    except OSError as error:
        raise HostError(
            f'Cannot write "{path}": {error.strerror}', hint="make the repository writable, then try again"
        ) from error


def init(top: Path, branch: str) -> None:
    run("init", "--quiet", f"--initial-branch={branch}", cwd=top)


def short_log(top: Path, ref: str) -> str:
    """One line per commit."""
    return run("log", "--oneline", "--no-decorate", ref, cwd=top).stdout


def add_worktree(top: Path, path: Path, commit: str) -> None:
    run("worktree", "add", "--quiet", "--force", "--detach", str(path), commit, cwd=top)


def remove_worktree(top: Path, path: Path) -> None:
    run("worktree", "remove", "--force", "--force", str(path), cwd=top, accept=(0, 128))


def prune_worktrees(top: Path) -> None:
    run("worktree", "prune", cwd=top)


def reset_worktree(path: Path, commit: str) -> None:
    """Makes a worktree exactly the commit again; ignored files stay, they are what `setup` made."""
    run("checkout", "--quiet", "--force", "--detach", commit, cwd=path)
    run("clean", "--quiet", "-ffd", cwd=path)


def write_tree(worktree: Path) -> str:
    """The tree of everything in a worktree that git does not ignore."""
    _stage_everything(worktree)
    return run("write-tree", cwd=worktree).stdout.strip()


def _stage_everything(worktree: Path) -> None:
    added = run("add", "--all", cwd=worktree, accept=(0, 1, 128))
    if added.returncode or "embedded git repository" in added.stderr:
        _clear_the_way(worktree)
        run("add", "--all", cwd=worktree)


def _clear_the_way(worktree: Path) -> None:
    """Removes the lock of a git that was killed, and makes plain folders of repositories inside the worktree.

    Git keeps only the name of a commit of such a repository, and none of its files.
    """
    (worktree / run("rev-parse", "--git-path", "index.lock", cwd=worktree).stdout.strip()).unlink(missing_ok=True)
    run("reset", "--quiet", cwd=worktree)
    while inner := [name for name in _untracked(worktree) if name.endswith("/")]:
        for name in inner:
            _remove(worktree / name / ".git")


def _untracked(worktree: Path) -> list[str]:
    return run("ls-files", "--others", "--exclude-standard", "-z", cwd=worktree).stdout.split("\0")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def relink(top: Path, worktree: Path) -> None:
    """Ties a worktree to its repository again if somebody removed the link, or made a repository in its place.

    Without the link, git would look for a repository in the folders above.
    """
    link = worktree / ".git"
    if link.is_file():
        return
    _remove(link)
    run("worktree", "repair", cwd=top)
    if not link.is_file():
        raise HostError(f'"{worktree}" is no worktree of "{top}" any more', hint="save what you need from it")


def worktree_head(worktree: Path) -> str:
    """The commit that a linked worktree is at, or nothing if it has none yet.

    Read from its file: a process would take a hundred times as long.
    """
    text = (_admin(worktree) / "HEAD").read_text(encoding="utf-8").strip()
    return (resolve(worktree, "HEAD") or "") if text.startswith("ref:") else text


def _admin(worktree: Path) -> Path:
    """Git's folder of a linked worktree."""
    return worktree / (worktree / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()


_trees: dict[str, str] = {}
"""The trees of commits that were asked for or made here; a commit's tree never changes."""


def tree_of(top: Path, commit: str) -> str:
    if commit not in _trees:
        _trees[commit] = run("rev-parse", f"{commit}^{{tree}}", cwd=top).stdout.strip()
    return _trees[commit]


def settle(worktree: Path, commit: str) -> None:
    """Says that a worktree, whose files were just committed, is at that commit; no file is touched."""
    if (_admin(worktree) / "MERGE_HEAD").exists():
        run("merge", "--quit", cwd=worktree)
    run("update-ref", "--no-deref", "HEAD", commit, cwd=worktree)


def is_untouched(worktree: Path, commit: str) -> bool:
    """Whether a worktree is exactly the commit, apart from ignored files."""
    return worktree_head(worktree) == commit and not status(worktree)


def commit_tree(top: Path, tree: str, parents: Iterable[str], message: str, author: Identity) -> str:
    options = [word for parent in parents for word in ("-p", parent)]
    commit = run("commit-tree", tree, *options, cwd=top, stdin=message, env=_as(author)).stdout.strip()
    _trees[commit] = tree
    return commit


def _as(author: Identity) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_COMMITTER_NAME": author.name,
        "GIT_COMMITTER_EMAIL": author.email,
    }


def merge_tree(top: Path, ours: str, theirs: str) -> tuple[str | None, tuple[str, ...]]:
    """The merged tree, or None and the files in conflict; no checkout is touched."""
    whole, tree, conflicts = try_merge(top, ours, theirs)
    return (tree, ()) if whole else (None, conflicts)


def try_merge(top: Path, ours: str, theirs: str) -> tuple[bool, str, tuple[str, ...]]:
    """Whether git can merge it, the tree as far as it can, and the files in conflict; no checkout is touched."""
    merged = run("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, cwd=top, accept=(0, 1))
    tree, *rest = merged.stdout.split("\0")
    if merged.returncode == 0:
        return True, tree, ()
    conflicts = rest[: rest.index("")] if "" in rest else rest
    return False, tree, tuple(dict.fromkeys(name for name in conflicts if name))


def begin_merge(worktree: Path, commit: str, author: Identity) -> None:
    """Merges into a worktree as far as git can, without a commit; what is left to do is marked in the files."""
    plain = ("-c", "rerere.enabled=false", "-c", "merge.conflictStyle=merge")
    options = ("--quiet", "--no-commit", "--no-ff", "--no-autostash", "--strategy=ort")
    run(*plain, "merge", *options, commit, cwd=worktree, env=_as(author), accept=(0, 1))


def merge_begun(worktree: Path) -> str:
    """The tree that git left when it began a merge in a worktree; nothing if none is under way."""
    found = run("rev-parse", "--verify", "--quiet", "AUTO_MERGE^{tree}", cwd=worktree, accept=(0, 1, 128))
    return found.stdout.strip()


def new_markers(top: Path, old: str, new: str) -> set[tuple[str, int]]:
    """Conflict markers that came with a change, as file and line."""
    options = ("--check", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    lines = run("diff", *options, old, new, cwd=top, accept=(0, 2)).stdout
    return {(name, int(line)) for name, line in re.findall(r"(?m)^(.*):(\d+): leftover conflict marker$", lines)}


def move_ref(top: Path, ref: str, new: str, old: str | None = None) -> bool:
    """Compare and swap: False when the ref no longer is what it was. `old` None means whatever it is."""
    expected = [old] if old is not None else []
    moved = run("update-ref", ref, new, *expected, cwd=top, accept=(0, 128))
    if moved.returncode and "cannot lock ref" not in moved.stderr:
        raise GitFailed(("update-ref", ref), moved.returncode, moved.stderr)
    return moved.returncode == 0


def merge(top: Path, commit: str, message: str) -> tuple[str, ...]:
    """Merges into the branch that is checked out, fast-forward where possible; conflicts undo it and are named."""
    merged = run("merge", "--quiet", "--ff", "-m", message, commit, cwd=top, accept=(0, 1, 2, 128))
    if merged.returncode == 0:
        return ()
    names = run("diff", "--name-only", "--diff-filter=U", "-z", cwd=top).stdout
    run("merge", "--abort", cwd=top, accept=(0, 128))
    if not names:
        raise GitFailed(("merge", commit), merged.returncode, merged.stderr or merged.stdout)
    return tuple(name for name in names.split("\0") if name)


def in_the_way(top: Path, commit: str) -> list[str]:
    """Files of a clean checkout that git does not track, and that checking out the commit would overwrite."""
    names = run("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD", commit, cwd=top).stdout
    return [name for name in names.split("\0") if name and os.path.lexists(top / name)]


def index_pack(pack: Path) -> None:
    """Reads every object of a pack, and writes the index with which git uses it."""
    run("index-pack", str(pack), cwd=pack.parent)


def restore_files(worktree: Path, commit: str, names: Iterable[str]) -> None:
    """Puts files back to what they are in the commit, or removes those that are not in it."""
    paths = "\0".join(names)
    _stage_everything(worktree)
    run(
        "restore", f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul",
        cwd=worktree, stdin=paths,
    )  # fmt: skip
