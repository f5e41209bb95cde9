"""iterdev archive."""

import click

from iterdev.app import completion
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Archive a finished session; its branch and its files stay")
@arguments.session
def archive(*, session: arguments.SelectedSession) -> None:
    click.echo(completion_text(completion.archive(*session)))
