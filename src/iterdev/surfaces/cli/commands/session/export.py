"""iterdev export."""

from pathlib import Path

import click

from iterdev.app import completion
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Copy what a finished session made to the folder PATH, then archive it")
@arguments.session
@click.argument("path", type=click.Path(path_type=Path))
def export(*, session: arguments.SelectedSession, path: Path) -> None:
    click.echo(completion_text(completion.export(*session, path)))
