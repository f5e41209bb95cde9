"""iterdev update."""

import click

from iterdev.app.branches.update import request_update
from iterdev.app.resume import BeforeStarts
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.session_run import show_run


@click.command(help="Merge the branch that a session came from into the session, and test the result")
@arguments.session
@arguments.yes
@arguments.as_json
def update(*, session: arguments.SelectedSession, yes: bool, as_json: bool) -> ExitCode:
    asked = request_update(*session)
    if not asked.is_new:
        text = f"{session.id} already has everything of {asked.branch} ({asked.commit[:12]})"
        print_either(text, {"session": session.id, "branch": asked.branch, "updated": False}, as_json=as_json)
        return ExitCode.finished
    # A session that was paused stays paused: its agents are started by `resume`.
    scope = None if asked.was_finished else BeforeStarts()
    return show_run(*session, auto=yes, scope=scope, as_json=as_json)
