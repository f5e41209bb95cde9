"""iterdev status."""

import click

from iterdev.app import inspect
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_document, print_text
from iterdev.surfaces.cli.output.text import status_text


@click.command(help="Show what is done, running and waiting, and on what (also: check)")
@arguments.session
@arguments.as_json
def status(*, session: arguments.SelectedSession, as_json: bool) -> None:
    view = inspect.status(*session)
    # Of thousands of tasks, each of the two takes a while to make.
    if as_json:
        print_document(session_document(view))
    else:
        print_text(status_text(view))
