"""iterdev reopen."""

import click

from iterdev.app import completion
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Reopen an archived session")
@arguments.session
@arguments.as_json
def reopen(*, session: arguments.SelectedSession, as_json: bool) -> None:
    view = completion.reopen(*session)
    print_either(completion_text(view), session_document(view), as_json=as_json)
