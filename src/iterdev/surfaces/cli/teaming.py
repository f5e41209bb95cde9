"""team: the messages and discoveries of a session, for people, and for agents that do not speak MCP."""

import json
import os
import sys
from pathlib import Path

import click
import msgspec

from iterdev.agents.contract import TOOLS_TOKEN, TOOLS_URL
from iterdev.core.errors import UserError
from iterdev.core.tools import TOOLS, ToolArguments
from iterdev.engine import posting
from iterdev.engine.repository import Repository
from iterdev.host import toolcalls

ELSEWHERE = {
    "board-read": ("board", "read"),
    "board-add": ("board", "add"),
    "report-result": ("report_result", ""),
    "get-state": ("team_msg", "get_state"),
}
"""Operations that are not called as they are, or not of the tool `team_msg`."""


def team(
    *,
    operation: str,
    session_id: str | None,
    sender: str | None,
    to: str | None,
    kind: str | None,
    summary: str | None,
    data: str | None,
    last: int | None,
    message: str | None,
    role: str | None,
    as_json: bool,
) -> int:
    name, called = ELSEWHERE.get(operation, ("team_msg", operation))
    if name == "report_result":
        arguments: dict[str, object] = {"result": _json(data or "-")}
    else:
        given: dict[str, object] = {
            "to": to,
            "type": kind,
            "summary": summary,
            "last": last,
            "id": message,
            "role": role,
        }
        given |= {"from": sender if name == "team_msg" else None, "data": _json(data) if data else None}
        arguments = {"operation": called} | {key: value for key, value in given.items() if value is not None}
    document = _used(name, arguments, session_id, sender or "")
    click.echo(json.dumps(document, ensure_ascii=False) if as_json else _shown(operation, document))
    return 0


def _used(name: str, arguments: dict[str, object], session: str | None, sender: str) -> dict[str, object]:
    """In an attempt its token says who is calling; a person says it themselves."""
    url, token = os.environ.get(TOOLS_URL), os.environ.get(TOOLS_TOKEN)
    if url and token:
        about = {"session_id": session} if session and name == "team_msg" else {}
        return toolcalls.call(url, token, name, arguments | about)
    if not session:
        raise UserError("No session is named", hint="--session-id ID, from `iterdev sessions`")
    repository = Repository(Path.cwd())
    return posting.use(repository, repository.find(session), _checked(name, arguments), sender)


def _checked(name: str, arguments: dict[str, object]) -> ToolArguments:
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    try:
        return msgspec.convert(arguments, tool.arguments)
    except msgspec.ValidationError as error:
        raise UserError(str(error), hint="iterdev team --help") from error


def _json(text: str) -> object:
    body = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f'"{body[:80]}" is not JSON: {error}', hint='--data \'{"status": "half done"}\'') from error


def _shown(operation: str, document: dict[str, object]) -> str:
    match document:
        case {"messages": list(found)}:
            return "\n".join(map(_line, found)) or "No message fits."
        case {"members": list(found)}:
            return "\n".join(f"{m['name']:<12} {m['count']:>4}  {m['last_seen']}  {m['last_action']}" for m in found)
        case {"discoveries": list(found)}:
            lines = (f"{one['worker']} {one['type']}: {json.dumps(one['data'], ensure_ascii=False)}" for one in found)
            return "\n".join(lines) or "Nothing is on the board."
        case {"accepted": True, "note": str(note)} | {"added": False, "note": str(note)}:
            return note
        case {"added": True}:
            return "It is on the board."
        case {"id": str(), "summary": str()} if operation != "read":
            return _line(document)
        case _:
            return json.dumps(document, ensure_ascii=False, indent=2)


def _line(message: dict[str, object]) -> str:
    return f"{message['id']}  {message['ts']}  to {message['to']}  {message['type']}  {message['summary']}"
