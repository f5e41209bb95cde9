"""Whether a program is installed, and in which version: as the program reports it, or from its npm package."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.agents.contract import Probe

PROBE_LIMIT = 10.0
"""Seconds for a program to report its version."""

_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Known(Struct, frozen=True, kw_only=True):
    """What is known of a program before it is probed."""

    agent: str
    install: str
    """A command that can be pasted."""
    version: str = ""
    """The last version known to work."""


def probe_program(program: str, known: Known) -> Probe:
    """Runs `PROGRAM --version`, which also shows that the program can be started."""
    if not shutil.which(program):
        return not_found(program, known)
    try:
        version = ask_version(program)
    except (OSError, subprocess.SubprocessError) as error:
        problem = f'The program "{program}" of the agent "{known.agent}" does not report its version: {error}'
        return Probe(installed=False, problem=problem, hint=known.install)
    return Probe(installed=True, version=version, note=version_note(version, known.version))


def not_found(program: str, known: Known) -> Probe:
    problem = f'The program "{program}" of the agent "{known.agent}" was not found'
    return Probe(installed=False, problem=problem, hint=known.install)


def version_note(version: str, known: str) -> str:
    if not known or _numbers(version) <= _numbers(known):
        return ""
    return f"version {version} is newer than {known}, the last one known to work"


def ask_version(program: str) -> str:
    ran = subprocess.run(
        [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_LIMIT, check=True
    )
    return _version_in(ran.stdout.decode(errors="replace"))


class _Package(Struct, frozen=True):
    version: str


def packaged_version(program: str) -> str:
    """The version of the npm package that a program belongs to; starting the program can take a second or two."""
    found = shutil.which(program) or program
    for folder in Path(os.path.realpath(found)).parents:
        scope = folder.parent if folder.parent.name.startswith("@") else folder
        if scope.parent.name != "node_modules":
            continue
        try:
            return _version_in(msgspec.json.decode((folder / "package.json").read_bytes(), type=_Package).version)
        except (OSError, msgspec.DecodeError):
            continue
    return ""


def _version_in(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
