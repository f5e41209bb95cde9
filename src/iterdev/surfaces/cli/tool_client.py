"""Calls a tool of the team: over HTTP with the token of an attempt, or directly for a person."""

import http.client
import json
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from iterdev.agents.contract import TOOLS_TOKEN, TOOLS_URL
from iterdev.app import team_tools
from iterdev.core.collaboration.tool_schemas import TOOLS, ToolArguments
from iterdev.core.errors import HostError, UserError
from iterdev.engine.collaboration import Refused
from iterdev.surfaces.cli.arguments import repository

PATIENCE = 30.0


class Fault(Struct, frozen=True):
    message: str


class Text(Struct, frozen=True):
    text: str


class Result(Struct, frozen=True, rename={"failed": "isError"}):
    content: tuple[Text, ...]
    failed: bool


class Answer(Struct, frozen=True):
    error: Fault | None = None
    result: Result | None = None


def call(url: str, token: str, tool: str, arguments: dict[str, object], *, hint: str) -> dict[str, object]:
    """What the tool answers; its refusal is an error of the caller, who is given the hint."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    match _answer(url, token, json.dumps(message).encode()):
        case Answer(error=Fault(message=wrong)) | Answer(result=Result(content=(Text(text=wrong),), failed=True)):
            raise UserError(wrong, hint=hint)
        case Answer(result=Result(content=(Text(text=text),))):
            return msgspec.json.decode(text, type=dict[str, object])
        case other:
            raise HostError(f'"{url}" gave an answer that is none: {other}')


def _answer(url: str, token: str, body: bytes) -> Answer:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", place.path, body, headers)
        response = connection.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise HostError(f'Nobody answers at "{url}": {error}', hint="the run that named it has ended") from error
    finally:
        connection.close()
    if response.status == http.client.UNAUTHORIZED:
        raise UserError("The token is not valid any more", hint="it belongs to an attempt, and ends with it")
    if response.status != http.client.OK:
        raise HostError(f'"{url}" answered with {response.status} {response.reason}', hint="send less at once")
    return msgspec.json.decode(text, type=Answer)


def called(
    name: str, given: Mapping[str, object], *, session: str | None, hint: str, sender: str = ""
) -> dict[str, object]:
    """What the tool answers to those arguments that are given; `hint` helps whoever is refused."""
    arguments = {key: value for key, value in given.items() if value is not None}
    url, token = os.environ.get(TOOLS_URL), os.environ.get(TOOLS_TOKEN)
    if url and token:
        about = {"session_id": session} if session and name != "board" else {}
        return call(url, token, name, arguments | about, hint=hint)
    if not session:
        raise UserError("No session is named", hint="--session-id ID, from `iterdev sessions`")
    found = repository()
    try:
        return team_tools.use(found, found.find(session), _checked(name, arguments, hint), sender)
    except Refused as refusal:
        raise UserError(str(refusal), hint=hint) from refusal


def _checked(name: str, arguments: dict[str, object], hint: str) -> ToolArguments:
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    try:
        return msgspec.convert(arguments, tool.arguments)
    except msgspec.ValidationError as error:
        raise UserError(str(error), hint=hint) from error
