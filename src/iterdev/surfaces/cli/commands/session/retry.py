"""iterdev retry."""

import click

from iterdev.app import resume
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import show_detached, show_run


@click.command(help="Run the failed tasks of a session again")
@arguments.session
@arguments.yes
@arguments.detach
@arguments.as_json
def retry(*, session: arguments.SelectedSession, yes: bool, detach: bool, as_json: bool) -> ExitCode:
    resume.retry(*session)
    return (show_detached if detach else show_run)(*session, auto=yes, as_json=as_json)
