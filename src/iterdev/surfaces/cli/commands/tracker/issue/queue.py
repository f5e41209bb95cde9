"""iterdev issue queue."""

import os
from pathlib import Path

import click

from iterdev.app.issues import queue as queues
from iterdev.app.issues import show
from iterdev.app.sessions import Repository, refuse_inside_attempt
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, one_line, queue_option, to_change
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_document, print_either

EMPTY = "No queue is active. Fill one with: iterdev issue queue add ISSUE"
queue_argument = click.argument("name", metavar="QUEUE")


@click.group("queue", cls=CommandGroup, invoke_without_command=True, help="Show or change the queue")
@brief
@arguments.as_json
@click.pass_context
def command(context: click.Context, *, brief: bool, as_json: bool) -> None:
    if context.invoked_subcommand is None:
        print_queue(show.queue(arguments.repository_of_caller()), as_json=as_json, is_brief=brief)


def print_queue(seen: show.QueueView | None, *, as_json: bool, is_brief: bool = False) -> None:
    form = show.brief_queue if is_brief else show.queue_document
    document = form(seen) if seen else {"id": None, "solutions": []}
    print_either(_text(seen) if seen else EMPTY, document, as_json=is_brief or as_json)


@command.command("list", help="List all queues, the newest first")
@arguments.as_json
def list_(*, as_json: bool) -> None:
    _print_list(as_json=as_json)


@command.command(help="List all queues, the newest first")
@arguments.as_json
def history(*, as_json: bool) -> None:
    _print_list(as_json=as_json)


@command.command(help="Add the bound solutions of issues to the active queue")
@click.argument("names", nargs=-1, required=True, metavar="ISSUE...")
@click.option("--force", is_flag=True, help="Start a new queue, which becomes the active one")
@arguments.as_json
def add(*, names: tuple[str, ...], force: bool, as_json: bool) -> None:
    added = queues.add(_own(), names, to_new=force)
    known = f"; in it already: {', '.join(added.skipped)}" if added.skipped else ""
    print_either(f"{added.queue_id}: added {', '.join(added.items) or 'nothing'}{known}", added, as_json=as_json)


@command.command(help="Print the item dependencies as JSON: what is ready, what can run in parallel")
@click.argument("name", metavar="[QUEUE]", default="")
@queue_option
@arguments.as_json
def dag(*, name: str, queue: str, as_json: bool) -> None:  # noqa: ARG001 - it is always JSON
    print_document(show.dependency_graph(arguments.repository_of_caller(), queue or name))


@command.command(help="Make QUEUE the only active one")
@queue_argument
@arguments.as_json
def switch(*, name: str, as_json: bool) -> None:
    queues.switch(_own(), name)
    _print_list(as_json=as_json)


@command.command(help="Make several queues active, separated by commas")
@click.argument("names", metavar="QUEUE,QUEUE")
@arguments.as_json
def activate(*, names: str, as_json: bool) -> None:
    queues.activate(_own(), [name for word in names.split(",") if (name := word.strip())])
    _print_list(as_json=as_json)


@command.command(help="Set the priority of a queue; the one with the lower number comes first")
@queue_argument
@click.option("--priority", type=int, required=True, metavar="N")
@arguments.as_json
def priority(*, name: str, priority: int, as_json: bool) -> None:
    queues.prioritize(_own(), name, priority)
    _print_list(as_json=as_json)


@command.command(help="Archive a queue  [default: the active one]")
@click.argument("name", metavar="[QUEUE]", default="")
@arguments.as_json
def archive(*, name: str, as_json: bool) -> None:
    queues.archive(_own(), name)
    _print_list(as_json=as_json)


@command.command(help="Delete a queue; --force is needed if items are not done")
@queue_argument
@click.option("--force", is_flag=True, help="Delete the queue even if items are not done")
@arguments.as_json
def delete(*, name: str, force: bool, as_json: bool) -> None:
    queues.delete(_own(), name, force=force)
    _print_list(as_json=as_json)


@command.command(help="Move the items of QUEUE into another queue, and archive it")
@queue_argument
@click.option("--queue", "target", required=True, metavar="QUEUE", help="The queue to move them to")
@arguments.as_json
def merge(*, name: str, target: str, as_json: bool) -> None:
    queues.merge(_own(), name, target)
    _print_list(as_json=as_json)


def _own() -> Repository:
    """The repository, for a person; an agent may only read queues."""
    refuse_inside_attempt(click.get_current_context().command_path.removeprefix("iterdev "), os.environ, Path.cwd())
    return to_change()


def _print_list(*, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    queues, active = show.queue_list(repository)
    text = "\n".join(f"{'*' if seen.queue.id in active else ' '} {_index_line(seen)}" for seen in queues)
    print_either(text or "No queues.", show.queue_list_document(repository), as_json=as_json)


def _index_line(seen: show.QueueView) -> str:
    items = seen.items.values()
    done = f"{sum(item.status == 'completed' for item in items)}/{len(items)}"
    issues = ", ".join(dict.fromkeys(item.issue_id for item in items))
    return f"{seen.queue.id}  {seen.queue.status:<9}  {done}  {issues}"


def _text(seen: show.QueueView) -> str:
    items = seen.items.values()
    completed, failed = (sum(item.status == status for item in items) for status in ("completed", "failed"))
    header = f"{seen.queue.id}  {seen.queue.status}  {completed} of {len(items)} completed, {failed} failed"
    return "\n".join([header, *map(_item_line, items)])


def _item_line(item: show.QueueItem) -> str:
    place = item.place
    after = f"  after {', '.join(place.depends_on)}" if place.depends_on else ""
    failed = f"  {one_line(item.failure.message)}" if item.failure else ""
    return f"{item.item_id:<5} {item.status:<10} {place.group:<4} {item.issue_id}{after}{failed}"
