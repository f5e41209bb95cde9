"""The lines that `codex exec --json` writes, as values, and how they are told in a line.

Only what iterdev makes use of is here. Every release brings lines of new kinds: they are not read.
"""

import re
import shlex
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.command import LINE_LENGTH
from iterdev.agents.contract import AgentEvent, PermissionAsked, Said


class Totals(Struct, frozen=True):
    """Tokens since the start of the thread; the cached and the reasoning ones are counted in."""

    input_tokens: int = 0
    output_tokens: int = 0


class Failure(Struct, frozen=True):
    message: str = ""


class Change(Struct, frozen=True):
    path: str = ""
    kind: str = ""


class Item(Struct, frozen=True, kw_only=True):
    type: str = ""
    text: str = ""
    message: str = ""
    command: str = ""
    status: str = ""
    changes: tuple[Change, ...] = ()
    server: str = ""
    tool: str = ""
    query: str = ""
    error: Failure | None = None


class ThreadStarted(Struct, frozen=True, tag_field="type", tag="thread.started"):
    thread_id: str


class ItemStarted(Struct, frozen=True, tag_field="type", tag="item.started"):
    item: Item


class ItemCompleted(Struct, frozen=True, tag_field="type", tag="item.completed"):
    item: Item


class TurnCompleted(Struct, frozen=True, tag_field="type", tag="turn.completed"):
    usage: Totals | None = None


class TurnFailed(Struct, frozen=True, tag_field="type", tag="turn.failed"):
    error: Failure = Failure()


class Complained(Struct, frozen=True, tag_field="type", tag="error"):
    """Something went wrong; only when no end of the turn follows was it the end."""

    message: str = ""


Event = ThreadStarted | ItemStarted | ItemCompleted | TurnCompleted | TurnFailed | Complained

_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_REFUSED = re.compile(r"\berror=(.*(?:approval (?:settings|policy)|read-only sandbox).*)")


def read(line: bytes) -> Event | None:
    """The event of a line, if it is one that we know."""
    try:
        return _EVENTS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def refused(line: bytes) -> PermissionAsked | None:
    """The permission that was asked for and denied, which Codex tells on its standard error only."""
    found = _REFUSED.search(line.decode(errors="replace"))
    return PermissionAsked(_short(found[1].split("; rejected by")[0])) if found else None


def told(event: Event, workspace: str) -> AgentEvent | None:
    """What a person who looks on hears of an event."""
    match event:
        case Complained(message):
            return _said(message)
        case ItemStarted(Item(type="command_execution") as item):
            return _said(f"$ {_unwrapped(item.command)}")
        case ItemStarted(Item(type="mcp_tool_call") as item):
            return _said(f"{item.server}: {item.tool}")
        case ItemCompleted(item):
            return _told_item(item, workspace)
        case _:
            return None


def _told_item(item: Item, workspace: str) -> AgentEvent | None:
    match item.type:
        case "agent_message":
            return _said(item.text)
        case "file_change":
            return _said(", ".join(_changed(item, workspace)))
        case "web_search":
            return _said(f"search: {item.query}")
        case "error":
            return _said(item.message)
        case "mcp_tool_call" if item.error and "approval" in item.error.message:
            return PermissionAsked(f"{item.server}: {item.tool}")
        case _:
            return PermissionAsked(_short(_unwrapped(item.command))) if item.status == "declined" else None


def _changed(item: Item, workspace: str) -> Iterator[str]:
    for change in item.changes:
        yield f"{change.kind} {change.path.removeprefix(workspace.rstrip('/') + '/')}"


def _unwrapped(command: str) -> str:
    """The command itself, without the shell that Codex puts around it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in {"-c", "-lc"} else command


def _said(text: str) -> Said | None:
    return Said(_short(text)) if text.strip() else None


def _short(text: str) -> str:
    # Cut first: a command or a message can be a whole file.
    return " ".join(text[: 4 * LINE_LENGTH].split())[:LINE_LENGTH]
