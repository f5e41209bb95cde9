"""iterdev rollback."""

import click

from iterdev.app.rollback import roll_back
from iterdev.surfaces.cli import arguments


@click.command(help="Go back to the state before a task landed, or before a wave (wave-N)")
@arguments.session
@click.argument("task")
@click.option("--reason", default="the user wants it", metavar="TEXT", help="Why, for everybody to read")
def rollback(*, session: arguments.SelectedSession, task: str, reason: str) -> None:
    done = roll_back(*session, task, reason)
    click.echo(f"{done.branch} is at {done.tip[:12]} again, as before {task}; undone: {', '.join(done.undone)}")
    if done.accepted:
        branch, commit = done.accepted.branch, done.accepted.commit[:12]
        click.echo(f"{branch} still has what was accepted as {commit}; undo it there with: {done.undo}")
    click.echo(f"Go on with: iterdev resume {session.id}")
