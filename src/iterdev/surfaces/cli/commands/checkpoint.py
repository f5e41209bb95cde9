"""checkpoint: what a task would need to go on after an interruption."""

import json

import click

from iterdev.core.errors import UserError
from iterdev.surfaces.cli.arguments import document, task_name
from iterdev.surfaces.cli.main import FINISHED, UNFINISHED, tell
from iterdev.surfaces.cli.tool_client import called


def save(*, session_id: str | None, task: str | None, data: str, as_json: bool) -> int:
    saved = _asked("save", session_id, task, document(data, '{"step": 2}'))
    click.echo(json.dumps(saved) if as_json else f"Saved {saved['state_data_pointer']}")
    return FINISHED


def restore(*, session_id: str | None, task: str | None, as_json: bool) -> int:
    restored = _asked("restore", session_id, task)
    if not restored["restored"]:
        tell(UserError(str(restored["why"]), hint=str(restored["hint"])))
        return UNFINISHED
    click.echo(json.dumps(restored if as_json else restored["data"], ensure_ascii=False))
    return FINISHED


def checkpoints(*, session_id: str | None, task: str | None, as_json: bool) -> int:
    match _asked("list", session_id, task):
        case {"task_checkpoints": dict(kept)} if not as_json:
            for name, all_ in kept.items():
                for one in all_:
                    click.echo(f"{name}  {one['timestamp']}  {one['state_data_pointer']}")
            if not kept:
                click.echo(f"No checkpoint{f' of {task}' if task else ''} is kept.")
        case found:
            click.echo(json.dumps(found, ensure_ascii=False))
    return FINISHED


def _asked(operation: str, session: str | None, task: str | None, data: object = None) -> dict[str, object]:
    given = {"operation": operation, "task": None if task is None else task_name(task), "data": data}
    return called("checkpoint", given, session=session, hint="iterdev checkpoint --help")
