"""iterdev issue retry."""

import click

from iterdev.app.issues import queue as queues
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("retry", help="Make failed items pending again, all or those of one issue; their failures are kept")
@click.argument("issue", metavar="[ISSUE]", default="")
@click.option("--queue", metavar="QUEUE", default="", help="Only in this queue")
@arguments.as_json
def command(*, issue: str, queue: str, as_json: bool) -> None:
    again = queues.retry(to_change(), issue, queue)
    text = f"Pending again: {', '.join(again)}" if again else "No item has failed."
    print_either(text, {"retried": again, "total": len(again)}, as_json=as_json)
