"""iterdev team: the messages and discoveries of a session, for people, and for agents that do not speak MCP."""

import json

import click

from iterdev.core.formatting import counted
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import local_time, print_either

EXAMPLE = '{"status": "half done"}'

MESSAGES = ("log", "broadcast", "list", "read", "status", "get-state", "delete", "clear")
OPERATIONS = {
    **{name: ("team_msg", name.replace("-", "_")) for name in MESSAGES},
    "board-read": ("board", "read"),
    "board-add": ("board", "add"),
    "report-result": ("report_result", ""),
}
"""The tool of each operation, and the tool's own name for it."""


@click.command(help="Use the messages and discoveries of a session; in an attempt, for its own task")
@click.argument("operation", type=click.Choice(list(OPERATIONS)))
@arguments.session_name
@click.option(
    "--team", "team_name", metavar="NAME", default="", help="Instead of a session: the newest one of this team"
)
@click.option("--from", "from", metavar="ROLE", help="The sender, or whose messages to list")
@click.option("--to", metavar="ROLE", help="The recipient  [default: coordinator]")
@click.option("--type", metavar="TYPE", help="The type of the message or discovery")
@click.option("--summary", metavar="TEXT", help="The message in one sentence")
@click.option("--ref", metavar="REF", help="What the message is about, such as a file")
@click.option("--data", metavar="JSON", help="Further data as a JSON object; - reads it from standard input")
@click.option("--last", type=click.IntRange(1, 100), metavar="N", help="How many to list  [default: 20]")
@click.option("--id", metavar="MSG", help="The message to read or delete, such as MSG-007")
@click.option("--role", metavar="ROLE", help="Whose shared state to get")
@arguments.as_json
def team(
    *, operation: str, session: str | None, team_name: str, data: str | None, as_json: bool, **given: object
) -> None:
    tool, name = OPERATIONS[operation]
    sender = str(given["from"] or "")
    if tool == "report_result":
        given = {"result": arguments.read_document(data or "-", EXAMPLE)}
    else:
        given |= {"operation": name, "data": arguments.read_document(data, EXAMPLE) if data else None}
        given |= {} if tool == "team_msg" else {"from": None}
    answer = arguments.call_tool(tool, given, session=session, team=team_name, sender=sender)
    print_either(_text(operation, answer), answer, as_json=as_json)


def _text(operation: str, answer: dict[str, object]) -> str:
    match answer:
        case {"messages": list(found)}:
            return "\n".join(map(_line, found)) or "No matching messages."
        case {"members": list(found)}:
            return "\n".join(
                f"{m['name']:<12} {m['count']:>4}  {local_time(m['last_seen'])}  {_in_one_line(m['last_action'])}"
                for m in found
            )
        case {"discoveries": list(found)}:
            lines = (f"{one['worker']} {one['type']}: {json.dumps(one['data'], ensure_ascii=False)}" for one in found)
            return "\n".join(lines) or "No discoveries."
        case {"accepted": True, "note": str(note)} | {"added": False, "note": str(note)}:
            return note
        case {"deleted": str(name)}:
            return f"Deleted {name}."
        case {"cleared": int(count)}:
            return f"Deleted {counted(count, 'message')}."
        case {"added": True}:
            return "Discovery added."
        case {"id": str(), "summary": str()} if operation != "read":
            return _line(answer)
        case _:
            return json.dumps(answer, ensure_ascii=False, indent=2)


def _line(message: dict[str, object]) -> str:
    summary = _in_one_line(message["summary"])
    return f"{message['id']}  {local_time(message['ts'])}  to {message['to']}  {message['type']}  {summary}"


def _in_one_line(text: object) -> str:
    """Another line would look like another message."""
    return " ".join(str(text).split())
