"""iterdev accept."""

from pathlib import Path

import click

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.session.events import Accepted
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.host.git import landing, refs
from iterdev.store.session_log import SessionLog


def accept(*, session: str | None) -> int:
    repository = Repository(Path.cwd())
    found = repository.find(session) if session else repository.newest()
    log = SessionLog(repository.journal, found, now=clock.now)
    state = log.state
    if repository.engine_alive(state):
        raise UserError(f'"{found}" is still running', hint=f"iterdev status {found}")
    if not state.is_finished:
        raise UserError(f'"{found}" is not finished', hint=f"iterdev resume {found}")
    if state.tip == state.session.base:
        raise UserError(f'"{found}" has changed nothing', hint=f"iterdev report {found}")
    into = state.session.branch or refs.current_branch(repository.top)
    commit = landing.accept(repository.top, ids.branch(found), into, found)
    log.record(Accepted(into, commit))
    click.echo(f"{into} is now at {commit[:12]} with the work of {found}")
    return 0
