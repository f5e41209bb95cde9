"""Brings a session's branch into the user's branch, after saying what is known about the work."""

from collections.abc import Sequence

import click

from iterdev.app import completion
from iterdev.app.sessions import Repository
from iterdev.core.errors import NeedsConfirmation
from iterdev.core.formatting import counted
from iterdev.core.types import SessionId
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_either, print_text


def accept(
    repository: Repository,
    session: SessionId,
    *,
    options: completion.AcceptOptions | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Asks before work is brought in that is not known to be good."""
    options = options or completion.AcceptOptions()
    preview = completion.preview_accept(repository, session, options)
    if not as_json:
        print_text(preview_text(preview))
    try:
        accepted = completion.accept(repository, session, force=force, options=options)
    except NeedsConfirmation:
        can_ask = prompt.can_ask() and not as_json
        if not can_ask or not click.confirm(f"Merge it into {preview.into} anyway?"):
            raise
        accepted = completion.accept(repository, session, force=True, options=options)
    line = f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session}"
    document = {"session": session, "branch": accepted.branch, "commit": accepted.commit, "notes": accepted.notes}
    print_either("\n".join([line, *accepted.notes]), document | {"preview": preview}, as_json=as_json)


def undo(repository: Repository, session: SessionId, *, as_json: bool = False) -> None:
    undone = completion.undo_accept(repository, session)
    line = f"{undone.branch} is at {undone.commit[:12]} again; the work stays on the branch of {session}"
    document = {"session": session, "branch": undone.branch, "commit": undone.commit}
    print_either(line, document, as_json=as_json)


def preview_text(preview: completion.AcceptPreview) -> str:
    """What `accept` brings, what was measured, and what is not good about it."""
    lines = [f"{counted(preview.commits, 'commit')}, {counted(len(preview.files), 'file')} changed"]
    lines += preview.verdicts
    said = {text.partition(": ")[2] for text in preview.verdicts}
    lines += [f"Warning: {text}" for text in preview.warnings if text not in said]
    return "\n".join([*lines, *(f"Not good: {_once(text, lines)}" for text in preview.reasons)])


def _once(reason: str, lines: Sequence[str]) -> str:
    """The reason, without its details if a line above has them."""
    kind, _, details = reason.partition(": ")
    return kind if details and any(line.endswith(f": {details}") for line in lines) else reason
