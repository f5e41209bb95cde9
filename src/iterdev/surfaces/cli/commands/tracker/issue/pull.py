"""iterdev issue pull."""

import click

from iterdev.app.issues.pull import LIMIT, STATES, Pulled, issue_filter, pull
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("pull", help="Import GitHub issues into the tracker, and update those that have changed")
@arguments.one_of("--state", STATES, "The state of the issues to import", "open")
@click.option(
    "--limit", type=int, default=LIMIT, show_default=True, metavar="N", help="Import at most N issues, the newest ones"
)
@click.option("--labels", metavar="A,B", default="", help="Only those with all of these labels")
@arguments.as_json
def command(*, state: str, limit: int, labels: str, as_json: bool) -> None:
    pulled = pull(to_change(), issue_filter(state, limit, labels))
    print_either(_text(pulled), pulled, as_json=as_json)


def _text(pulled: Pulled) -> str:
    lines = [
        f"Added: {', '.join(pulled.added) or 'none'}",
        f"Updated: {', '.join(pulled.updated) or 'none'}",
        f"Unchanged: {len(pulled.unchanged)}",
    ]
    return "\n".join([*lines, *([f"Not found: {', '.join(pulled.missing)}"] if pulled.missing else [])])
