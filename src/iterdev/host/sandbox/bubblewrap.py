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
from iterdev.host import paths, untrusted_files
from iterdev.host.git import command, confinement, refs
from iterdev.host.processes.spawn import Process, Spawn
from iterdev.host.workspaces.pool import BORROWER, Workspace

PROBE_LIMIT = 10.0

# No --die-with-parent: a program that is asked to end would be killed at once. Its tree is ended by the supervisor.
ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL")
SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
OFFLINE = "--unshare-net"
SCRATCH = ("/tmp", "/var/tmp", "/run/user")  # noqa: S108 - hidden, not used
SERVICES = (
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/libvirt/libvirt-sock",
    "/run/snapd.socket",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
)
"""A program that can reach one of them may start others outside, as root even with all rights."""
READABLE_AT_HOME = (
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".rustup",
    ".local/share/uv",
)
"""Git's settings, and the tools behind the shims on the PATH."""
REGISTRY_SETTINGS = (
    ".netrc",
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".bunfig.toml", ".config/pnpm"),
    *(".pip", ".config/pip", ".config/uv", ".config/pypoetry", ".config/pdm"),
    *(".cargo/config", ".cargo/config.toml", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.d"),
    *(".bundle/config", ".gemrc", ".config/composer", ".config/go/env"),
)
"""Where package managers find their registries, and passwords for them."""

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


READ, WRITE = "--ro-bind", "--bind"
READ_IF_THERE, WRITE_IF_THERE = "--ro-bind-try", "--bind-try"


class Mount(Struct, frozen=True):
    option: str
    source: Path
    place: Path

    @property
    def words(self) -> tuple[str, str, str]:
        return (self.option, str(self.source), str(self.place))


def _mounts(words: Sequence[str]) -> list[Mount]:
    return [Mount(words[at], Path(words[at + 1]), Path(words[at + 2])) for at in range(0, len(words), 3)]


def _make_place(own_home: Path, inside: Path, *, is_folder: bool) -> None:
    """Makes an empty folder or file to mount on; what is in the way is removed."""
    chain = [*reversed(inside.parents), inside][1:]
    for part in chain:
        place, wants_folder = own_home / part, is_folder or part != inside
        if place.is_symlink() or (os.path.lexists(place) and place.is_dir() != wants_folder):
            untrusted_files.remove(place, root=own_home)
    if is_folder:
        with untrusted_files.opened_folder(own_home / inside, own_home):
            return
    if not os.path.lexists(own_home / inside):
        untrusted_files.write_bytes(own_home / inside, b"", root=own_home)


class Access(Struct, frozen=True, kw_only=True):
    write: bool
    """Change the worktree."""
    network: bool
    files: tuple[str, ...] = ()
    """Further files and folders to write to, where they exist."""
    readable: tuple[str, ...] = ()
    """Further folders to read, where they exist."""
    folders: tuple[Path, ...] = ()
    """Folders of the workspace's private ones to write to."""
    registries: bool = False
    """Read the user's settings of package managers; not for a workspace that an agent, or its work, was in."""


class Sandbox(Struct, frozen=True, kw_only=True):
    program: str
    nests: bool
    """Whether a program can make another one inside; root cannot."""
    top: Path
    home: Path
    hidden: tuple[Path, ...]
    git_files: tuple[Path, ...] = ()
    """What git reads of the user's: settings, attributes, patterns to ignore."""

    def around(self, spawn: Spawn, workspace: Workspace, access: Access) -> Spawn:
        """Starts programs inside; all of them see the same home, which belongs to the workspace."""
        own_home = workspace.private / "home"
        own_home.mkdir(parents=True, exist_ok=True)
        self.confine_git(workspace.slot)
        store = confinement.store(workspace.tree)

        def start(
            argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
        ) -> AbstractAsyncContextManager[Process]:
            tools = places_of(argv, env.get("PATH", os.defpath), self.hidden, besides=workspace.slot)
            settings = (*READABLE_AT_HOME, *(REGISTRY_SETTINGS if access.registries else ()))
            mounts = [
                *self._shown(READ_IF_THERE, *(self.home / name for name in settings), *tools),
                *self._shown(READ, PACKAGE, self.top, store.common),
                *self._shown(READ_IF_THERE, *map(Path, access.readable), *confinement.alternates(store.common)),
                *self._shown(WRITE_IF_THERE, *map(Path, access.files)),
                *self._workspace(workspace, store, access),
            ]
            words = [
                *self._outside(network=access.network),
                *("--bind", str(own_home), str(self.home)),
                *self._fixed(own_home, mounts),
                *(word for mount in mounts for word in mount.words),
                *("--setenv", confinement.INSIDE, os.path.realpath(workspace.slot)),
                *("--chdir", cwd, "--"),
            ]
            return spawn([*words, *argv], cwd=cwd, env=env, limit=limit)

        return start

    def confine_git(self, slot: Path) -> None:
        """Has every git that iterdev runs in the workspace run inside too; it has neither a home nor the network."""
        paths = os.environ.get("PATH", os.defpath)
        common = refs.common_dir(self.top)
        seen = [
            *places_of(("git",), paths, self.hidden, besides=slot),
            *self.git_files,
            *confinement.alternates(common),
        ]
        shown = [*self._shown(READ_IF_THERE, *seen), *self._shown(READ, self.top, common)]
        words = [*self._outside(network=False), "--die-with-parent", "--tmpfs", str(self.home)]
        confinement.confine(slot, (*words, *(word for mount in shown for word in mount.words)))

    def _outside(self, *, network: bool) -> list[str]:
        """The system as it is, without what is hidden of it."""
        empty = [word for path in self.hidden if path != self.home for word in ("--tmpfs", str(path))]
        # What this user cannot even look at needs no cover.
        there = [path for path in SERVICES if os.path.exists(path)]  # noqa: PTH110 - no error without permission
        blocked = [word for path in there for word in (READ, "/dev/null", path)]
        return [self.program, *ALONE, *(() if network else (OFFLINE,)), *SYSTEM, *empty, *blocked]

    def _workspace(self, workspace: Workspace, store: confinement.Store, access: Access) -> list["Mount"]:
        """The worktree, and what belongs to it.

        Everything that iterdev itself relies on is a mount of its own that can only be read: a mount can be neither
        renamed nor replaced. Of git's files, the index and HEAD can be written; no git outside reads them.
        """
        workspace.environments.mkdir(parents=True, exist_ok=True)
        return [
            *self._shown(WRITE, workspace.slot, workspace.temp),
            *self._shown(READ, workspace.private),
            *self._shown(READ_IF_THERE, workspace.slot / BORROWER),
            *self._shown(WRITE, workspace.environments, *access.folders),
            *self._shown(WRITE if access.write else READ, workspace.tree),
            *_mounts(store.objects()),
            *_mounts(confinement.folder_words(store.admin)),
            *self._shown(READ, workspace.tree / ".git"),
        ]

    def _shown(self, option: str, *paths: Path) -> list["Mount"]:
        """Each path at its own place, reached by links that are not hidden."""
        return [Mount(option, path, placed(path, self.hidden) or Path(os.path.realpath(path))) for path in paths]

    def _fixed(self, own_home: Path, mounts: Sequence["Mount"]) -> list[str]:
        """Makes the places of mounts in the home, and each folder above them a mount, which cannot be renamed.

        Bubblewrap follows links when it makes a place, and programs inside can write the home.
        """
        tops: list[Path] = []
        folders: dict[Path, None] = {}
        for mount in mounts:
            if self.home not in mount.place.parents or any(mount.place.is_relative_to(top) for top in tops):
                continue
            if not os.path.exists(mount.source):  # noqa: PTH110 - also where a parent cannot be read
                continue
            tops.append(mount.place)
            inside = mount.place.relative_to(self.home)
            folders |= dict.fromkeys(reversed([folder for folder in inside.parents if folder != Path()]))
            _make_place(own_home, inside, is_folder=mount.source.is_dir())
        return [word for inside in folders for word in (WRITE, str(own_home / inside), str(self.home / inside))]


def build(top: Path, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox of this machine and user; raises if there can be none."""
    program, nests = find()
    try:
        account = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        # As in containers that run with the id of a user of the host.
        account = environment.get("HOME", "/")
    home = Path(os.path.realpath(environment.get("HOME") or account))
    if home.is_relative_to(top) or home == ROOT:
        raise HostError(f'The sandbox hides the home "{home}", and there is no work without it', hint=OFF)
    others = (Path(os.path.realpath(path)) for path in (*SCRATCH, account) if Path(path).is_dir())
    hidden = (*(path for path in others if path != ROOT), home)
    hidden = (*hidden, *_tokens(hidden))
    return Sandbox(program=program, nests=nests, top=top, home=home, hidden=hidden, git_files=command.users_files(top))


def _tokens(hidden: Sequence[Path]) -> Iterator[Path]:
    """Where the tokens of web pages are, if they are not in a folder that is hidden anyway.

    The folder is made, because a server may be started while an agent runs.
    """
    folder = Path(os.path.realpath(paths.web_servers()))
    if not any(folder.is_relative_to(path) for path in hidden):
        paths.make_private(folder)
        yield folder


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


def places_of(argv: Sequence[str], search: str, roots: Sequence[Path], *, besides: Path | None = None) -> list[Path]:
    """What must be visible for a command to work: its own files, and every program on the search path.

    Only places inside of the roots count; everything else is visible anyway. So is the workspace `besides`, from which
    no link is followed: an agent could have one lead to what is hidden.
    """
    named = [shutil.which(argv[0], path=search) or argv[0], *argv[1:]]
    files = [Path(word) for word in named if os.path.isabs(word) and os.path.lexists(word)]  # noqa: PTH117
    files += [Path(entry, "program") for entry in search.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117
    outside = [file for file in files if besides is None or not file.is_relative_to(besides)]
    inside = (placed(hop, roots) for file in outside for hop in _hops(file))
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
