"""wisdom: what the sessions of this repository learned, and what of it a person rejects."""

import json
from pathlib import Path

import click
import msgspec

from iterdev.app import wisdom
from iterdev.engine.repository import Repository


def listing(*, as_json: bool) -> int:
    entries = wisdom.learned(Repository(Path.cwd()))
    if as_json:
        click.echo(json.dumps({"wisdom": msgspec.to_builtins(entries)}, ensure_ascii=False))
        return 0
    if not entries:
        click.echo("Nothing has been learned yet.")
    for entry in entries:
        click.echo(f"{entry.id}  {entry.file:<11}  {entry.text}")
        for note in entry.evidence:
            click.echo(f"    {note.evidence}")
        if entry.rejected:
            click.echo(f"    rejected{f': {entry.reason}' if entry.reason else ''}")
    return 0


def reject(*, entry: str, reason: tuple[str, ...]) -> int:
    repository = Repository(Path.cwd())
    found = wisdom.reject(repository, entry, repository.redact(" ".join(reason)))
    click.echo(f"{found.id} is not used any more: {found.text}")
    return 0
