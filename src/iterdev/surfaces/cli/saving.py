"""checkpoint: what a task would need to go on after an interruption."""

import json

import click

from iterdev.core.errors import UserError
from iterdev.core.names import moment
from iterdev.engine import protocols
from iterdev.engine.protocols import NothingRestored
from iterdev.store.shared import checkpoint_record
from iterdev.surfaces.cli.main import UNFINISHED, tell
from iterdev.surfaces.cli.sessions import document, repository, task_name


def save(*, session_id: str, task: str, data: str, as_json: bool) -> int:
    found = repository()
    name, content = task_name(task), document(found, data)
    with protocols.opened(found, found.find(session_id)) as book:
        saved = protocols.save(book, found.folder(book.state), name, content)
    click.echo(json.dumps(checkpoint_record(saved)) if as_json else f"Saved {saved.pointer}")
    return 0


def restore(*, session_id: str, task: str, as_json: bool) -> int:
    found = repository()
    with protocols.opened(found, found.find(session_id)) as book:
        restored = protocols.restore(book, found.folder(book.state), task_name(task))
    if isinstance(restored, NothingRestored):
        tell(UserError(f"Nothing was restored: {restored.why}", hint=f"begin {task} at its first step"))
        return UNFINISHED
    whole = checkpoint_record(restored.checkpoint) | {"data": restored.data}
    click.echo(json.dumps(whole if as_json else restored.data, ensure_ascii=False))
    return 0


def checkpoints(*, session_id: str, task: str | None, as_json: bool) -> int:
    found = repository()
    state = found.state(found.find(session_id))
    kept = {name: all_ for name, all_ in state.checkpoints.items() if task in {None, name}}
    if as_json:
        records = {name: [checkpoint_record(one) for one in all_] for name, all_ in kept.items()}
        click.echo(json.dumps({"task_checkpoints": records}, ensure_ascii=False))
        return 0
    if not kept:
        click.echo(f"No checkpoint of {task or state.session.id} is kept.")
    for name, all_ in kept.items():
        for one in all_:
            click.echo(f"{name}  {moment(one.at)}  {one.pointer}")
    return 0
