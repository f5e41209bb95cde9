"""iterdev checkpoint: data that a task saves so that a later attempt can continue."""

import click

from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import local_time, print_document, print_either, print_error

checkpoint = CommandGroup("checkpoint", help="Save what a task needs to continue; in an attempt, for its own task")


@checkpoint.command(help="Save a checkpoint of a task; the 5 newest are kept")
@arguments.session_name
@arguments.person_task
@click.option("--data", default="{}", metavar="JSON", help="The data to save; - reads it from standard input")
@arguments.as_json
def save(*, session: str | None, task: str | None, data: str, as_json: bool) -> None:
    given = {"operation": "save", "task": task, "data": arguments.read_document(data, '{"step": 2}')}
    saved = arguments.call_tool("checkpoint", given, session=session)
    print_either(f"Saved {saved['state_data_pointer']}", saved, as_json=as_json)


@checkpoint.command(help="Print the data of a task's newest checkpoint; exits with 1 and the reason when there is none")
@arguments.session_name
@arguments.person_task
@arguments.as_json
def restore(*, session: str | None, task: str | None, as_json: bool) -> ExitCode:
    restored = arguments.call_tool("checkpoint", {"operation": "restore", "task": task}, session=session)
    if not restored["restored"]:
        print_error(UserError(str(restored["why"]), hint=str(restored["hint"])))
        return ExitCode.unfinished
    print_document(restored if as_json else restored["data"])
    return ExitCode.finished


@checkpoint.command("list", help="List the checkpoints, the newest first")
@arguments.session_name
@click.option("--task", metavar="TASK", help="Only the checkpoints of this task")
@arguments.as_json
def list_(*, session: str | None, task: str | None, as_json: bool) -> None:
    found = arguments.call_tool("checkpoint", {"operation": "list", "task": task}, session=session)
    kept = found["task_checkpoints"]
    checkpoints = [(name, one) for name, all_ in kept.items() for one in all_] if isinstance(kept, dict) else []
    lines = [f"{name}  {local_time(one['timestamp'])}  {one['state_data_pointer']}" for name, one in checkpoints]
    print_either("\n".join(lines) or f"No checkpoint{f' of {task}' if task else ''} is kept.", found, as_json=as_json)
