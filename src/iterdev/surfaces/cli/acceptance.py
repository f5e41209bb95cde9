"""Brings a session's branch into the user's branch, after saying what is known about the work."""

import click

from iterdev.app import completion
from iterdev.app.sessions import Repository
from iterdev.core.errors import NeedsConfirmation
from iterdev.core.types import SessionId
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_either, print_text
from iterdev.surfaces.cli.output.text import accept_text


def accept(repository: Repository, session: SessionId, *, force: bool = False, as_json: bool = False) -> None:
    """Asks before work is brought in that is not known to be good."""
    preview = completion.accept_preview(repository, session)
    if not as_json:
        print_text(accept_text(preview))
    try:
        accepted = completion.accept(repository, session, force=force)
    except NeedsConfirmation:
        can_ask = prompt.can_ask() and not as_json
        if not can_ask or not click.confirm(f"Bring it into {preview.into} all the same?"):
            raise
        accepted = completion.accept(repository, session, force=True)
    line = f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session}"
    document = {"session": session, "branch": accepted.branch, "commit": accepted.commit, "notes": accepted.notes}
    print_either("\n".join([line, *accepted.notes]), document | {"preview": preview}, as_json=as_json)
