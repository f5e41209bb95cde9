"""iterdev issue done."""

import json

import click

from iterdev.app.issues import queue as queues
from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import queue_option, to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("done", help="Complete an item and its issue, or fail them with --fail")
@click.argument("item", metavar="ITEM")
@click.option("--result", metavar="JSON", help="The result as a JSON object; - reads it from standard input")
@click.option("--fail", "is_failed", is_flag=True, help="Mark the item as failed")
@click.option("--reason", metavar="TEXT", help="Why it failed: a text, or a JSON object with a message")
@queue_option
@arguments.as_json
def command(*, item: str, result: str | None, is_failed: bool, reason: str | None, queue: str, as_json: bool) -> None:
    if reason is not None and not is_failed:
        raise UserError("--reason is the reason of a failure", hint=f"iterdev issue done {item} --fail --reason TEXT")
    document = arguments.read_document(result, queues.RESULT_EXAMPLE) if result is not None else None
    failure = _reason(reason or "") if is_failed else None
    ended = queues.finish(to_change(), item, queue, result=document, failure=failure)
    line = f"{ended['item_id']} of {ended['queue_id']} is {ended['status']}; {ended['issue_id']} too"
    print_either(line, ended, as_json=as_json)


def _reason(text: str) -> object:
    """A JSON object, or the text itself."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return document if isinstance(document, dict) else text
