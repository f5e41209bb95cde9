"""iterdev wisdom."""

import click

from iterdev.app import wisdom as app_wisdom
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either

wisdom = CommandGroup("wisdom", help="Show what the sessions of this repository learned, and reject what is wrong")


@wisdom.command("list", help="List what was learned, with its evidence")
@arguments.as_json
def list_(*, as_json: bool) -> None:
    entries = app_wisdom.learned(arguments.current_repository())
    lines: list[str] = []
    for entry in entries:
        lines += [f"{entry.id}  {entry.file:<11}  {entry.text}", *(f"    {note.evidence}" for note in entry.evidence)]
        lines += [f"    rejected{f': {entry.reason}' if entry.reason else ''}"] if entry.rejected else []
    print_either("\n".join(lines) or "Nothing has been learned yet.", {"wisdom": entries}, as_json=as_json)


@wisdom.command(help="Stop using an entry, now and in later sessions")
@click.argument("entry", metavar="ID")
@click.argument("reason", nargs=-1)
@arguments.as_json
def reject(*, entry: str, reason: tuple[str, ...], as_json: bool) -> None:
    rejected = app_wisdom.reject(arguments.current_repository(), entry, " ".join(reason))
    print_either(f"{rejected.id} is no longer used: {rejected.text}", rejected, as_json=as_json)
