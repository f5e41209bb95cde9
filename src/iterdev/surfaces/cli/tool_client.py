"""Calls a tool of the team: over HTTP with the token of an attempt, or directly for a person."""

import http.client
import json
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from iterdev.app import team_tools
from iterdev.app.team_tools import CallRejected
from iterdev.core.errors import HostError, UserError
from iterdev.surfaces.cli.arguments import repository_of_caller

TIMEOUT = 30.0


class Fault(Struct, frozen=True):
    message: str


class Text(Struct, frozen=True):
    text: str


class Result(Struct, frozen=True, rename={"failed": "isError"}):
    content: tuple[Text, ...]
    failed: bool


class Response(Struct, frozen=True):
    error: Fault | None = None
    result: Result | None = None


def call_tool(
    name: str, given: Mapping[str, object], *, session: str | None, hint: str, sender: str = ""
) -> dict[str, object]:
    """What the tool answers to those arguments that are given; `hint` goes with an error."""
    arguments = {key: value for key, value in given.items() if value is not None}
    if address := team_tools.address(os.environ):
        about = {"session_id": session} if session and name != "board" else {}
        return _call(*address, name, arguments | about, hint=hint)
    if not session:
        raise UserError("No session is named", hint="--session-id ID, from `iterdev sessions`")
    repository = repository_of_caller()
    try:
        return team_tools.use(repository, repository.find(session), name, arguments, sender=sender)
    except CallRejected as rejection:
        raise UserError(str(rejection), hint=hint) from rejection


def _call(url: str, token: str, tool: str, arguments: dict[str, object], *, hint: str) -> dict[str, object]:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    match _response(url, token, json.dumps(message).encode()):
        case Response(error=Fault(message=wrong)) | Response(result=Result(content=(Text(text=wrong),), failed=True)):
            raise UserError(wrong, hint=hint)
        case Response(result=Result(content=(Text(text=text),))):
            return msgspec.json.decode(text, type=dict[str, object])
        case other:
            raise HostError(f'"{url}" gave an answer that is none: {other}')


def _response(url: str, token: str, body: bytes) -> Response:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", place.path, body, headers)
        response = connection.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise HostError(f'No answer from "{url}": {error}', hint="the run that named it has ended") from error
    finally:
        connection.close()
    if response.status == http.client.UNAUTHORIZED:
        raise UserError("The token is not valid any more", hint="it belongs to an attempt, and ends with it")
    if response.status != http.client.OK:
        raise HostError(f'"{url}" answered with {response.status} {response.reason}', hint="send less at once")
    return msgspec.json.decode(text, type=Response)
