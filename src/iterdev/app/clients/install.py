"""Installs the skills and the MCP server in people's own clients, says what is there, and removes it."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from iterdev.app.clients import settings_files
from iterdev.app.clients.layout import ClientName, JsonEntry, JsonItems, OwnFile, Part, Place, Scope, TomlTables, parts
from iterdev.app.clients.settings_files import Record, is_ours, is_taken, is_there, read, read_record
from iterdev.core.errors import HostError, UserError
from iterdev.host.git import checkout

Action = Literal["create", "change", "keep", "leave", "remove"]


class Step(Struct, frozen=True, kw_only=True):
    """What is done about one part, or was."""

    client: ClientName
    path: str
    what: str
    action: Action
    """`keep`: it is there already; `leave`: something of the user is there."""


class ClientStatus(Struct, frozen=True, kw_only=True):
    client: ClientName
    scope: Scope
    program: bool
    """Whether the client itself is on this machine."""
    state: Literal["installed", "partly installed", "not installed", "not known"]
    changed: tuple[str, ...] = ()
    """Files that have something of the user in the place of ours."""
    problem: str = ""
    """Why the state is not known."""


def program() -> str:
    """The absolute path of the command: a client need not have the PATH of this shell."""
    own = Path(sysconfig.get_path("scripts"), "iterdev")
    found = str(own) if own.exists() else shutil.which("iterdev")
    if not found:
        raise HostError("The command iterdev is not installed", hint=f"{sys.executable} -m pip install iterdev")
    return found


def place(
    scope: Scope, folder: Path, *, allow: bool = False, environment: Mapping[str, str] = os.environ, command: str = ""
) -> Place:
    root = Path(environment.get("HOME") or Path.home()) if scope is Scope.user else checkout.top_level(folder)
    return Place(scope=scope, root=root, environment=environment, program=command or program(), allow=allow)


def chosen(names: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[ClientName, ...]:
    """The clients that are named, or else those that are installed."""
    if "all" in names:
        return tuple(ClientName)
    if names:
        return tuple(ClientName(name) for name in dict.fromkeys(names))
    found = tuple(name for name in ClientName if shutil.which(name, path=environment.get("PATH")))
    if not found:
        known = ", ".join(ClientName)
        raise UserError("No client was found on this machine", hint=f"iterdev skill install --client NAME ({known})")
    return found


def plan_install(clients: Sequence[ClientName], where: Place) -> list[Step]:
    """What `install` would do now. Nothing is changed."""
    record = read_record()
    return [_planned(client, part, record) for client, part in _each(clients, where)]


def install(clients: Sequence[ClientName], where: Place) -> list[Step]:
    record = read_record()
    done = []
    try:
        for client, part in _each(clients, where):
            step = _planned(client, part, record)
            if step.action in {"create", "change"}:
                settings_files.put(part, record)
            done.append(step)
    finally:
        settings_files.write_record(record)
    return done


def plan_removal(clients: Sequence[ClientName], where: Place) -> list[Step]:
    """What `remove` would do now. Nothing is changed."""
    record = read_record()
    kept = _still_used(clients, where)
    planned = (
        _planned_removal(client, part, record) for client, part in _each(clients, where) if part.path not in kept
    )
    return [step for step in planned if step]


def remove(clients: Sequence[ClientName], where: Place) -> list[Step]:
    """Removes what was installed; files that the user changed are kept, and named."""
    record = read_record()
    kept = _still_used(clients, where)
    done = []
    try:
        # The last one first, so that what was put in twice into a file comes out in the opposite order.
        for client, part in reversed([one for one in _each(clients, where) if one[1].path not in kept]):
            step = _planned_removal(client, part, record)
            if step and step.action == "remove":
                settings_files.take(part, record)
            if step:
                done.append(step)
    finally:
        settings_files.write_record(record)
    return done[::-1]


def status(where: Place) -> list[ClientStatus]:
    """Where the skills are installed, with or without leave to call the tools."""
    record, found = read_record(), []
    for client in ClientName:
        is_program = shutil.which(client, path=where.environment.get("PATH")) is not None
        status = ClientStatus(client=client, scope=where.scope, program=is_program, state="not known")
        try:
            found.append(_known_status(status, where, record))
        except (UserError, HostError) as error:
            found.append(replace(status, problem=error.message))
    return found


def _known_status(status: ClientStatus, where: Place, record: Record) -> ClientStatus:
    variants = [parts(status.client, replace(where, allow=allow)) for allow in (False, True)]
    there = [[part for part in made if is_there(part, read(part.path))] for made in variants]
    complete = any(len(one) == len(made) for one, made in zip(there, variants, strict=True))
    begun = any(not _is_shared(part) for part in there[0])
    changed = tuple(str(part.path) for part in variants[0] if is_taken(part, read(part.path), record))
    state = "installed" if complete else "partly installed" if begun else "not installed"
    return replace(status, state=state, changed=changed)


def _is_shared(part: Part) -> bool:
    return ".agents" in part.path.parts and part.path.name == "SKILL.md"


def _each(clients: Iterable[ClientName], where: Place) -> list[tuple[ClientName, Part]]:
    """The parts of all clients; a file that several of them read is there once."""
    seen: set[Path] = set()
    found = []
    for client in clients:
        for part in parts(client, where):
            if not isinstance(part, OwnFile) or part.path not in seen:
                found.append((client, part))
            seen.add(part.path)
    return found


def _still_used(clients: Sequence[ClientName], where: Place) -> set[Path]:
    """Files that clients read which are not among these, and are installed."""
    others = [name for name in ClientName if name not in clients]
    made = {name: parts(name, where) for name in others}
    used = (
        name
        for name in others
        if any(is_there(part, read(part.path)) for part in made[name] if not isinstance(part, OwnFile))
    )
    return {part.path for name in used for part in made[name] if isinstance(part, OwnFile)}


def _planned(client: ClientName, part: Part, record: Record) -> Step:
    text = read(part.path)
    if is_there(part, text):
        action: Action = "keep"
    elif is_taken(part, text, record):
        action = "leave"
    else:
        action = "create" if text is None else "change"
    return Step(client=client, path=str(part.path), what=described(part), action=action)


def _planned_removal(client: ClientName, part: Part, record: Record) -> Step | None:
    text = read(part.path)
    step = Step(client=client, path=str(part.path), what=described(part), action="remove")
    match part:
        case _ if text is None:
            return None
        case OwnFile():
            return step if is_ours(text) else Step(client=client, path=step.path, what=step.what, action="leave")
        case JsonItems() if not record.texts(part):
            return None
        case _ if settings_files.without(part, text, record) == text:
            return None
        case _ if is_taken(part, text, record):
            return Step(client=client, path=step.path, what=step.what, action="leave")
        case _:
            return step


def described(part: Part) -> str:
    match part:
        case OwnFile():
            return "the whole file"
        case JsonEntry(keys=keys) | TomlTables(keys=keys):
            return ".".join(keys)
        case JsonItems(keys=keys, items=items):
            return f"{'.'.join(keys)}: {', '.join(items)}"
