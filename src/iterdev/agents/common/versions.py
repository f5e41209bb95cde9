"""Whether a program is installed, and in which version: as the program reports it, or from its npm package."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.agents.contract import Probe

PROBE_LIMIT = 60.0
"""Seconds for a program to report its version; one of 200 MB that has just been installed takes some on a busy disk."""

_VERSION = re.compile(r"\d+(?:\.\d+)+")


def probe_program(program: str, *, agent: str, install: str, last_known_good: str) -> Probe:
    """Runs `PROGRAM --version`, which also shows that the program can be started. `install` is a command."""
    if not shutil.which(program):
        return not_found(program, agent, install)
    command = [program, "--version"]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_LIMIT, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        problem = f'The program "{program}" of the agent "{agent}" does not report its version: {error}'
        return Probe(installed=False, problem=problem, hint=install)
    version = _version_in(ran.stdout.decode(errors="replace"))
    return Probe(installed=True, version=version, note=version_note(version, last_known_good))


def not_found(program: str, agent: str, hint: str) -> Probe:
    problem = f'The program "{program}" of the agent "{agent}" was not found'
    return Probe(installed=False, problem=problem, hint=hint)


def version_note(version: str, last_known_good: str) -> str:
    if not last_known_good or _numbers(version) <= _numbers(last_known_good):
        return ""
    return f"version {version} is newer than {last_known_good}, the last one known to work"


class _Package(Struct, frozen=True):
    version: str


def packaged_version(program: str) -> str:
    """The version of the npm package that a program belongs to; starting the program can take a second or two."""
    found = shutil.which(program) or program
    for folder in Path(os.path.realpath(found)).parents:
        scope = folder.parent if folder.parent.name.startswith("@") else folder
        if scope.parent.name == "node_modules":
            with suppress(OSError, ValueError, RecursionError):
                return _version_in(msgspec.json.decode((folder / "package.json").read_bytes(), type=_Package).version)
    return ""


def _version_in(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:9])
