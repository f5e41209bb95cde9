"""What the makers of environments share: the workspace, how programs run in it, and what each of them made."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import anyio
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.host.environments.cache import Cache
from iterdev.host.git.command import git_names
from iterdev.host.processes.spawn import ProgramResult

OFFLINE = (
    "name resolution",
    "Name or service not known",
    "nodename nor servname",
    "Network is unreachable",
    "No route to host",
    "Connection refused",
    "Connection timed out",
    "Failed to establish a new connection",
    "error sending request",
    "dns error",
    "Failed to fetch",
    "network connectivity is disabled",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ENETUNREACH",
    "ENOTCACHED",
    "Could not reach host",
)
"""What package managers print when they cannot reach a registry."""


UNTELLING = ("npm warn", "npm notice", "npm http", "warning:", "install [--", "\N{BLACK RIGHTWARDS ARROWHEAD} yn0000:")
ERRORS = ("error", "npm error", "npm err!", "fatal", "modulenotfounderror", "\N{MULTIPLICATION SIGN} ")


class RunCommand(Protocol):
    async def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float
    ) -> ProgramResult: ...


class CommandFailed(Exception):
    """A program that should make an environment failed."""

    def __init__(self, command: str, output: str) -> None:
        self.command = command
        self.output = output
        super().__init__(f"`{command}` failed: {last_line(output).rstrip('.')}")

    @property
    def offline(self) -> bool:
        return any(words in self.output for words in OFFLINE)


class Workplace(Struct, frozen=True, kw_only=True):
    """A workspace whose environment is made."""

    tree: Path
    home: Path
    """Where the environments of the workspace are, outside of its tree."""
    cache: Cache
    checkout: Path | None
    trusted: bool
    """Whether the project's files are those of the session's base, so that other workspaces may share the result."""
    hard_links: bool
    """Whether the workspace may share files with the cache that a write in place would change for everybody."""
    run: RunCommand
    variables: Mapping[str, str]
    """Of the programs that run in the workspace."""
    limit: float
    printed: list[str] = []
    """What the programs printed that made the environment so far."""

    def made_home(self) -> Path:
        """The folder of the environments, which programs in the workspace can write too."""
        self.home.mkdir(parents=True, exist_ok=True)
        return self.home

    def program(self, name: str) -> str | None:
        return shutil.which(name, path=self.variables.get("PATH"))

    async def call(self, *argv: str, variables: Mapping[str, str] | None = None) -> str:
        """The output of a program that succeeds."""
        environment = {**self.variables, **(variables or {})}
        try:
            done = await self.run(argv, cwd=str(self.tree), env=environment, limit=self.limit)
        except HostError as error:
            raise CommandFailed(_shown(argv), error.message) from error
        output = done.stdout.decode("utf-8", "replace")
        if done.timed_out:
            raise CommandFailed(_shown(argv), f"it took longer than {duration(self.limit)}")
        everything = f"{output}\n{done.stderr.decode('utf-8', 'replace')}"
        if done.code:
            raise CommandFailed(_shown(argv), everything)
        self.printed.append(everything)
        return output

    def untracked(self) -> frozenset[str]:
        """Every file in the tree that git does not track, ignored or not, except for installed packages."""
        names = git_names("ls-files", "--others", "-z", "--", ".", ":(exclude,glob)**/node_modules/**", cwd=self.tree)
        return frozenset(names)


class Part(Struct, frozen=True, kw_only=True):
    """What was made for one ecosystem."""

    made: bool = True
    """False if nothing is needed."""
    new: bool = False
    """Whether it was installed just now, and was neither kept nor there before."""
    variables: Mapping[str, str] = {}
    described: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders outside of the workspace that its programs read."""


def seconds_since(started: float) -> str:
    return duration(anyio.current_time() - started)


def last_line(output: str) -> str:
    """The line that says why: the last one, or the last that calls itself an error."""
    stripped = (line.strip() for line in output.splitlines())
    lines = [line for line in stripped if line and not line.lower().startswith(UNTELLING)]
    errors = [line for line in lines if line.lower().startswith(ERRORS)]
    telling = [line for line in errors if "a complete log of this run" not in line.lower()]
    return (telling or lines or ["no message"])[-1][:300]


def _shown(argv: Sequence[str]) -> str:
    words = [Path(argv[0]).name, *argv[1:]]
    text = " ".join(words)
    return text if len(text) <= 120 else f"{text[:117]}..."
