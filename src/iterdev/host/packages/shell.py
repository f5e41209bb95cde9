"""Runs the tools of an ecosystem in a project's folder, each limited in time."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.formatting import plain
from iterdev.host import untrusted_files
from iterdev.host.processes.spawn import ProgramResult, Spawn, run

SECONDS = 60.0
LINE_LIMIT = 500
"""Characters of what a tool says."""


class Found(Struct, frozen=True, kw_only=True):
    version: str | None = None
    """The installed version; None if the package is missing."""
    fits: bool = False
    reason: str = ""
    """Why it is missing or does not fit, if that is not obvious."""


class NoTool(Exception):
    """The tool of the ecosystem is not installed."""


class Shell(Struct, frozen=True, kw_only=True):
    tree: Path
    """The project's folder."""
    temp: Path
    """A folder for files that are needed only while a tool runs."""
    env: Mapping[str, str]
    spawn: Spawn

    def path_of(self, program: str) -> Path:
        found = shutil.which(program, path=self.env.get("PATH"))
        if found is None:
            raise NoTool(f"{program} is not installed, so the package cannot be checked")
        return Path(found).resolve()

    def write(self, path: Path, text: str) -> None:
        """Writes a file for a tool below the folder of such files; tools of the project can write there too."""
        untrusted_files.write_bytes(path, text.encode(), root=self.temp)

    async def run(self, *argv: str, cwd: Path | None = None, **env: str) -> ProgramResult:
        self.path_of(argv[0])
        return await run(self.spawn, argv, cwd=str(cwd or self.tree), env={**self.env, **env}, limit=SECONDS)


def last_line(output: bytes) -> str:
    lines = plain(output.decode("utf-8", "replace")).strip().splitlines()
    return lines[-1].strip()[:LINE_LIMIT] if lines else ""


def document(output: bytes) -> dict[str, object]:
    """The JSON object that a tool printed; empty if it printed anything else."""
    try:
        return msgspec.json.decode(output, type=dict[str, object])
    except (ValueError, RecursionError):
        return {}
