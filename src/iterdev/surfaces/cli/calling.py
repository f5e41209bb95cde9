"""Calls a tool of the team: in an attempt its token says who is calling, and a person says it themselves."""

import os
from collections.abc import Mapping

import msgspec

from iterdev.agents.contract import TOOLS_TOKEN, TOOLS_URL
from iterdev.core.errors import UserError
from iterdev.core.tools import TOOLS, ToolArguments
from iterdev.engine import posting
from iterdev.engine.answers import Refused
from iterdev.host import toolcalls
from iterdev.surfaces.cli.sessions import repository


def called(
    name: str, given: Mapping[str, object], *, session: str | None, hint: str, sender: str = ""
) -> dict[str, object]:
    """What the tool answers to those arguments that are given; `hint` helps whoever is refused."""
    arguments = {key: value for key, value in given.items() if value is not None}
    url, token = os.environ.get(TOOLS_URL), os.environ.get(TOOLS_TOKEN)
    if url and token:
        about = {"session_id": session} if session and name != "board" else {}
        return toolcalls.call(url, token, name, arguments | about, hint=hint)
    if not session:
        raise UserError("No session is named", hint="--session-id ID, from `iterdev sessions`")
    found = repository()
    try:
        return posting.use(found, found.find(session), _checked(name, arguments, hint), sender)
    except Refused as refusal:
        raise UserError(str(refusal), hint=hint) from refusal


def _checked(name: str, arguments: dict[str, object], hint: str) -> ToolArguments:
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    try:
        return msgspec.convert(arguments, tool.arguments)
    except msgspec.ValidationError as error:
        raise UserError(str(error), hint=hint) from error
