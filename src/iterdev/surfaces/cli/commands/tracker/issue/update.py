"""iterdev issue update."""

import click

from iterdev.app.issues import edit
from iterdev.app.issues.edit import IssueFields, QueueSync
from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import described, print_issue, to_change
from iterdev.surfaces.cli.output.console import print_either

ACTIVE = "active"
"""What --from-queue means without a name."""


@click.command("update", help="Change an issue")
@click.argument("name", metavar="[ID]", required=False)
@click.option("--status", metavar="STATUS", help="The new status")
@described
@click.option(
    "--from-queue",
    is_flag=False,
    flag_value=ACTIVE,
    metavar="[QUEUE]",
    help="Mark every issue of the queue as queued, and name the planned ones that are not in it",
)
@arguments.as_json
def command(*, name: str | None, from_queue: str | None, as_json: bool, fields: IssueFields) -> None:
    repository = to_change()
    if from_queue is not None:
        synced = edit.synchronize(repository, "" if from_queue == ACTIVE else from_queue)
        print_either(_text(synced), synced, as_json=as_json)
    elif name is None:
        raise UserError("No issue is named", hint="iterdev issue update ID --status STATUS")
    else:
        print_issue(edit.update(repository, name, fields), as_json=as_json)


def _text(synced: QueueSync) -> str:
    queued, outside = ", ".join(synced.queued) or "none", ", ".join(synced.unplanned) or "none"
    return f"{synced.queue_id}: now queued: {queued}; planned, but not in the queue: {outside}"
