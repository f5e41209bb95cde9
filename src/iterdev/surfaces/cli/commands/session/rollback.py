"""iterdev rollback."""

import click

from iterdev.app.rollback import RolledBack, roll_back
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="Go back to the state before a task landed, or before a wave (wave-N)")
@arguments.session
@click.argument("task")
@click.option("--reason", default="the user wants it", metavar="TEXT", help="The reason, for the report and the agents")
@arguments.as_json
def rollback(*, session: arguments.SelectedSession, task: str, reason: str, as_json: bool) -> None:
    done = roll_back(*session, task, reason)
    text = "\n".join([*_lines(done, task), f"Continue with: iterdev resume {session.id}"])
    print_either(text, {"session": session.id, "rolled_back": done}, as_json=as_json)


def _lines(done: RolledBack, task: str) -> list[str]:
    lines = [f"{done.branch} is at {done.tip[:12]} again, as before {task}; undone: {', '.join(done.undone)}"]
    if done.accepted:
        branch, commit = done.accepted.branch, done.accepted.commit[:12]
        lines.append(f"{branch} still has what was accepted as {commit}; undo it there with: {done.undo}")
    return lines
