"""lock: who may use a resource, and who has to wait."""

import difflib
import json

import click

from iterdev.core.errors import UserError
from iterdev.core.session.announcements import COORDINATOR
from iterdev.core.types import Role
from iterdev.surfaces.cli.arguments import task_name
from iterdev.surfaces.cli.main import FINISHED, UNFINISHED, tell
from iterdev.surfaces.cli.tool_client import called

ROLES = (COORDINATOR, *Role)
HINT = "iterdev lock --help"


def acquire(*, session_id: str | None, resource: str, task: str | None, role: str | None, as_json: bool) -> int:
    answer = _asked("acquire", session_id, resource, task, role)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
    elif answer["granted"]:
        holder, name = answer["locked_by_task_id"], answer["resource"]
        click.echo(f'{holder} holds "{name}" until {answer["until"]}; asking again renews it')
    else:
        tell(UserError(str(answer["why"]), hint=str(answer["hint"])))
    return FINISHED if answer["granted"] else UNFINISHED


def release(*, session_id: str | None, resource: str, task: str | None, role: str | None, as_json: bool) -> int:
    answer = _asked("release", session_id, resource, task, role)
    holder, name = answer["task"], answer["resource"]
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
    elif answer["released"]:
        click.echo(f'{holder} released "{name}"')
    else:
        click.echo(f'{holder} does not hold "{name}"; nothing is changed')
    return FINISHED


def locks(*, session_id: str | None, as_json: bool) -> int:
    match called("lock", {"operation": "list"}, session=session_id, hint=HINT):
        case {"resource_locks": dict(held), "waiting": dict(waiting)} if not as_json:
            for name, lock in held.items():
                click.echo(f"{name}  {lock['locked_by_task_id']} ({lock['holder_role']})  since {lock['timestamp']}")
            for task, name in waiting.items():
                click.echo(f"{task} waits for {name}")
            if not held:
                click.echo("No task holds a lock.")
        case answer:
            click.echo(json.dumps(answer, ensure_ascii=False))
    return FINISHED


def _asked(operation: str, session: str | None, resource: str, task: str | None, role: str | None) -> dict[str, object]:
    given = {
        "operation": operation,
        "resource": resource,
        "task": None if task is None else task_name(task),
        "role": None if role is None else _role(role),
    }
    return called("lock", given, session=session, hint=HINT)


def _role(name: str) -> str:
    if name not in ROLES:
        near = difflib.get_close_matches(name, ROLES, 1)
        suggestion = f' (did you mean "{near[0]}"?)' if near else ""
        raise UserError(f'There is no role "{name}"{suggestion}', hint=f"roles: {', '.join(ROLES)}")
    return name
