"""iterdev accept."""

import click

from iterdev.app import completion
from iterdev.core.errors import NeedsConfirmation
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_either, print_text
from iterdev.surfaces.cli.output.text import accept_text


@click.command(help="Bring a session's branch into your branch")
@arguments.finished_session
@click.option("--force", is_flag=True, help="Also if tests fail, nothing was verified, or the review did not pass")
@arguments.as_json
def accept(*, session: arguments.SelectedSession, force: bool, as_json: bool) -> None:
    preview = completion.accept_preview(*session)
    if not as_json:
        print_text(accept_text(preview))
    try:
        accepted = completion.accept(*session, force=force)
    except NeedsConfirmation:
        can_ask = prompt.can_ask() and not as_json
        if not can_ask or not click.confirm(f"Bring it into {preview.into} all the same?"):
            raise
        accepted = completion.accept(*session, force=True)
    line = f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session.id}"
    document = {"session": session.id, "branch": accepted.branch, "commit": accepted.commit, "notes": accepted.notes}
    print_either("\n".join([line, *accepted.notes]), document | {"preview": preview}, as_json=as_json)
