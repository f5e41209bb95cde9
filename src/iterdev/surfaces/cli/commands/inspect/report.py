"""iterdev report."""

import click

from iterdev.app import inspect
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="Print the report of a session")
@arguments.session
@arguments.as_json
def report(*, session: arguments.SelectedSession, as_json: bool) -> None:
    text = inspect.report(*session)
    print_either(text.rstrip("\n"), {"session": session.id, "report": text}, as_json=as_json)
