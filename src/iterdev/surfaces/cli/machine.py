"""agents and doctor: what this machine can do, and what is wrong with it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from iterdev.agents import table
from iterdev.agents.contract import Probe
from iterdev.core.errors import IterdevError
from iterdev.engine.repository import STATE, Repository
from iterdev.host import git, paths

ENOUGH_DISK = 500 * 1024 * 1024


def agents(*, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    configured = repository.settings.agents
    rows = [{"name": name, "kind": _kind(name, repository), **_probed(name, repository)} for name in configured]
    rows += [
        {"name": name, "kind": "known", **_shown(Probe(installed=False, problem="no adapter in this version"))}
        for name in table.KNOWN
        if name not in configured
    ]
    if as_json:
        click.echo(json.dumps({"agents": rows}, ensure_ascii=False))
        return 0
    for row in rows:
        usable = "usable" if row["usable"] else f"not usable: {row['problem']}"
        click.echo(f"{row['name']:<12} {row['kind']:<9} {row['version']:<10} {usable}")
    return 0


def _kind(name: str, repository: Repository) -> str:
    return "scripted" if repository.settings.agents[name].script else "command"


def _probed(name: str, repository: Repository) -> dict[str, object]:
    return _shown(table.make(name, repository.settings.agents, repository.top).probe())


def _shown(probe: Probe) -> dict[str, object]:
    return {
        "installed": probe.installed,
        "usable": probe.installed and not probe.problem,
        "version": probe.version,
        "problem": probe.problem,
        "hint": probe.hint,
    }


def doctor() -> int:
    """0 when all is well, 1 when something wants mending."""
    wrong = False
    for name, problem, hint in _findings():
        wrong = wrong or bool(problem)
        click.echo(f"{'!!' if problem else 'ok'} {name}" + (f": {problem}" if problem else ""))
        if problem and hint:
            click.echo(f"   hint: {hint}")
    return 1 if wrong else 0


def _findings() -> Iterator[tuple[str, str, str]]:
    """What was looked at, what is wrong with it, and how to mend it."""
    found = ".".join(map(str, sys.version_info[:3]))
    yield f"python {found}", "", ""
    try:
        version = git.version()
        git.check_version(version)
        yield f"git {'.'.join(map(str, version))}", "", ""
        repository = Repository(Path.cwd())
        yield f"repository {repository.top}", "", ""
        yield from _repository_findings(repository)
    except IterdevError as error:
        yield "machine and repository", error.message, error.hint
    yield from _disk_findings()


def _repository_findings(repository: Repository) -> Iterator[tuple[str, str, str]]:
    try:
        git.head(repository.top)
    except IterdevError as error:
        yield "first commit", error.message, error.hint
    state = repository.top / STATE
    writable = os.access(state if state.exists() else repository.top, os.W_OK)
    yield "state folder", "" if writable else f'"{state}" is not writable', f"chmod u+w {state}"
    if not repository.has_journal:
        yield "journal (none yet)", "", ""
        return
    problems = repository.journal.problems()
    yield "journal", "; ".join(problems[:3]), "move it away; it is rebuilt from the session folders"
    for session in repository.sessions():
        current = repository.state(session)
        stuck = bool(current.running) and not repository.engine_alive(current)
        yield f"session {session}", "its engine died" if stuck else "", f"iterdev resume {session}"


def _disk_findings() -> Iterator[tuple[str, str, str]]:
    root = paths.state_root()
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    problem = "" if free > ENOUGH_DISK else f"only {free // 2**20} MiB are free at {existing}"
    yield f"disk ({free // 2**30} GiB free at {existing})", problem, "free some space, or set ITERDEV_HOME"
