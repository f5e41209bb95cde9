"""A sandbox around any program, made by bubblewrap.

The workspace can be written to; everything else can only be read. The home folder, temporary folders and the sockets of
container services are hidden, except for what the program needs.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host.git import submodules
from iterdev.host.processes.spawn import Process, Spawn
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Workspace

PROBE_LIMIT = 10.0

# No --die-with-parent: a program that is asked to end would be killed at once. Its tree is ended by the supervisor.
ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
OFFLINE = "--unshare-net"
SCRATCH = ("/tmp", "/var/tmp", "/run/user")  # noqa: S108 - hidden, not used
SERVICES = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")
"""A program that can reach one of them has all rights."""
READABLE_AT_HOME = (
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".rustup",
    ".local/share/uv",
)
"""Git's settings, and the tools behind the shims on the PATH."""

SWITCHES = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}
ROOT = Path("/")
PACKAGE = Path(__file__).parents[2]
"""iterdev itself, which agents may call."""
BINARIES = frozenset({"bin", "sbin", "shims"})
COMMON = (".local", ".config", ".cache", ".cargo")
"""Folders of a home that hold more than one thing, secrets among it."""
HOPS = 40
"""Links that are followed from a program to its file."""
OFF = "set `sandbox = false` under [run] in iterdev.toml"


class Access(Struct, frozen=True, kw_only=True):
    write: bool
    """Change the worktree."""
    network: bool
    files: tuple[str, ...] = ()
    """Further files and folders to write to, where they exist."""
    readable: tuple[str, ...] = ()
    """Further folders to read, where they exist."""


class Sandbox(Struct, frozen=True, kw_only=True):
    program: str
    nests: bool
    """Whether a program can make another one inside; root cannot."""
    top: Path
    home: Path
    hidden: tuple[Path, ...]

    def around(self, spawn: Spawn, workspace: Workspace, access: Access) -> Spawn:
        """Starts programs inside; all of them see the same home, which belongs to the workspace."""
        own_home = workspace.private / "home"
        own_home.mkdir(parents=True, exist_ok=True)
        store = git_objects.prepare(workspace)

        def start(
            argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
        ) -> AbstractAsyncContextManager[Process]:
            tools = places_of(argv, env.get("PATH", os.defpath), self.hidden)
            empty = [word for path in self.hidden if path != self.home for word in ("--tmpfs", str(path))]
            blocked = [word for path in SERVICES if Path(path).exists() for word in ("--ro-bind", "/dev/null", path)]
            words = [
                *(self.program, *ALONE, *(() if access.network else (OFFLINE,)), *SYSTEM),
                *(*empty, *blocked, "--bind", str(own_home), str(self.home)),
                *self._shown("--ro-bind-try", *(self.home / name for name in READABLE_AT_HOME), *tools),
                *self._shown("--ro-bind", PACKAGE, self.top, store.common),
                *self._shown("--ro-bind-try", *map(Path, access.readable)),
                *self._shown("--bind-try", *map(Path, access.files)),
                *self._workspace(workspace, store, write=access.write),
                *("--chdir", cwd, "--"),
            ]
            return spawn([*words, *argv], cwd=cwd, env=env, limit=limit)

        return start

    def _workspace(self, workspace: Workspace, store: git_objects.Store, *, write: bool) -> list[str]:
        """Only git's index and HEAD can be written: its other files would affect the git that iterdev runs later."""
        return [
            *self._shown("--bind", workspace.slot, workspace.temp),
            *("--bind", str(store.new), str(store.common / "objects")),
            *("--ro-bind", str(store.common / "objects"), str(store.known)),
            *self._shown("--bind", store.admin),
            *self._shown("--ro-bind", store.admin / "commondir", store.admin / "gitdir"),
            *("--ro-bind", "/dev/null", str(store.admin / "config.worktree")),
            *self._shown("--ro-bind", workspace.tree / ".git" if write else workspace.tree),
            *self._shown("--ro-bind", *submodules.links(self.top, workspace.tree)),
        ]

    def _shown(self, option: str, *paths: Path) -> list[str]:
        """Each path at its own place, reached by links that are not hidden."""
        places = ((path, placed(path, self.hidden) or Path(os.path.realpath(path))) for path in paths)
        return [word for path, place in places for word in (option, str(path), str(place))]


def build(top: Path, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox of this machine and user; raises if there can be none."""
    program, nests = find()
    account = pwd.getpwuid(os.getuid()).pw_dir
    home = Path(os.path.realpath(environment.get("HOME") or account))
    if home.is_relative_to(top) or home == ROOT:
        raise HostError(f'The sandbox hides the home "{home}", and there is no work without it', hint=OFF)
    others = (Path(os.path.realpath(path)) for path in (*SCRATCH, account) if Path(path).is_dir())
    hidden = (*(path for path in others if path != ROOT), home)
    return Sandbox(program=program, nests=nests, top=top, home=home, hidden=hidden)


def find() -> tuple[str, bool]:
    """The path of bubblewrap, if it works here, and whether it works inside itself."""
    program = shutil.which("bwrap")
    if program is None:
        hint = f"sudo apt install bubblewrap, or {OFF}"
        raise HostError("The sandbox needs bubblewrap, and there is no program `bwrap`", hint=hint)
    outer = (program, *ALONE, OFFLINE, *SYSTEM)
    tried = _tried(*outer, "true")
    if tried.returncode:
        words = tried.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ").splitlines()
        problem = words[-1] if words else f"it ended with {tried.returncode}"
        raise HostError(f"bubblewrap cannot make a sandbox on this machine: {problem}", hint=_switch() + OFF)
    return program, _tried(*outer, *outer, "true").returncode == 0


def _tried(*argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, capture_output=True, timeout=PROBE_LIMIT, check=False)


def _switch() -> str:
    """The command that changes the system setting that forbids sandboxes, if it is a known one."""
    for name, (forbids, allows) in SWITCHES.items():
        with suppress(OSError):
            if Path("/proc/sys", name.replace(".", "/")).read_text(encoding="ascii").strip() == forbids:
                return f"sudo sysctl -w {name}={allows}, or "
    return ""


def places_of(argv: Sequence[str], search: str, roots: Sequence[Path]) -> list[Path]:
    """What must be visible for a command to work: its own files, and every program on the search path.

    Only places inside of the roots count; everything else is visible anyway.
    """
    named = [shutil.which(argv[0], path=search) or argv[0], *argv[1:]]
    files = [Path(word) for word in named if os.path.isabs(word) and os.path.lexists(word)]  # noqa: PTH117
    files += [Path(entry, "program") for entry in search.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117
    inside = (placed(hop, roots) for file in files for hop in _hops(file))
    found = dict.fromkeys(installation(file, roots) for file in inside if file)
    return [place for place in found if os.access(place, os.R_OK)]


def placed(path: Path, roots: Sequence[Path]) -> Path | None:
    """The path as reached from one of the roots; links above the root are resolved, those below are not."""
    for parent in reversed(path.parents):
        real = Path(os.path.realpath(parent))
        if real in roots:
            return real / path.relative_to(parent)
    return None


def installation(file: Path, roots: Sequence[Path]) -> Path:
    """The folder that belongs to a program, but never a whole root or a folder above one."""
    if "node_modules" in file.parts:
        return Path(*file.parts[: file.parts.index("node_modules") + 1])
    folder = file.parent
    wider = [folder.parent, folder] if folder.name in BINARIES else [folder]
    common = {root / name for root in roots for name in COMMON}
    contained = (place for place in wider if place not in common and not any(r.is_relative_to(place) for r in roots))
    return next(contained, file)


def _hops(file: Path) -> Iterator[Path]:
    """The file, and every path on the way of its links."""
    for _ in range(HOPS):
        yield file
        if not file.is_symlink():
            break
        file = Path(os.path.normpath(Path(os.path.realpath(file.parent), file.readlink())))
    yield file.resolve()
