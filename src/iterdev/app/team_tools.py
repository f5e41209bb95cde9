"""The tools of the team for a person, with or without a running engine."""

from collections.abc import Mapping

import msgspec

from iterdev.agents.contract import TOOLS_TOKEN, TOOLS_URL
from iterdev.app.edits import edit_session
from iterdev.core.collaboration.tool_schemas import TOOLS
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.engine.team_tools import CallRejected, Document, Person, TeamTools


def address(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The address and the token of the team's tools, inside of an attempt."""
    url, token = environment.get(TOOLS_URL), environment.get(TOOLS_TOKEN)
    return (url, token) if url and token else None


def use(
    repository: Repository, session: SessionId, tool: str, arguments: Mapping[str, object], *, sender: str = ""
) -> Document:
    """What the tool answers; raises CallRejected, or UserError where the person has to say more."""
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
