"""What every ecosystem is asked through: programs in a project's folder, each limited in time."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.host.processes.spawn import Finished, Spawn, run

SECONDS = 60.0


class Found(Struct, frozen=True, kw_only=True):
    """What an ecosystem says about a package."""

    version: str | None = None
    """The version that is there; none if it is missing."""
    fits: bool = False
    reason: str = ""
    """Why it is missing or does not fit, if that needs words."""


class NoTool(Exception):
    """The program that would know is not installed."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program} is not installed, so nobody can tell")


class Shell(Struct, frozen=True, kw_only=True):
    tree: Path
    """The project's folder."""
    temp: Path
    """A folder for files that are needed only while a tool is asked."""
    env: Mapping[str, str]
    spawn: Spawn
    limit: float = SECONDS

    def path_of(self, program: str) -> Path:
        found = shutil.which(program, path=self.env.get("PATH"))
        if found is None:
            raise NoTool(program)
        return Path(found).resolve()

    async def run(self, *argv: str, cwd: Path | None = None, **env: str) -> Finished:
        if shutil.which(argv[0], path=self.env.get("PATH")) is None:
            raise NoTool(argv[0])
        return await run(self.spawn, argv, cwd=str(cwd or self.tree), env={**self.env, **env}, limit=self.limit)


def last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def document(said: bytes) -> dict[str, object]:
    """The JSON object that a tool printed, or nothing."""
    try:
        found = json.loads(said)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
