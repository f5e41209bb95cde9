"""The Model Context Protocol, as far as a server of a few tools needs it: one JSON answer to each message.

The protocol's own SDK would take 0.6 s and 40 MB of every run; its client checks in the tests that we are understood.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from iterdev import __version__
from iterdev.core.collaboration.tool_schemas import TOOLS, ToolArguments
from iterdev.engine.team_tools import CallRejected, Document

VERSIONS = ("2025-06-18", "2025-11-25")
"""Those that have the same few messages; a client that offers another one gets the newest of these."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

Use = Callable[[ToolArguments], Awaitable[Document]]
Id = int | float | str | None


class Unreadable(Exception):
    """Not a message of the protocol; the text is the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = _failure(None, code, message)


class Message(Struct, frozen=True, kw_only=True):
    jsonrpc: Literal["2.0"]
    method: str = ""
    id: Id | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class Opening(Struct, frozen=True, kw_only=True):
    version: str = msgspec.field(name="protocolVersion")


class ToolCall(Struct, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")


async def answer(body: bytes, use: Use) -> bytes | None:
    """The answer to a message, or None for one that wants no answer."""
    message = _read(body)
    if message.id is UNSET or not message.method:
        return None
    try:
        return await _answer(message, message.id, use)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _failure(message.id, INVALID_PARAMS, _words(error))


def _read(body: bytes) -> Message:
    try:
        return msgspec.json.decode(body, type=Message)
    except msgspec.ValidationError as error:
        raise Unreadable(INVALID_REQUEST, str(error)) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(PARSE_ERROR, _words(error)) from error


async def _answer(message: Message, to: Id, use: Use) -> bytes:
    match message.method:
        case "initialize":
            return _success(to, _about(msgspec.json.decode(message.params, type=Opening)))
        case "ping":
            return _success(to, {})
        case "tools/list":
            return _success(to, {"tools": _TOOLS})
        case "tools/call":
            return await _called(to, msgspec.json.decode(message.params, type=ToolCall), use)
        case unknown:
            return _failure(to, METHOD_NOT_FOUND, f'there is no method "{unknown}"')


def _about(opening: Opening) -> Document:
    return {
        "protocolVersion": opening.version if opening.version in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "iterdev", "version": __version__},
    }


async def _called(to: Id, call: ToolCall, use: Use) -> bytes:
    tool = next((tool for tool in TOOLS if tool.name == call.name), None)
    if tool is None:
        return _failure(to, INVALID_PARAMS, f'there is no tool "{call.name}"')
    try:
        said = msgspec.json.encode(await use(msgspec.json.decode(call.arguments, type=tool.arguments))).decode()
    except CallRejected as rejection:
        return _success(to, _told(str(rejection), failed=True))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        # An agent can fix its arguments only if it sees what is wrong, so this is an answer of the tool.
        return _success(to, _told(f"{tool.name} was called wrongly: {_words(error)}", failed=True))
    return _success(to, _told(said, failed=False))


def _told(text: str, *, failed: bool) -> Document:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _words(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _success(to: Id, result: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to, "result": result})


def _failure(to: Id, code: int, message: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}})


_TOOLS = [{"name": tool.name, "description": tool.description, "inputSchema": tool.schema} for tool in TOOLS]
