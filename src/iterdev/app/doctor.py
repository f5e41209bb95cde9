"""Checks the machine, the repository and its sessions, and says how to fix what is wrong."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from iterdev.app.agents import agent_view
from iterdev.app.sessions import main_worktree
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.settings import Settings
from iterdev.core.types import Role
from iterdev.engine import repairs
from iterdev.engine.repository import STATE, Repository
from iterdev.host import paths
from iterdev.host.environments import environment
from iterdev.host.git import command, refs, session_branch
from iterdev.host.git.checkout import NotInRepository
from iterdev.host.sandbox import bubblewrap
from iterdev.host.secrets import allowed_environment
from iterdev.host.workspaces.pool import SET_ASIDE
from iterdev.teams.table import DEFAULT_TEAM

ENOUGH_DISK = 500 * 1024 * 1024


class Finding(Struct, frozen=True):
    """What was checked; if something is wrong with it, the problem and how to fix it."""

    subject: str
    problem: str = ""
    hint: str = ""
    fixed: str = ""
    """What was wrong, and what was done about it."""


def findings(folder: Path, *, fix: bool = False) -> Iterator[Finding]:
    """What was checked, one after the other; with `fix`, what can be repaired is repaired."""
    yield Finding(f"python {'.'.join(map(str, sys.version_info[:3]))}")
    try:
        version = command.version()
        command.check_version(version)
        yield Finding(f"git {'.'.join(map(str, version))}")
        yield from _in_repository(folder, fix=fix)
    except IterdevError as error:
        yield Finding("machine and repository", error.message, error.hint)
    yield _disk()


def _in_repository(folder: Path, *, fix: bool) -> Iterator[Finding]:
    """The repository and its agents; outside of one, the agents that are used without a configuration."""
    try:
        repository = Repository(folder)
    except NotInRepository:
        yield Finding("no repository here; in one, its settings and sessions are checked too")
        yield from _agents(Settings(), DEFAULT_TEAM.workers, folder)
        return
    yield Finding(f"repository {repository.top}")
    if main := main_worktree(repository):
        yield Finding(f"linked worktree of {main}; `git worktree remove` deletes the sessions in it")
    yield from _repository(repository)
    yield from _state(repository, fix=fix)
    if repository.settings.remote.engine:
        yield from _hosts(repository)
    else:
        yield from _agents(repository.settings, repository.workers, repository.top)


def _hosts(repository: Repository) -> Iterator[Finding]:
    """The agents of hosts, instead of those of this machine."""
    from iterdev.app.remote.checks import engine_findings  # noqa: PLC0415 - only for those who use hosts

    agents = {repository.settings.agent_for(role) for role in repository.workers}

    async def found() -> list[Finding]:
        return [finding async for finding in engine_findings(repository, agents)]

    yield from anyio.run(found)


def _repository(repository: Repository) -> Iterator[Finding]:
    try:
        refs.head(repository.top)
    except IterdevError as error:
        yield Finding("first commit", error.message, error.hint)
    try:
        session_branch.check_name(repository.top)
    except IterdevError as error:
        yield Finding("branches of sessions", error.message, error.hint)
    if repository.settings.run.sandbox:
        yield _sandbox(repository)
    yield from _environments(repository)
    state = repository.top / STATE
    writable = os.access(state if state.exists() else repository.top, os.W_OK)
    yield Finding("state folder", "" if writable else f'"{state}" is not writable', f"chmod u+w {state}")


def _state(repository: Repository, *, fix: bool) -> Iterator[Finding]:
    """What is repaired, and what of the state needs no repair."""
    seen = set[str]()
    for repair in repairs.needed(repository):
        seen.add(repair.subject)
        yield _repaired(repair) if fix else Finding(repair.subject, repair.problem, repair.hint)
    if not repository.has_journal:
        yield Finding("journal (none yet)")
        return
    subjects = ("journal", *(f"session {session}" for session in repository.sessions()))
    yield from (Finding(subject) for subject in subjects if subject not in seen)
    for kept in sorted((paths.state_root() / SET_ASIDE / paths.workspaces_of(repository.top).name).glob("*")):
        yield Finding(f"work that could not be read is kept in {kept}")
    for old in repository.damaged_journals():
        yield Finding(f"journal that was damaged is kept as {old}")


def _repaired(repair: repairs.Repair) -> Finding:
    try:
        return Finding(repair.subject, fixed=f"{repair.problem}; {repair.fix()}")
    except (IterdevError, OSError) as error:
        # Its own hint may name the command that led here.
        message = error.message if isinstance(error, IterdevError) else f"{error.strerror}: {error.filename}"
        own = error.hint if isinstance(error, UserError) else None
        hint = own or "make the repository and ITERDEV_HOME writable, with free space; what git says of it: git fsck"
        return Finding(repair.subject, f"{repair.problem}, and cannot be repaired: {message}", hint)


def _environments(repository: Repository) -> Iterator[Finding]:
    """What programs in a workspace would use; nothing is made."""
    if setup := repository.settings.project.setup:
        yield Finding(f"environment, made by `{setup}`")
        return
    top, variables = repository.top, allowed_environment(os.environ)
    for plan in environment.plans(top, cache=paths.environments(), checkout=top, variables=variables):
        kept = f"in the cache, made {plan.installed}" if plan.installed else "in the cache"
        yield Finding(f"environment of {plan.described} ({kept if plan.cached else 'not made yet'})")


def _agents(settings: Settings, roles: Sequence[Role], top: Path) -> Iterator[Finding]:
    """The agents that a run would start, as they are configured."""
    for name in sorted({settings.agent_for(role) for role in roles}):
        try:
            agent = agent_view(settings.agents, top, name)
        except IterdevError as error:
            yield Finding(f"agent {name}", error.message, error.hint)
            continue
        note = f" ({agent.note})" if agent.note else ""
        yield Finding(f"agent {name} {agent.version}".rstrip() + note, agent.problem, agent.hint)


def _sandbox(repository: Repository) -> Finding:
    try:
        return Finding(f"sandbox {bubblewrap.build(repository.top, os.environ).program}")
    except IterdevError as error:
        return Finding("sandbox", error.message, error.hint)


def _disk() -> Finding:
    root = paths.state_root()
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    problem = "" if free > ENOUGH_DISK else f"only {free // 2**20} MiB are free at {existing}"
    subject = f"disk ({free // 2**30} GiB free at {existing})"
    return Finding(subject, problem, "free some space, or set ITERDEV_HOME")
