"""The Model Context Protocol, as far as a server of a few tools needs it: one JSON answer to each message.

The protocol's own SDK would take 0.6 s and 40 MB of every run; its client checks in the tests that we are understood.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from iterdev import __version__
from iterdev.core.collaboration.tool_schemas import Arguments, Tool
from iterdev.engine.team_tools import CallRejected, Document

VERSIONS = ("2025-06-18", "2025-11-25")
"""Those that have the same few messages; a client that offers another one gets the newest of these."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What decoding raises for bytes that are not valid."""

Id = int | float | str | None
UseTool = Callable[[Arguments], Awaitable[Document]]


class InvalidMessage(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = _failure(None, code, message)


class Message(Struct, frozen=True, kw_only=True):
    jsonrpc: Literal["2.0"]
    method: str = ""
    id: Id | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class InitializeParams(Struct, frozen=True, kw_only=True):
    version: str = msgspec.field(name="protocolVersion")


class CallParams(Struct, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")


async def answer(body: bytes, tools: Sequence[Tool[Arguments]], use: UseTool[Arguments]) -> bytes | None:
    """The answer to a message, or None for one that wants no answer."""
    try:
        message = msgspec.json.decode(body, type=Message)
    except msgspec.ValidationError as error:
        raise InvalidMessage(INVALID_REQUEST, str(error)) from error
    except UNREADABLE as error:
        raise InvalidMessage(PARSE_ERROR, _reason(error)) from error
    if message.id is UNSET or not message.method:
        return None
    try:
        match message.method:
            case "initialize":
                result = _server(msgspec.json.decode(message.params, type=InitializeParams))
            case "ping":
                result = {}
            case "tools/list":
                result = {"tools": [_listed(tool) for tool in tools]}
            case "tools/call":
                result = await _call(msgspec.json.decode(message.params, type=CallParams), tools, use)
            case unknown:
                return _failure(message.id, METHOD_NOT_FOUND, f'there is no method "{unknown}"')
    except UNREADABLE as error:
        return _failure(message.id, INVALID_PARAMS, _reason(error))
    return msgspec.json.encode({"jsonrpc": "2.0", "id": message.id, "result": result})


def _server(params: InitializeParams) -> Document:
    return {
        "protocolVersion": params.version if params.version in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "iterdev", "version": __version__},
    }


def _listed(tool: Tool[Arguments]) -> Document:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}


async def _call(params: CallParams, tools: Sequence[Tool[Arguments]], use: UseTool[Arguments]) -> Document:
    tool = next((tool for tool in tools if tool.name == params.name), None)
    if tool is None:
        raise msgspec.ValidationError(f'there is no tool "{params.name}"')
    failed = True
    try:
        text = msgspec.json.encode(await use(msgspec.json.decode(params.arguments, type=tool.arguments))).decode()
        failed = False
    except CallRejected as rejection:
        text = str(rejection)
    except UNREADABLE as error:
        # An agent can fix its arguments only if it sees what is wrong, so this is an answer of the tool.
        text = f"{tool.name} was called wrongly: {_reason(error)}"
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _failure(to: Id, code: int, message: str) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}})
