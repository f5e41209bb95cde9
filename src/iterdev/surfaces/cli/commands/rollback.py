"""iterdev rollback."""

from pathlib import Path

import click

from iterdev.app.rollback import roll_back
from iterdev.core import ids
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_log import Book


def rollback(*, session: str, task: str, reason: str) -> int:
    repository = Repository(Path.cwd())
    book = Book(repository.journal, repository.find(session), now=clock.now)
    planned = roll_back(repository, book, task, reason)
    undone = ", ".join([*(row.id for row in planned.rows), *planned.removed])
    click.echo(f"{ids.branch(book.session)} is at {planned.tip[:12]} again, as before {task}; undone: {undone}")
    if book.state.accepted:
        click.echo(f"{book.state.session.branch} keeps what was accepted as {book.state.accepted[:12]}")
    click.echo(f"Go on with: iterdev resume {book.session}")
    return 0
