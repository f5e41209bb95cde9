"""iterdev export."""

from pathlib import Path

import click

from iterdev.app import completion
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Copy the results of a finished session to the folder PATH, then archive it")
@arguments.session
@click.argument("path", type=click.Path(path_type=Path))
@arguments.as_json
def export(*, session: arguments.SelectedSession, path: Path, as_json: bool) -> None:
    view = completion.export(*session, path)
    document = session_document(view) | {"exported": view.outcome.exported}
    print_either(completion_text(view), document, as_json=as_json)
