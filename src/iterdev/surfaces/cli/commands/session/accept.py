"""iterdev accept."""

import click

from iterdev.app.completion import AcceptOptions
from iterdev.core.errors import UserError
from iterdev.core.types import AcceptStyle
from iterdev.surfaces.cli import acceptance, arguments

ME = "me"


@click.command(help="Merge a session's branch into yours")
@arguments.finished_session
@click.option("--squash", is_flag=True, help="Merge the work as one commit of yours")
@click.option("--no-ff", is_flag=True, help="Create a merge commit even if a fast-forward is possible")
@click.option("--author", type=click.Choice([ME]), help="Rewrite the agents' commits with you as their author")
@click.option("--undo", is_flag=True, help="Move your branch back to where it was, if it has no later commits")
@click.option("--force", is_flag=True, help="Accept even if tests or the review failed, or nothing was verified")
@arguments.as_json
def accept(
    *,
    session: arguments.SelectedSession,
    squash: bool,
    no_ff: bool,
    author: str | None,
    undo: bool,
    force: bool,
    as_json: bool,
) -> None:
    if squash and no_ff:
        raise UserError("--squash and --no-ff exclude each other", hint="iterdev accept --squash")
    if undo and (squash or no_ff or author or force):
        raise UserError("--undo goes with no other option", hint="iterdev accept --undo")
    if undo:
        acceptance.undo(*session, as_json=as_json)
        return
    style = AcceptStyle.squash if squash else AcceptStyle.merge if no_ff else None
    options = AcceptOptions(style=style, own_author=True if author == ME else None)
    acceptance.accept(*session, options=options, force=force, as_json=as_json)
