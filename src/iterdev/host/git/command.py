"""The git command: how it is run, and which version is needed.

Everything runs without optional locks (reading the user's checkout must not even refresh its index), without
prompts, hooks and fsmonitor, and with an environment that holds no secrets. In a workspace of the sandbox it runs
inside (`confinement.py`). Every git has a process group of its own; its whole tree ends at the time limit, and with an
engine that is killed (`host/processes/ownership.py`).
"""

import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.host import secrets
from iterdev.host.git import confinement, full_disk
from iterdev.host.processes import ownership
from iterdev.host.processes.answering import AnsweringProcess, EndedError
from iterdev.host.untrusted_files import PRIVATE, root_of

OLDEST = (2, 38)
"""The first version with `git merge-tree --write-tree`."""
SECONDS = 300
STAYS = 60.0
"""Seconds for which a git process answers requests: it takes the time and the settings from when it was started."""
AS_STORED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": "/dev/null/none"}
"""A commit is what its id says: no `git replace` and no graft, which an agent can write, puts another in its place."""
VARIABLES = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": "true", **AS_STORED}
REPOSITORY_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in (
        *("ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "CONFIG", "CONFIG_COUNT", "CONFIG_PARAMETERS", "DIR"),
        *("GRAFT_FILE", "IMPLICIT_WORK_TREE", "INDEX_FILE", "INTERNAL_SUPER_PREFIX", "NAMESPACE", "NO_REPLACE_OBJECTS"),
        *("OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE", "SHALLOW_FILE", "WORK_TREE"),
    )
)
"""The variables by which git would work on another repository (`git rev-parse --local-env-vars`)."""
SETTINGS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false", "submodule.recurse=false"),
    # With it, git refuses to add a file whose line ends it would change, and with it all other work of an attempt.
    "core.safecrlf=false",
    # The links of worktrees are read, copied and compared as absolute paths.
    "worktree.useRelativePaths=false",
)
IN_WORKSPACES = (
    *("core.untrackedCache=false", "core.splitIndex=false", "core.ignoreStat=false"),
    *("core.trustCtime=true", "core.checkStat=default"),
)
"""Nothing but what git itself sees of a file says whether it has changed (`index.py`)."""
ALSO_INHERITED = ("SSH_AUTH_SOCK", "GNUPGHOME", "SUDO_UID", "TMPDIR")
"""Filters such as that of Git LFS may have to log in to a server; git asks who started root's shell."""
EXCLUDES = Path(PRIVATE, "exclude")
"""Beside a worktree: the patterns that git ignores in it, in place of the user's global ones."""


ALL_SUBMODULES = "--ignore-submodules=none"
"""A repository can ask git to say nothing of changes of its submodules; work there is work too."""
own_bare_repositories: set[Path] = set()
"""Where git works although the user's settings may refuse bare repositories, which anybody can hide in a folder."""
overrides: list[Callable[[], tuple[str, ...]]] = []
"""What gives further options to every git of this process (`pinned_settings.py`)."""


class Identity(Struct, frozen=True):
    name: str
    email: str

    @property
    def variables(self) -> dict[str, str]:
        people = ("AUTHOR", "COMMITTER")
        return {f"GIT_{who}_{part.upper()}": getattr(self, part) for who in people for part in ("name", "email")}


class GitFailed(HostError):
    """git ended with an error; the message quotes the first line that says why."""

    def __init__(self, args: Iterable[str], code: int, stderr: str) -> None:
        lines = stderr.strip().splitlines()
        reasons = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines or ["no message"]
        super().__init__(
            f"`git {' '.join(args)}` failed with {code}: {reasons[0]}",
            hint="run `iterdev doctor --fix`: it repairs what it can, and says what else is wrong",
        )


def git(
    *args: str,
    cwd: Path,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    accept: tuple[int, ...] = (0,),
    seconds: float = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Runs git and returns its output; an unexpected exit code raises."""
    _check_installed(os.environ.get("PATH"))
    given = None if stdin is None else stdin.encode("utf-8", "backslashreplace")
    done = _run(args, cwd, given, env or {}, seconds)
    stdout, stderr = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    if done.returncode not in accept:
        raise GitFailed(args, done.returncode, stderr)
    return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)


def git_bytes(*args: str, cwd: Path, stdin: bytes) -> bytes:
    """The output of a git that prints the contents of files."""
    done = _run(args, cwd, stdin, {}, SECONDS)
    if done.returncode:
        raise GitFailed(args, done.returncode, done.stderr.decode("utf-8", "backslashreplace"))
    return done.stdout


def _run(
    args: tuple[str, ...],
    cwd: Path,
    stdin: bytes | None,
    env: Mapping[str, str],
    seconds: float,
    *,
    again: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    inside = _confinement(args, cwd)
    argv, variables = _command_line(args, cwd, inside)
    began = time.time()
    try:
        process = ownership.run(argv, cwd=cwd, env={**variables, **env}, stdin=stdin, seconds=seconds)
    except FileNotFoundError as error:
        if not cwd.exists():
            raise HostError(f'The folder "{cwd}" does not exist', hint="run `iterdev doctor --fix`") from error
        if inside:
            hint = "sudo apt install bubblewrap, then go on with `iterdev resume`"
            raise HostError(f'git in "{cwd}" runs in the sandbox, which needs bubblewrap', hint=hint) from error
        raise HostError("git is not installed", hint="install git 2.38 or newer") from error
    except subprocess.TimeoutExpired as error:
        message = f"`git {' '.join(args)}` did not end within {duration(seconds)}"
        raise HostError(message, hint="a hook, a filter or the disk may be slow; then try again") from error
    if process.returncode == -signal.SIGINT and not again:
        # A Ctrl-C reached it before it had a process group of its own, and so before it was git.
        return _run(args, cwd, stdin, env, seconds, again=True)
    if process.returncode and inside and process.stderr.startswith(b"bwrap: "):
        # Its exit code is one with which git itself answers.
        raise GitFailed(args, process.returncode, process.stderr.decode("utf-8", "backslashreplace"))
    if process.returncode and full_disk.is_reason(process.stderr) and not inside:
        objects = _run(("rev-parse", "--git-path", "objects"), cwd, None, {}, seconds).stdout
        full_disk.remove_temporary_objects(cwd / os.fsdecode(objects.rstrip(b"\n")), began)
    return process


def _command_line(args: tuple[str, ...], cwd: Path, inside: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
    """The words of a git command, and its environment."""
    patterns = cwd.parent / EXCLUDES
    excludes = ("-c", f"core.excludesFile={patterns}") if patterns.exists() else ()
    in_workspace = (
        IN_WORKSPACES if root_of(cwd) else ("safe.bareRepository=all",) if cwd in own_bare_repositories else ()
    )
    settings = (*SETTINGS, *in_workspace, *(confinement.SETTINGS if inside else ()))
    pinned = (word for override in tuple(overrides) for word in override())
    options = (*(word for setting in settings for word in ("-c", setting)), *excludes, *pinned)
    variables = {**_inherited(), **VARIABLES, **(confinement.VARIABLES if inside else {})}
    return [*inside, "git", *options, *args], variables


class _Server:
    """The git processes of a repository that stay, by their arguments."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._processes: dict[tuple[str, ...], AnsweringProcess] = {}

    def ask(self, top: Path, args: tuple[str, ...], request: bytes, end: bytes, most: float) -> bytes:
        with self._lock:
            process = self._processes.get(args)
            if process is None or process.started < time.monotonic() - STAYS:
                if process:
                    process.close()
                argv, variables = _command_line(args, top)
                process = self._processes[args] = AnsweringProcess(argv, top, variables)
        try:
            return process.ask(request, end, SECONDS, most)
        except EndedError:
            with self._lock:
                if self._processes.get(args) is process:
                    del self._processes[args]
            process.close()
            raise

    def close(self) -> None:
        with self._lock:
            for process in self._processes.values():
                process.close()
            self._processes.clear()


_servers: dict[Path, _Server] = {}


@contextmanager
def serving(top: Path) -> Iterator[None]:
    """While it is open, git processes that stay answer what is asked often about a repository."""
    server = _servers[top] = _Server()
    try:
        yield
    finally:
        del _servers[top]
        server.close()


def ask(*args: str, cwd: Path, request: bytes, end: bytes, most: float = math.inf) -> bytes | None:
    """What a git process that stays answers, up to the given end; None if there is none for the repository.

    One that ends instead, or answers more than allowed, raises: with the next request there is a new one.
    """
    server = _servers.get(cwd)
    return server.ask(cwd, args, request, end, most) if server else None


def _confinement(args: tuple[str, ...], cwd: Path) -> tuple[str, ...]:
    try:
        return confinement.prefix(cwd)
    except (OSError, ValueError) as error:
        if not cwd.exists():
            raise HostError(f'The folder "{cwd}" does not exist', hint="run `iterdev doctor`") from error
        raise GitFailed(args, 128, f"fatal: {error}") from error


def users_git(
    *args: str, cwd: Path, stdin: str | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs git as the user would: with their hooks, name and key, a terminal to ask on, and for as long as it takes."""
    return subprocess.run(
        ["git", "-c", "core.quotePath=false", *args],
        cwd=cwd,
        env={**users_variables(), **AS_STORED, "GIT_EDITOR": "true", "LC_ALL": "C", **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
    )


def users_variables() -> dict[str, str]:
    """All variables of the user, except those by which git would work on another repository."""
    return {name: value for name, value in os.environ.items() if name not in REPOSITORY_VARIABLES}


def _inherited() -> dict[str, str]:
    return secrets.allowed_environment(os.environ, ALSO_INHERITED)


def git_names(*args: str, cwd: Path) -> list[str]:
    """The entries that git prints with its option -z."""
    return [name for name in git(*args, cwd=cwd).stdout.split("\0") if name]


def users_excludes(folder: Path) -> Path:
    """The user's global file of patterns that git ignores."""
    named = git("config", "--type=path", "--get", "core.excludesFile", cwd=folder, accept=(0, 1)).stdout.rstrip("\n")
    return Path(named or Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git", "ignore"))


def users_files(folder: Path) -> tuple[Path, ...]:
    """The files outside of the repository that git reads for a user: settings, attributes, patterns to ignore."""
    entries = git("config", "--list", "--show-origin", "--includes", "-z", cwd=folder).stdout.split("\0")
    found = {Path(origin.removeprefix("file:")) for origin in entries[::2] if origin.startswith("file:/")}
    for name in ("core.excludesFile", "core.attributesFile"):
        named = git("config", "--type=path", "--get", name, cwd=folder, accept=(0, 1)).stdout.rstrip("\n")
        found |= {Path(named)} if os.path.isabs(named) else set()  # noqa: PTH117
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "git")
    return tuple(sorted(found | {settings / "ignore", settings / "attributes"}))


@cache
def _check_installed(_path: str | None) -> None:
    """Once for a git, before its first question: commands that need no git do not ask for the version either."""
    check_version(version())


def version() -> tuple[int, ...]:
    text = os.fsdecode(_run(("--version",), Path("/"), None, {}, SECONDS).stdout)
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def check_version(found: tuple[int, ...]) -> None:
    if found < OLDEST:
        raise HostError(
            f"git {'.'.join(map(str, found))} is too old, iterdev needs {'.'.join(map(str, OLDEST))} or newer",
            hint="upgrade git",
        )
