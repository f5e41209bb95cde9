"""The tools of the team: for a person, with or without a running engine, and for a program inside of an attempt."""

import http.client
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from iterdev.agents.contract import TOOLS_TOKEN, TOOLS_URL
from iterdev.app.edits import edit_session
from iterdev.app.sessions import named_or_last_active, newest_of_team, refuse_inside_attempt, repository_of_attempt
from iterdev.core.collaboration.tool_schemas import TOOLS
from iterdev.core.errors import HostError, UserError
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.engine.team_tools import Document, Person, TeamTools
from iterdev.mcp.tools import CallRejected

TIMEOUT = 30.0
COMMANDS = ("lock", "checkpoint")
"""The tools that have a command of their own; the others are in `iterdev team`."""
READS = frozenset({"list", "read", "status", "get_state"})
"""Operations that an agent may use without its token, which a coding agent may keep from the commands that it runs."""


def call(
    tool: str,
    arguments: Mapping[str, object],
    environment: Mapping[str, str],
    folder: Path,
    *,
    session: str | None,
    team: str = "",
    sender: str = "",
) -> Document:
    """The answer of a tool, over HTTP with the token of an attempt if the environment has one; raises CallRejected."""
    url, token = environment.get(TOOLS_URL), environment.get(TOOLS_TOKEN)
    if url and token:
        own = {"session_id": session} if session and tool != "board" else {}
        named = {"team": team} if team and tool == "team_msg" else {}
        return _request(url, token, tool, {**arguments, **own, **named})
    if arguments.get("operation") not in READS:
        command, hint = tool if tool in COMMANDS else "team", f"call it with {TOOLS_URL} and {TOOLS_TOKEN}, or over MCP"
        refuse_inside_attempt(command, environment, folder, hint)
    repository = repository_of_attempt(environment) or Repository(folder)
    of_team = team and not session
    found = newest_of_team(repository, team) if of_team else named_or_last_active(repository, session)
    return use(repository, found, tool, arguments, sender=sender)


def use(
    repository: Repository, session: SessionId, tool: str, arguments: Mapping[str, object], *, sender: str = ""
) -> Document:
    """The answer of a tool to a person; raises CallRejected, or UserError if the person has to say more."""
    (arguments_type,) = (one.arguments for one in TOOLS if one.name == tool)
    try:
        asked = msgspec.convert(arguments, arguments_type)
    except msgspec.ValidationError as error:
        raise CallRejected(str(error)) from error
    with edit_session(repository, session) as log:
        tools = TeamTools(
            log,
            repository.folder(log.state),
            redact=repository.redact,
            engine_alive=lambda state: repository.engine_alive(state.session),
        )
        return tools.use(Person(sender), asked)


def broadcast(repository: Repository, session: SessionId, text: str, *, sender: str) -> str:
    """Sends a message of a person to all roles; returns its id."""
    hint = "one sentence, such as: the old endpoint stays"
    if not text.strip():
        raise UserError("The message is empty", hint=hint)
    try:
        sent = use(repository, session, "team_msg", {"operation": "broadcast", "summary": text}, sender=sender)
    except CallRejected as error:
        raise UserError(str(error), hint=hint) from error
    return str(sent["id"])


def _request(url: str, token: str, tool: str, arguments: Document) -> Document:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    match msgspec.json.decode(_post(url, token, msgspec.json.encode(message))):
        case {"error": {"message": str(wrong)}} | {"result": {"content": [{"text": str(wrong)}], "isError": True}}:
            raise CallRejected(wrong)
        case {"result": {"content": [{"text": str(text)}]}}:
            return msgspec.json.decode(text, type=dict[str, object])
        case other:
            raise HostError(f'"{url}" gave an unexpected answer: {other}')


def _post(url: str, token: str, body: bytes) -> bytes:
    place = urlsplit(url)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT)) as connection:
            connection.request("POST", place.path, body, headers)
            response = connection.getresponse()
            text = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise HostError(f'No answer from "{url}": {error}', hint="the run that named it has ended") from error
    if response.status == http.client.UNAUTHORIZED:
        raise UserError("The token is not valid any more", hint="it belongs to an attempt, and ends with it")
    if response.status == http.client.FORBIDDEN:
        raise UserError("The token belongs to another attempt", hint="use the variables of this one")
    if response.status != http.client.OK:
        raise HostError(f'"{url}" answered with {response.status} {response.reason}', hint="send less at once")
    return text
