"""iterdev doctor."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from iterdev.core.errors import IterdevError
from iterdev.core.types import WORKERS, Role
from iterdev.engine.repository import STATE, Repository
from iterdev.host import paths
from iterdev.host.git import command, refs
from iterdev.host.sandbox import bubblewrap
from iterdev.surfaces.cli.commands.agents import _row

ENOUGH_DISK = 500 * 1024 * 1024


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
        version = command.version()
        command.check_version(version)
        yield f"git {'.'.join(map(str, version))}", "", ""
        repository = Repository(Path.cwd())
        yield f"repository {repository.top}", "", ""
        yield from _repository_findings(repository)
        yield from _agent_findings(repository)
    except IterdevError as error:
        yield "machine and repository", error.message, error.hint
    yield from _disk_findings()


def _repository_findings(repository: Repository) -> Iterator[tuple[str, str, str]]:
    try:
        refs.head(repository.top)
    except IterdevError as error:
        yield "first commit", error.message, error.hint
    if repository.settings.run.sandbox:
        yield _sandbox_finding(repository)
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


def _agent_findings(repository: Repository) -> Iterator[tuple[str, str, str]]:
    """The agents that a run would start, as they are configured."""
    settings = repository.settings
    for name in sorted({settings.agent_for(Role(role)) for role in WORKERS}):
        try:
            row = _row(name, repository)
        except IterdevError as error:
            yield f"agent {name}", error.message, error.hint
            continue
        note = f" ({row.note})" if row.note else ""
        yield f"agent {name} {row.version}".rstrip() + note, row.problem, row.hint


def _sandbox_finding(repository: Repository) -> tuple[str, str, str]:
    try:
        found = bubblewrap.build(repository.top, os.environ)
    except IterdevError as error:
        return "sandbox", error.message, error.hint
    return f"sandbox {found.program}", "", ""


def _disk_findings() -> Iterator[tuple[str, str, str]]:
    root = paths.state_root()
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    problem = "" if free > ENOUGH_DISK else f"only {free // 2**20} MiB are free at {existing}"
    yield f"disk ({free // 2**30} GiB free at {existing})", problem, "free some space, or set ITERDEV_HOME"
