"""iterdev resume."""

import click

from iterdev.app.resume import OneStep
from iterdev.app.sessions import to_resume
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import choose_session, show_run, show_step


@click.command(help="Go on with a paused or interrupted session (also: continue)")
@arguments.session_name
@arguments.yes
@click.option("--step", is_flag=True, help="One step: start what is ready, and leave it to the background")
@click.option("--wait", is_flag=True, hidden=True)
@arguments.as_json
def resume(*, session: str | None, yes: bool, step: bool, wait: bool, as_json: bool) -> ExitCode:
    # `--wait` is how a step starts the engine that it leaves its tasks to.
    repository = arguments.current_repository()
    chosen = choose_session(to_resume(repository, session or ""))
    if step and not wait:
        return show_step(repository, chosen, auto=yes, as_json=as_json)
    return show_run(repository, chosen, auto=yes, resumes=True, scope=OneStep() if step else None, as_json=as_json)
