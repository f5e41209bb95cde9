"""iterdev retry."""

from functools import partial

import click

from iterdev.app.resume import reset_failed_tasks, run_session
from iterdev.app.sessions import named_or_newest
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import show_run


@click.command(help="Run the failed tasks of a session again")
@arguments.any_session
@arguments.yes
@arguments.as_json
def retry(*, session: str | None, yes: bool, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    found = named_or_newest(repository, session)
    reset_failed_tasks(repository, found)
    return show_run(repository, found, run=partial(run_session, repository, found, auto=yes), as_json=as_json)
