"""iterdev accept."""

import click

from iterdev.surfaces.cli import acceptance, arguments


@click.command(help="Bring a session's branch into your branch")
@arguments.finished_session
@click.option("--force", is_flag=True, help="Also if tests fail, nothing was verified, or the review did not pass")
@arguments.as_json
def accept(*, session: arguments.SelectedSession, force: bool, as_json: bool) -> None:
    acceptance.accept(*session, force=force, as_json=as_json)
