"""iterdev report."""

from pathlib import Path

import click

from iterdev.core.views import report as reports
from iterdev.engine.repository import Repository


def report(*, session: str | None) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session) if session else repository.newest())
    click.echo(reports.report(state), nl=False)
    return 0
