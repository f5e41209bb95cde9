"""iterdev accept."""

import click

from iterdev.app import completion
from iterdev.core.errors import NeedsConfirmation
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.text import accept_text


@click.command(help="Bring a session's branch into your branch")
@arguments.any_session
@click.option("--force", is_flag=True, help="Also if tests fail, nothing was verified, or the review did not pass")
def accept(*, session: arguments.SelectedSession, force: bool) -> None:
    preview = completion.accept_preview(*session)
    click.echo(accept_text(preview))
    try:
        accepted = completion.accept(*session, force=force)
    except NeedsConfirmation:
        if not prompt.can_ask() or not click.confirm(f"Bring it into {preview.into} all the same?"):
            raise
        accepted = completion.accept(*session, force=True)
    click.echo(f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session.id}")
    for note in accepted.notes:
        click.echo(note)
