"""iterdev why."""

import click

from iterdev.app import inspect
from iterdev.surfaces.cli import arguments


@click.command(help="Show exactly what a task waits for")
@arguments.session
@click.argument("task")
def why(*, session: arguments.SelectedSession, task: str) -> None:
    click.echo("\n".join(inspect.why(*session, task)))
