"""iterdev replay."""

import click

from iterdev.app import inspect
from iterdev.core.views.replay import replay_document, replay_text
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.progress import progress_bar


@click.command(help="Repeat every decision in a session's journal, and report the first difference")
@arguments.session
@arguments.as_json
def replay(*, session: arguments.SelectedSession, as_json: bool) -> ExitCode:
    with progress_bar("deciding again") as seen:
        replayed = inspect.replay(*session, seen)
    print_either(replay_text(session.id, replayed), replay_document(session.id, replayed), as_json=as_json)
    return ExitCode.unfinished if replayed.difference else ExitCode.finished
