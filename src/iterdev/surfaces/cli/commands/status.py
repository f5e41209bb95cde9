"""iterdev status."""

import click

from iterdev.app import inspect
from iterdev.app.sessions import named_or_newest
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.messages import print_document
from iterdev.surfaces.cli.output.text import status_text


@click.command(help="Show what is done, running and waiting, and on what (also: check)")
@arguments.any_session
@arguments.as_json
def status(*, session: str | None, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    view = inspect.status(repository, named_or_newest(repository, session))
    if as_json:
        print_document(session_document(view))
    else:
        click.echo(status_text(view))
    return ExitCode.finished
