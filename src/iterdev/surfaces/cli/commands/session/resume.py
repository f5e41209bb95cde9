"""iterdev resume."""

import click

from iterdev.app.resume import OneStep
from iterdev.app.sessions import to_resume
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import choose_session, show_run


@click.command(help="Go on with a paused or interrupted session (also: continue)")
@arguments.session_name
@arguments.yes
@click.option("--step", is_flag=True, help="One step, then stop")
@arguments.as_json
def resume(*, session: str | None, yes: bool, step: bool, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    chosen = choose_session(to_resume(repository, session or ""))
    return show_run(repository, chosen, auto=yes, resumes=True, scope=OneStep() if step else None, as_json=as_json)
