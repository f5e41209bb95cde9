"""iterdev status."""

import click

from iterdev.app import inspect
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import status_text


@click.command(help="Show what is done, running and waiting, and on what (also: check)")
@arguments.session
@arguments.as_json
def status(*, session: arguments.SelectedSession, as_json: bool) -> None:
    view = inspect.status(*session)
    print_either(status_text(view), session_document(view), as_json=as_json)
