"""Cargo, Bundler and Composer: where they put what they build or install.

Go, Maven, Gradle, .NET and Swift need nothing: they compile the sources of the folder that they are called in, with
caches of their own for what these depend on.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.environments import folder_copies
from iterdev.host.environments.folder_copies import Moves
from iterdev.host.environments.workplace import CommandFailed, Part, Workplace, seconds_since
from iterdev.host.git.command import git
from iterdev.host.threads import in_thread


class Tool(Struct, frozen=True, kw_only=True):
    """A program that installs what a project depends on."""

    name: str
    declares: str
    lock: str
    command: tuple[str, ...]
    installed: Callable[[Workplace], Path]
    variables: Callable[[Path], Mapping[str, str]] = lambda _: {}
    check: tuple[str, ...] = ()
    """Succeeds if the machine has all that the project depends on."""
    copied: str = ""
    """The folder of the checkout that serves where nothing can be installed."""
    offline: tuple[str, ...] = ()
    """Makes the project's own classes loadable without installing anything."""


TOOLS = (
    Tool(
        name="bundle",
        declares="Gemfile",
        lock="Gemfile.lock",
        command=("bundle", "install", "--quiet"),
        installed=lambda work: work.home / "bundle",
        variables=lambda folder: {"BUNDLE_PATH": str(folder), "BUNDLE_APP_CONFIG": str(folder / "config")},
        check=("bundle", "check", "--dry-run"),
    ),
    Tool(
        name="composer",
        declares="composer.json",
        lock="composer.lock",
        command=("composer", "install", "--no-interaction", "--no-progress", "--quiet"),
        installed=lambda work: work.tree / "vendor",
        copied="vendor",
        offline=("composer", "dump-autoload", "--dev", "--no-interaction", "--quiet"),
    ),
)


WIDE = {"COLUMNS": "300", "THOR_COLUMNS": "300"}
"""Composer and Bundler break the lines of their messages to fit a terminal."""


async def prepare(work: Workplace) -> AsyncIterator[Part]:
    if (work.tree / "Cargo.toml").is_file() and not _is_ignored(work.tree, "target/"):
        yield Part(variables={"CARGO_TARGET_DIR": str(work.home / "cargo-target")})
    for tool in TOOLS:
        if _applies(work.tree, tool):
            yield await _install(work, tool)


def _applies(tree: Path, tool: Tool) -> bool:
    return (tree / tool.declares).is_file() and not _is_tracked(tree, "vendor/")


async def _install(work: Workplace, tool: Tool) -> Part:
    started = anyio.current_time()
    folder = tool.installed(work)
    variables = tool.variables(folder)
    if _is_installed(work, tool):
        return Part(variables=variables, described=(f"`{tool.name}`: made before in this workspace",))
    if work.program(tool.name) is None:
        problem = f"`{tool.name}` is not installed, and the project's {tool.declares} needs it"
        return Part(problems=(f"{problem}; install it, or set `setup` under [project] in iterdev.toml",))
    if await _is_on_machine(work, tool):
        return Part(described=(f"`{tool.name}`: all that {tool.declares} needs is installed on this machine",))
    try:
        await work.call(*tool.command, variables={**variables, **WIDE})
    except CommandFailed as failed:
        hint = "set `setup` under [project] in iterdev.toml to install what it needs yourself"
        copied = await in_thread(_copy_users, work, tool)
        if tool.offline and failed.offline and not copied:
            with suppress(CommandFailed):
                await work.call(*tool.offline, variables={**variables, **WIDE})
        instead = (f"`{tool.name}`: a copy of your {tool.copied}",) if copied else ()
        return Part(variables=variables, described=instead, problems=(f"{failed}; {hint}",))
    untrusted_files.write_bytes(_marker(work, tool), _digest(work.tree, tool).encode(), root=work.made_home())
    described = f"`{' '.join(tool.command)}` from {tool.declares} in {seconds_since(started)}"
    return Part(variables=variables, described=(described,), new=True)


async def _is_on_machine(work: Workplace, tool: Tool) -> bool:
    if not tool.check:
        return False
    with suppress(CommandFailed):
        await work.call(*tool.check)
        return True
    return False


def _copy_users(work: Workplace, tool: Tool) -> bool:
    """Copies what the user has installed; links into the checkout then lead into the workspace."""
    users = work.checkout / tool.copied if work.checkout and tool.copied else None
    if not users or not users.is_dir():
        return False
    target, moves = work.tree / tool.copied, Moves({str(work.checkout): str(work.tree)})
    untrusted_files.remove(target, root=work.tree)
    folder_copies.lay(users, folder_copies.listing(users, moves), target, moves, root=work.tree, hard_links=False)
    return True


def _marker(work: Workplace, tool: Tool) -> Path:
    return work.home / f"{tool.name}.key"


def _is_installed(work: Workplace, tool: Tool) -> bool:
    """Whether this workspace has what the tool would install."""
    marked = untrusted_files.read_or_empty(_marker(work, tool), root=work.home)
    return tool.installed(work).is_dir() and marked == _digest(work.tree, tool).encode()


def is_at_hand(work: Workplace) -> bool:
    """Whether no tool would install anything."""
    return all(_is_installed(work, tool) for tool in TOOLS if _applies(work.tree, tool))


def planned(tree: Path) -> Iterator[str]:
    for tool in TOOLS:
        if _applies(tree, tool):
            installed = "what is installed on this machine, else " if tool.check else ""
            yield f"`{tool.name}`, {installed}made by `{' '.join(tool.command)}`"


def applies(tree: Path) -> bool:
    return any((tree / name).is_file() for name in ("Cargo.toml", *(tool.declares for tool in TOOLS)))


def digest(tree: Path) -> str:
    """Of what decides which packages the tools install."""
    return "".join(_digest(tree, tool) for tool in TOOLS)


def _digest(tree: Path, tool: Tool) -> str:
    files = (tree / tool.declares, tree / tool.lock)
    return hashlib.sha256(b"\0".join(untrusted_files.read_or_empty(f) for f in files if f.is_file())).hexdigest()


def _is_ignored(tree: Path, name: str) -> bool:
    return git("check-ignore", "--quiet", name, cwd=tree, accept=(0, 1)).returncode == 0


def _is_tracked(tree: Path, name: str) -> bool:
    return bool(git("ls-files", "--", name, cwd=tree).stdout)
