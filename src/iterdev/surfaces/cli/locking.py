"""lock: who may use a resource, and who has to wait."""

import difflib
import json

import click

from iterdev.core.bus import COORDINATOR
from iterdev.core.errors import UserError
from iterdev.core.locks import Ask
from iterdev.core.names import moment
from iterdev.core.words import Role
from iterdev.engine import protocols
from iterdev.engine.protocols import LockAnswer
from iterdev.host import clock
from iterdev.store.shared import lock_records
from iterdev.surfaces.cli.main import UNFINISHED, tell
from iterdev.surfaces.cli.sessions import repository, task_name

ROLES = (COORDINATOR, *Role)


def acquire(*, session_id: str, resource: str, task: str, role: str) -> int:
    found = repository()
    ask = Ask(resource=_resource(found.redact(resource)), task=task_name(task), role=_role(role))
    with protocols.opened(found, found.find(session_id)) as book:
        answer = protocols.acquire(book, ask, engine_alive=found.engine_alive(book.state))
    if answer.granted:
        click.echo(f'{task} holds "{ask.resource}" until {moment(answer.lock.ends_at)}; asking again renews it')
        return 0
    tell(_refusal(ask, answer))
    return UNFINISHED


def release(*, session_id: str, resource: str, task: str, role: str | None) -> int:
    found = repository()
    name, holder = _resource(found.redact(resource)), task_name(task)
    if role is not None:
        _role(role)
    with protocols.opened(found, found.find(session_id)) as book:
        released = protocols.release(book, name, holder, engine_alive=found.engine_alive(book.state))
    click.echo(f'{task} released "{name}"' if released else f'{task} does not hold "{name}"; nothing is changed')
    return 0


def locks(*, session_id: str, as_json: bool) -> int:
    found = repository()
    state = found.state(found.find(session_id))
    current = protocols.current_locks(state, clock.now(), engine_alive=found.engine_alive(state))
    waiting = {task: want.resource for task, want in current.wanted.items()}
    if as_json:
        click.echo(json.dumps({"resource_locks": lock_records(current.held), "waiting": waiting}, ensure_ascii=False))
        return 0
    if not current.held:
        click.echo(f"No task of {state.session.id} holds a lock.")
    for name, lock in current.held.items():
        click.echo(f"{name}  {lock.task} ({lock.role})  since {moment(lock.at)}")
    for task, name in waiting.items():
        click.echo(f"{task} waits for {name}")
    return 0


def _refusal(ask: Ask, answer: LockAnswer) -> UserError:
    lock = answer.lock
    held = f'The lock on "{ask.resource}" is held by {lock.task} ({lock.role}) since {moment(lock.at)}'
    if answer.aborted:
        return UserError(
            f"{held}, and both waited for each other: {ask.task} is the younger one, and lost its locks",
            hint="begin again when the other one is done",
        )
    return UserError(held, hint="to wait for it, ask again every minute; if you do not wait, release it")


def _resource(name: str) -> str:
    if not name.strip():
        raise UserError("The name of the resource is empty", hint="--resource src/app.py")
    return name.strip()


def _role(name: str) -> str:
    if name not in ROLES:
        near = difflib.get_close_matches(name, ROLES, 1)
        suggestion = f' (did you mean "{near[0]}"?)' if near else ""
        raise UserError(f'There is no role "{name}"{suggestion}', hint=f"roles: {', '.join(ROLES)}")
    return name
