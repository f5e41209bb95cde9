"""iterdev issue next."""

import click

from iterdev.app.issues.queue import take_next
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import one_line, queue_option, to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("next", help="Take the next item that is ready; one that was already started comes first")
@click.argument("item", metavar="[ITEM]", default="")
@queue_option
@arguments.as_json
def command(*, item: str, queue: str, as_json: bool) -> None:
    taken = take_next(to_change(), item, queue)
    print_either(_text(taken), taken, as_json=as_json)


def _text(taken: dict[str, object]) -> str:
    match taken:
        case {
            "item_id": item,
            "issue_id": issue,
            "solution": {"id": solution, "approach": approach, "tasks": list(tasks)},
        }:
            lines = [f"{item}  {issue}  {solution}{'  (started before)' if taken['resumed'] else ''}"]
            lines += [one_line(approach)] if approach else []
            lines += [f"  {task['id']}  {one_line(task['title'])}" for task in tasks]
            return "\n".join([*lines, f"When it is done: iterdev issue done {item}"])
        case _:
            return f"{taken['message']}."
