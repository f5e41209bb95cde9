"""Whether a program is installed, and in which version: asked of the program, or read from the npm package it is in."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.agents.contract import Probe

PROBE_LIMIT = 10.0
"""Seconds for a program to tell its version."""

_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Known(Struct, frozen=True, kw_only=True):
    """What is known of a program before it is looked at."""

    agent: str
    install: str
    """A command to paste."""
    version: str = ""
    """The last one known to work."""


def probed(program: str, known: Known) -> Probe:
    """Starts the program to ask for its version, which also shows that it can be started."""
    if not shutil.which(program):
        return missing(program, known)
    try:
        version = told_version(program)
    except (OSError, subprocess.SubprocessError) as error:
        problem = f'The program "{program}" of the agent "{known.agent}" does not tell its version: {error}'
        return Probe(installed=False, problem=problem, hint=known.install)
    return Probe(installed=True, version=version, note=note_on(version, known.version))


def missing(program: str, known: Known) -> Probe:
    problem = f'The program "{program}" of the agent "{known.agent}" was not found'
    return Probe(installed=False, problem=problem, hint=known.install)


def note_on(version: str, known: str) -> str:
    if not known or _numbers(version) <= _numbers(known):
        return ""
    return f"version {version} is newer than {known}, the last one known to work"


def told_version(program: str) -> str:
    ran = subprocess.run(
        [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_LIMIT, check=True
    )
    return _version_in(ran.stdout.decode(errors="replace"))


class _Package(Struct, frozen=True):
    version: str


def packaged_version(program: str) -> str:
    """The version of the npm package that a program belongs to; starting it to ask can take a second or two."""
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
