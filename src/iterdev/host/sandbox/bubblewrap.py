"""A sandbox of our own round any program, made by bubblewrap.

The workspace can be written to; everything else can only be read. The home folder, temporary folders and the sockets of
container services are out of sight, but for what the program needs. It refuses to know what the program is for.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host.processes.spawn import Process, Spawn
from iterdev.host.sandbox import git_objects
from iterdev.host.sandbox.installations import placed, places_of
from iterdev.host.workspaces.pool import Workspace

PROBE_LIMIT = 10.0

# No --die-with-parent: a program that is asked to end would be killed at once. Its tree is ended by the supervisor.
ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
OFFLINE = "--unshare-net"
SCRATCH = ("/tmp", "/var/tmp", "/run/user")  # noqa: S108 - hidden, not used
SERVICES = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")
"""Whoever may talk to them may do anything."""
READABLE_AT_HOME = (
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".rustup",
    ".local/share/uv",
)
"""Who commits, and the tools that programs on the PATH only stand for."""

SWITCHES = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}
ROOT = Path("/")
OURSELVES = Path(__file__).parents[2]
"""For an agent that calls iterdev."""
OFF = "set `sandbox = false` under [run] in iterdev.toml"


class Access(Struct, frozen=True, kw_only=True):
    """What one program may do."""

    write: bool
    """Change the worktree."""
    network: bool
    files: tuple[str, ...] = ()
    """Further files and folders to write to, where they exist."""


class Sandbox(Struct, frozen=True, kw_only=True):
    program: str
    nests: bool
    """Whether a program can make another one inside; root cannot."""
    top: Path
    home: Path
    hidden: tuple[Path, ...]

    def around(self, spawn: Spawn, workspace: Workspace, access: Access) -> Spawn:
        """A way to start programs inside; every start sees the same home, which belongs to the workspace."""
        own_home = workspace.private / "home"
        own_home.mkdir(parents=True, exist_ok=True)
        store = git_objects.prepare(workspace)

        def start(
            argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
        ) -> AbstractAsyncContextManager[Process]:
            tools = places_of(argv, env.get("PATH", os.defpath), self.hidden)
            words = [
                *(self.program, *ALONE, *(() if access.network else (OFFLINE,)), *SYSTEM),
                *self._without_the_rest(own_home),
                *self._shown("--ro-bind-try", *(self.home / name for name in READABLE_AT_HOME), *tools),
                *self._shown("--ro-bind", OURSELVES, self.top, store.common),
                *self._shown("--bind-try", *map(Path, access.files)),
                *self._workspace(workspace, store, write=access.write),
                *("--chdir", cwd, "--"),
            ]
            return spawn([*words, *argv], cwd=cwd, env=env, limit=limit)

        return start

    def _without_the_rest(self, own_home: Path) -> list[str]:
        empty = [word for path in self.hidden if path != self.home for word in ("--tmpfs", str(path))]
        muted = [word for path in SERVICES if Path(path).exists() for word in ("--ro-bind", "/dev/null", path)]
        return [*empty, *muted, "--bind", str(own_home), str(self.home)]

    def _workspace(self, workspace: Workspace, store: git_objects.Store, *, write: bool) -> list[str]:
        """Git's files decide what our own git does later, so that only the index and HEAD can be written."""
        return [
            *self._shown("--bind", workspace.slot, workspace.temp),
            *("--bind", str(store.new), str(store.common / "objects")),
            *("--ro-bind", str(store.common / "objects"), str(store.known)),
            *self._shown("--bind", store.admin),
            *self._shown("--ro-bind", store.admin / "commondir", store.admin / "gitdir"),
            *("--ro-bind", "/dev/null", str(store.admin / "config.worktree")),
            *self._shown("--ro-bind", workspace.tree / ".git" if write else workspace.tree),
        ]

    def _shown(self, option: str, *paths: Path) -> list[str]:
        """Each path at its own place, by way of links that are not hidden."""
        places = ((path, placed(path, self.hidden) or Path(os.path.realpath(path))) for path in paths)
        return [word for path, place in places for word in (option, str(path), str(place))]


def build(top: Path, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox of this machine and user, after a look whether it can be had at all."""
    program, nests = find()
    account = pwd.getpwuid(os.getuid()).pw_dir
    home = Path(os.path.realpath(environment.get("HOME") or account))
    if home.is_relative_to(top) or home == ROOT:
        raise HostError(f'The sandbox hides the home "{home}", and there is no work without it', hint=OFF)
    others = (Path(os.path.realpath(path)) for path in (*SCRATCH, account) if Path(path).is_dir())
    hidden = (*(path for path in others if path != ROOT), home)
    return Sandbox(program=program, nests=nests, top=top, home=home, hidden=hidden)


def find() -> tuple[str, bool]:
    """The path of bubblewrap, if it can do its work here, and whether it can do so twice."""
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
    """The setting of the system that forbids it, if it is one of those known to."""
    for name, (forbids, allows) in SWITCHES.items():
        with suppress(OSError):
            if Path("/proc/sys", name.replace(".", "/")).read_text(encoding="ascii").strip() == forbids:
                return f"sudo sysctl -w {name}={allows}, or "
    return ""
