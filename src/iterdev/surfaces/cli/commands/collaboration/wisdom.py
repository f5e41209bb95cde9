"""iterdev wisdom."""

import click

from iterdev.app import wisdom as app_wisdom
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_document


@click.group(cls=CommandGroup, help="Show what the sessions of this repository learned, and reject what is wrong")
def wisdom() -> None:
    pass


@wisdom.command("list", help="List what was learned, with its evidence")
@arguments.as_json
def list_(*, as_json: bool) -> None:
    entries = app_wisdom.learned(arguments.current_repository())
    if as_json:
        print_document({"wisdom": entries})
        return
    if not entries:
        click.echo("Nothing has been learned yet.")
    for entry in entries:
        click.echo(f"{entry.id}  {entry.file:<11}  {entry.text}")
        for note in entry.evidence:
            click.echo(f"    {note.evidence}")
        if entry.rejected:
            click.echo(f"    rejected{f': {entry.reason}' if entry.reason else ''}")


@wisdom.command(help="Take an entry out of use, now and in later sessions")
@click.argument("entry", metavar="ID")
@click.argument("reason", nargs=-1)
def reject(*, entry: str, reason: tuple[str, ...]) -> None:
    rejected = app_wisdom.reject(arguments.current_repository(), entry, " ".join(reason))
    click.echo(f"{rejected.id} is not used any more: {rejected.text}")
