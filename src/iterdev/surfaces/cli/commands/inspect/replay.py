"""iterdev replay."""

import click

from iterdev.app import inspect as app_replay
from iterdev.core.views.replay import replay_document, replay_text
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="Decide a session's journal again, and report the first difference")
@arguments.session
@arguments.as_json
def replay(*, session: str, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    found = repository.find(session)
    replayed = app_replay.replay(repository, found)
    print_either(replay_text(found, replayed), replay_document(found, replayed), as_json=as_json)
    return ExitCode.unfinished if replayed.difference else ExitCode.finished
