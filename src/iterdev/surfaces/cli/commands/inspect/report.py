"""iterdev report."""

import click

from iterdev.app import inspect
from iterdev.surfaces.cli import arguments


@click.command(help="Print the report of a session")
@arguments.any_session
def report(*, session: arguments.SelectedSession) -> None:
    click.echo(inspect.report(*session), nl=False)
