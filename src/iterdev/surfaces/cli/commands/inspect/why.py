"""iterdev why."""

import click

from iterdev.app import inspect
from iterdev.surfaces.cli import arguments


@click.command(help="Show exactly what a task waits for")
@arguments.session
@click.argument("task")
def why(*, session: str, task: str) -> None:
    repository = arguments.current_repository()
    for line in inspect.why(repository, repository.find(session), task):
        click.echo(line)
