"""Cargo, Bundler and Composer: where they put what they build or install.

Go, Maven, Gradle, .NET and Swift need nothing: they compile the sources of the folder that they are called in, with
caches of their own for what these depend on.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.host.environments.workplace import CommandFailed, Part, Workplace
from iterdev.host.git.command import git


class Tool(Struct, frozen=True, kw_only=True):
    """A program that installs what a project depends on."""

    name: str
    declares: str
    lock: str
    command: tuple[str, ...]
    installed: Callable[[Workplace], Path]
    variables: Callable[[Path], Mapping[str, str]] = lambda _: {}


TOOLS = (
    Tool(
        name="bundle",
        declares="Gemfile",
        lock="Gemfile.lock",
        command=("bundle", "install", "--quiet"),
        installed=lambda work: work.home / "bundle",
        variables=lambda folder: {"BUNDLE_PATH": str(folder), "BUNDLE_APP_CONFIG": str(folder / "config")},
    ),
    Tool(
        name="composer",
        declares="composer.json",
        lock="composer.lock",
        command=("composer", "install", "--no-interaction", "--no-progress", "--quiet"),
        installed=lambda work: work.tree / "vendor",
    ),
)


async def prepare(work: Workplace) -> AsyncIterator[Part]:
    if (work.tree / "Cargo.toml").is_file() and not _is_ignored(work.tree, "target/"):
        yield Part(variables={"CARGO_TARGET_DIR": str(work.home / "cargo-target")})
    for tool in TOOLS:
        if (work.tree / tool.declares).is_file() and not _is_tracked(work.tree, "vendor/"):
            yield await _install(work, tool)


async def _install(work: Workplace, tool: Tool) -> Part:
    folder = tool.installed(work)
    variables = tool.variables(folder)
    marker = work.home / f"{tool.name}.key"
    wanted = _digest(work.tree, tool)
    if folder.is_dir() and marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return Part(variables=variables, described=(f"`{tool.name}`: made before in this workspace",))
    if work.program(tool.name) is None:
        problem = f"`{tool.name}` is not installed, and the project's {tool.declares} needs it"
        return Part(problems=(f"{problem}; install it, or set `setup` under [project] in iterdev.toml",))
    try:
        await work.call(*tool.command, variables=variables)
    except CommandFailed as failed:
        hint = "set `setup` under [project] in iterdev.toml to install what it needs yourself"
        return Part(variables=variables, problems=(f"{failed}; {hint}",))
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(wanted, encoding="utf-8")
    return Part(variables=variables, described=(f"`{' '.join(tool.command)}` from {tool.declares}",))


def applies(tree: Path) -> bool:
    return any((tree / name).is_file() for name in ("Cargo.toml", *(tool.declares for tool in TOOLS)))


def digest(tree: Path) -> str:
    """Of what decides which packages the tools install."""
    return "".join(_digest(tree, tool) for tool in TOOLS)


def _digest(tree: Path, tool: Tool) -> str:
    files = (tree / tool.declares, tree / tool.lock)
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files if file.is_file())).hexdigest()


def _is_ignored(tree: Path, name: str) -> bool:
    return git("check-ignore", "--quiet", name, cwd=tree, accept=(0, 1)).returncode == 0


def _is_tracked(tree: Path, name: str) -> bool:
    return bool(git("ls-files", "--", name, cwd=tree).stdout)
