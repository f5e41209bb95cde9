"""The lines that `codex exec --json` writes, as values, their descriptions in one line, and the failures they report.

Only what iterdev uses is here. Every release adds kinds of lines, which are skipped.
"""

import re
import shlex
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from iterdev.agents.common.failures import kind_in
from iterdev.agents.common.streams import LINE_LENGTH
from iterdev.agents.contract import AgentEvent, PermissionAsked, Said
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

# Codex reports the HTTP status of the provider in its words only. The order matters: a limit can end a stream, and its
# words can name a model, a plan or a window.
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.limited: r"\b429\b|usage limit|rate.?limit|too many requests|quota exceeded|spend limit",
    FailureKind.too_long: r"context_length_exceeded|context window|input exceeds .{0,40}(tokens|length)",
    FailureKind.not_logged_in: r"\bstatus:? 40[13]\b|unauthorized|not logged in|refresh token"
    r"|(sign|log) in again|environment variable: ",
    FailureKind.overloaded: r"\bstatus:? 5\d\d\b|high demand|at capacity|overloaded|stream disconnected"
    r"|connection failed|timed? ?out",
}


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

DENIAL_LIMIT = 4 * 1024
"""Bytes of a line of its standard error in which a denial is looked for."""

_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_DENIED = re.compile(r"\berror=(.*(?:approval (?:settings|policy)|read-only sandbox).*)")


def read(line: bytes) -> Event | None:
    """The event of a line, if it is of a known kind."""
    try:
        return _EVENTS.decode(line)
    except (ValueError, RecursionError):
        return None


def failure_kind(message: str) -> FailureKind:
    return kind_in(message, BY_MESSAGE) or FailureKind.crashed


def denied_permission(line: bytes) -> PermissionAsked | None:
    """A denied permission, which Codex reports on its standard error only."""
    found = _DENIED.search(line[:DENIAL_LIMIT].decode(errors="replace"))
    return PermissionAsked(_short(found[1].split("; rejected by")[0])) if found else None


def describe(event: Event, workspace: str) -> AgentEvent | None:
    """The event to report for a line."""
    match event:
        case ErrorReported(message) | ItemCompleted(Item(type="error", message=message)):
            return _said(message)
        case ItemStarted(Item(type="command_execution") as item):
            return _said(f"$ {_unwrapped(item.command)}")
        case ItemStarted(Item(type="mcp_tool_call") as item):
            return _said(f"{item.server}: {item.tool}")
        case ItemCompleted(Item(type="agent_message") as item):
            return _said(item.text)
        case ItemCompleted(Item(type="file_change") as item):
            inside = workspace.rstrip("/") + "/"
            return _said(", ".join(f"{change.kind} {change.path.removeprefix(inside)}" for change in item.changes))
        case ItemCompleted(Item(type="web_search") as item):
            return _said(f"search: {item.query}")
        case ItemCompleted(Item(type="mcp_tool_call", error=Failure(message)) as item) if "approval" in message:
            return PermissionAsked(f"{item.server}: {item.tool}")
        case ItemCompleted(Item(status="declined") as item):
            return PermissionAsked(_short(_unwrapped(item.command)))
        case _:
            return None


def _unwrapped(command: str) -> str:
    """The command, without the shell that Codex wraps around it; one of many kilobytes is not looked at."""
    try:
        words = shlex.split(command) if len(command) <= LINE_LENGTH else []
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in {"-c", "-lc"} else command


def _said(text: str) -> Said | None:
    return Said(_short(text)) if text.strip() else None


def _short(text: str) -> str:
    # Cut first: a command or a message can be a whole file.
    return " ".join(text[: 4 * LINE_LENGTH].split())[:LINE_LENGTH]
