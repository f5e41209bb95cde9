"""The lines that `codex exec --json` writes, as values, and their descriptions in one line.

Only what iterdev uses is here. Every release adds kinds of lines, which are skipped.
"""

import re
import shlex
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.common.output import LINE_LENGTH
from iterdev.agents.contract import AgentEvent, PermissionAsked, Said
from iterdev.core.results import Usage


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
    usage: Usage | None = None
    """Since the start of the thread, cached and reasoning tokens included."""


class TurnFailed(Struct, frozen=True, tag_field="type", tag="turn.failed"):
    error: Failure = Failure()


class ErrorReported(Struct, frozen=True, tag_field="type", tag="error"):
    """An error; it was fatal only if no end of the turn follows."""

    message: str = ""


Event = ThreadStarted | ItemStarted | ItemCompleted | TurnCompleted | TurnFailed | ErrorReported

_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_DENIED = re.compile(r"\berror=(.*(?:approval (?:settings|policy)|read-only sandbox).*)")


def read(line: bytes) -> Event | None:
    """The event of a line, if it is of a known kind."""
    try:
        return _EVENTS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def denied_permission(line: bytes) -> PermissionAsked | None:
    """A denied permission, which Codex reports on its standard error only."""
    found = _DENIED.search(line.decode(errors="replace"))
    return PermissionAsked(_short(found[1].split("; rejected by")[0])) if found else None


def describe(event: Event, workspace: str) -> AgentEvent | None:
    """The event to report for a line."""
    match event:
        case ErrorReported(message):
            return _said(message)
        case ItemStarted(Item(type="command_execution") as item):
            return _said(f"$ {_unwrapped(item.command)}")
        case ItemStarted(Item(type="mcp_tool_call") as item):
            return _said(f"{item.server}: {item.tool}")
        case ItemCompleted(item):
            return _describe_item(item, workspace)
        case _:
            return None


def _describe_item(item: Item, workspace: str) -> AgentEvent | None:
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
    """The command, without the shell that Codex wraps around it."""
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
