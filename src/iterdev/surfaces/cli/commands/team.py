"""team: the messages and discoveries of a session, for people, and for agents that do not speak MCP."""

import json

import click

from iterdev.surfaces.cli.arguments import document
from iterdev.surfaces.cli.tool_client import called

EXAMPLE = '{"status": "half done"}'

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
    tool, wanted = ELSEWHERE.get(operation, ("team_msg", operation))
    if tool == "report_result":
        given: dict[str, object] = {"result": document(data or "-", EXAMPLE)}
    else:
        given = {"operation": wanted, "to": to, "type": kind, "summary": summary, "last": last, "id": message}
        given |= {"role": role, "data": document(data, EXAMPLE) if data else None}
        given |= {"from": sender} if tool == "team_msg" else {}
    answer = called(tool, given, session=session_id, hint="iterdev team --help", sender=sender or "")
    click.echo(json.dumps(answer, ensure_ascii=False) if as_json else _shown(operation, answer))
    return 0


def _shown(operation: str, answer: dict[str, object]) -> str:
    match answer:
        case {"messages": list(found)}:
            return "\n".join(map(_line, found)) or "No message fits."
        case {"members": list(found)}:
            return "\n".join(f"{m['name']:<12} {m['count']:>4}  {m['last_seen']}  {m['last_action']}" for m in found)
        case {"discoveries": list(found)}:
            lines = (f"{one['worker']} {one['type']}: {json.dumps(one['data'], ensure_ascii=False)}" for one in found)
            return "\n".join(lines) or "Nothing is on the board."
        case {"accepted": True, "note": str(note)} | {"added": False, "note": str(note)}:
            return note
        case {"deleted": str(name)}:
            return f"{name} is deleted."
        case {"cleared": int(count)}:
            return f"{count} messages are gone."
        case {"added": True}:
            return "It is on the board."
        case {"id": str(), "summary": str()} if operation != "read":
            return _line(answer)
        case _:
            return json.dumps(answer, ensure_ascii=False, indent=2)


def _line(message: dict[str, object]) -> str:
    return f"{message['id']}  {message['ts']}  to {message['to']}  {message['type']}  {message['summary']}"
