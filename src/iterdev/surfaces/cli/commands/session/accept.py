"""iterdev accept."""

import click

from iterdev.app import completion
from iterdev.surfaces.cli import arguments


@click.command(help="Bring a session's branch into your branch")
@arguments.any_session
def accept(*, session: arguments.SelectedSession) -> None:
    accepted = completion.accept(*session)
    click.echo(f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session.id}")
