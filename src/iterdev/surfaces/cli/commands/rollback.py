"""iterdev rollback."""

from pathlib import Path

import click

from iterdev.app.rollback import roll_back
from iterdev.core import ids
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_log import SessionLog


def rollback(*, session: str, task: str, reason: str) -> int:
    repository = Repository(Path.cwd())
    log = SessionLog(repository.journal, repository.find(session), now=clock.now)
    planned = roll_back(repository, log, task, reason)
    undone = ", ".join([*(row.id for row in planned.rows), *planned.removed])
    click.echo(f"{ids.branch(log.session)} is at {planned.tip[:12]} again, as before {task}; undone: {undone}")
    if log.state.accepted:
        click.echo(f"{log.state.session.branch} keeps what was accepted as {log.state.accepted[:12]}")
    click.echo(f"Go on with: iterdev resume {log.session}")
    return 0
