"""iterdev report."""

import click

from iterdev.app import inspect
from iterdev.app.sessions import named_or_newest
from iterdev.surfaces.cli import arguments


@click.command(help="Print the report of a session")
@arguments.any_session
def report(*, session: str | None) -> None:
    repository = arguments.current_repository()
    click.echo(inspect.report(repository, named_or_newest(repository, session)), nl=False)
