"""Checks the machine, the repository and its sessions, and says how to fix what is wrong."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.app.agents import agent_view
from iterdev.app.sessions import main_worktree
from iterdev.core.errors import IterdevError
from iterdev.core.settings import Settings
from iterdev.core.types import Role
from iterdev.engine.repository import STATE, Repository
from iterdev.host import paths
from iterdev.host.environments import environment
from iterdev.host.git import command, refs, session_branch
from iterdev.host.git.checkout import NotInRepository
from iterdev.host.sandbox import bubblewrap
from iterdev.host.secrets import allowed_environment
from iterdev.store.session_log import Unfoldable
from iterdev.teams.table import DEFAULT_TEAM

ENOUGH_DISK = 500 * 1024 * 1024


class Finding(Struct, frozen=True):
    """What was looked at; if something is wrong with it, the problem and how to fix it."""

    subject: str
    problem: str = ""
    hint: str = ""


def findings(folder: Path) -> Iterator[Finding]:
    yield Finding(f"python {'.'.join(map(str, sys.version_info[:3]))}")
    try:
        version = command.version()
        command.check_version(version)
        yield Finding(f"git {'.'.join(map(str, version))}")
        yield from _in_repository(folder)
    except IterdevError as error:
        yield Finding("machine and repository", error.message, error.hint)
    yield _disk()


def _in_repository(folder: Path) -> Iterator[Finding]:
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
    yield from _agents(repository.settings, repository.workers, repository.top)


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
    if not repository.has_journal:
        yield Finding("journal (none yet)")
        return
    problems = [*repository.journal.problems(), *_contradictions(repository)]
    hint = f"mkdir {state}/kept && mv {repository.journal.path}* {state}/kept; it is rebuilt from the session folders"
    yield Finding("journal", "; ".join(problems[:3]), hint)
    incomplete = repository.incomplete()
    for summary in repository.summaries():
        stuck = (summary.attempts and not repository.engine_alive(summary)) or summary.id in incomplete
        yield Finding(f"session {summary.id}", "its engine died" if stuck else "", f"iterdev resume {summary.id}")


def _contradictions(repository: Repository) -> Iterator[str]:
    """What keeps sessions from being used although every entry of the journal can be read."""
    for session in repository.sessions():
        try:
            repository.state(session)
        except Unfoldable as error:
            yield f"{session}: {error.message}"


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
