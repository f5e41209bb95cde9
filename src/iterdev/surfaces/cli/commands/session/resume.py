"""iterdev resume."""

import click

from iterdev.app.resume import OneStep
from iterdev.app.sessions import to_resume
from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import choose_session, run_detached, show_detached, show_run, show_step


@click.command(help="Continue a paused or interrupted session (also: continue)")
@arguments.session_name
@arguments.yes
@click.option("--step", is_flag=True, help="Start the tasks that are ready, leave them in the background, and return")
@click.option("--wait", is_flag=True, hidden=True)
@arguments.detach
@arguments.here
@click.option("--detached", is_flag=True, hidden=True, help="Be the engine that --detach starts")
@arguments.as_json
def resume(
    *, session: str | None, yes: bool, step: bool, wait: bool, detach: bool, here: bool, detached: bool, as_json: bool
) -> ExitCode:
    # `--wait` is how a step starts the engine that it leaves its tasks to.
    repository = arguments.current_repository(here=here)
    if detach and step:
        raise UserError("--detach and --step exclude each other", hint="omit --step to run all that is left")
    chosen = choose_session(to_resume(repository, session or ""))
    if detach:
        return show_detached(repository, chosen, auto=yes, resumes=True, as_json=as_json)
    if detached:
        return run_detached(repository, chosen)
    if step and not wait:
        return show_step(repository, chosen, auto=yes, as_json=as_json)
    return show_run(repository, chosen, auto=yes, resumes=True, scope=OneStep() if step else None, as_json=as_json)
