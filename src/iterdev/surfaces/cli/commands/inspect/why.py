"""iterdev why."""

import click

from iterdev.app import inspect
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="Show exactly what a task is waiting for")
@arguments.session
@click.argument("task")
@arguments.as_json
def why(*, session: arguments.SelectedSession, task: str, as_json: bool) -> None:
    reasons = inspect.why(*session, task)
    print_either("\n".join(reasons), {"session": session.id, "task": task, "why": reasons}, as_json=as_json)
