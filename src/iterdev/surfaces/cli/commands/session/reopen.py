"""iterdev reopen."""

import click

from iterdev.app import completion
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Reopen an archived session")
@arguments.session
def reopen(*, session: arguments.SelectedSession) -> None:
    click.echo(completion_text(completion.reopen(*session)))
