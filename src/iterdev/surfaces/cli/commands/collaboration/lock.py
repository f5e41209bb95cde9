"""iterdev lock: which task may use a resource, and which has to wait."""

import click

from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import local_time, print_document, print_either, print_error, print_text

resource_option = click.option("--resource", required=True, metavar="NAME", help="What is locked, such as a path")
role_option = click.option("--role", metavar="ROLE", help="The role of the task; not in an attempt")
lock = CommandGroup("lock", help="Lock a resource while a task uses it; in an attempt, for its own task")


@lock.command(
    help="Lock a resource for a task, or renew its lock; exits with 1 and names the holder when it is refused"
)
@arguments.session_name
@resource_option
@arguments.person_task
@role_option
@arguments.as_json
def acquire(*, session: str | None, as_json: bool, **given: str | None) -> ExitCode:
    answer = arguments.call_tool("lock", {"operation": "acquire", **given}, session=session)
    if as_json:
        print_document(answer)
    elif answer["granted"]:
        holder, name = answer["locked_by_task_id"], answer["resource"]
        print_text(f'{holder} holds "{name}" until {local_time(answer["until"])}; asking again renews it')
    else:
        why = str(answer["why"]).replace(str(answer["timestamp"]), local_time(answer["timestamp"]))
        print_error(UserError(why, hint=str(answer["hint"])))
    return ExitCode.finished if answer["granted"] else ExitCode.unfinished


@lock.command(help="Release the lock of a task; nothing happens if the task does not hold it")
@arguments.session_name
@resource_option
@arguments.person_task
@role_option
@arguments.as_json
def release(*, session: str | None, as_json: bool, **given: str | None) -> None:
    answer = arguments.call_tool("lock", {"operation": "release", **given}, session=session)
    holder, name = answer["task"], answer["resource"]
    nothing = f'{holder} does not hold "{name}"; nothing is changed'
    print_either(f'{holder} released "{name}"' if answer["released"] else nothing, answer, as_json=as_json)


@lock.command("list", help="List the locks, their holders, and the tasks that wait for them")
@arguments.session_name
@arguments.as_json
def list_(*, session: str | None, as_json: bool) -> None:
    match arguments.call_tool("lock", {"operation": "list"}, session=session):
        case {"resource_locks": dict(held), "waiting": dict(waiting)} if not as_json:
            for name, one in held.items():
                since = local_time(one["timestamp"])
                print_text(f"{name}  {one['locked_by_task_id']} ({one['holder_role']})  since {since}")
            for task, name in waiting.items():
                print_text(f"{task} waits for {name}")
            if not held:
                print_text("No task holds a lock.")
        case answer:
            print_document(answer)
