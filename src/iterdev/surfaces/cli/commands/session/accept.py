"""iterdev accept."""

import click

from iterdev.app import accept as app_accept
from iterdev.app.sessions import named_or_newest
from iterdev.surfaces.cli import arguments


@click.command(help="Bring a session's branch into your branch")
@arguments.any_session
def accept(*, session: str | None) -> None:
    repository = arguments.current_repository()
    found = named_or_newest(repository, session)
    accepted = app_accept.accept(repository, found)
    click.echo(f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {found}")
