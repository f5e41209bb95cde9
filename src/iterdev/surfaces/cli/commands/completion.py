"""The script that a shell needs to complete our commands."""

import click
from click.shell_completion import get_completion_class

from iterdev.surfaces.cli.app import app


def completion(*, shell: str) -> int:
    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(app, {}, "iterdev", "_ITERDEV_COMPLETE").source())
    return 0
