"""iterdev key."""

from pathlib import Path

import click

from iterdev.app.remote import key as keys
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either


@click.group(cls=CommandGroup, help="Create the key that seals the messages between this machine and its hosts")
def key() -> None:
    pass


@key.command(help="Write a new key to FILE, or to the file that [remote] names; existing keys are kept")
@click.argument("file", required=False)
@arguments.as_json
def new(*, file: str | None, as_json: bool) -> None:
    made = keys.new_key(file, Path.cwd())
    print_either(_text(made), made, as_json=as_json)


def _text(made: keys.NewKey) -> str:
    if made.seals:
        return f"Wrote the key {made.id} to {made.file}\nCopy it to every host: scp {made.file} HOST:{made.file}"
    return (
        f"Added the key {made.id} to {made.file}, for opening only\n"
        "Copy the file to every machine, and restart `iterdev worker` there; then move its last line to the top"
        " in every copy: messages are sealed with the first key"
    )
