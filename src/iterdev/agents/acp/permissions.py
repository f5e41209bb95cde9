"""Whether a tool call is allowed, by what the role may do."""

import re
from collections.abc import Iterator, Mapping, Sequence

from acp import schema

from iterdev.agents.common.environment import is_inside
from iterdev.agents.contract import TOOLS, Permissions

OUR_TOOL = re.compile(rf"(mcp_+)?{TOOLS}[-_/:. ]+\w+|\w+ \({TOOLS} MCP Server\).*", re.DOTALL)
"""The names that agents give to a tool of the team; the name of the server is in a different place in each."""

KINDS = {"bash": "execute", "shell": "execute", "write": "edit", "edit": "edit"}
"""The kinds of tools for agents that do not report them; the first word of the title is the name of the tool."""


def is_allowed(call: schema.ToolCallUpdate, permissions: Permissions, workspace: str) -> bool:
    title, kind = title_of(call), call.kind or "other"
    match KINDS.get(title.split(" ")[0].lower(), "other") if kind == "other" else kind:
        case "read" | "search" | "think":
            return True
        case "edit" | "delete" | "move":
            paths = list(_paths(call))
            return permissions.write and bool(paths) and all(is_inside(path, workspace) for path in paths)
        case "execute":
            return permissions.shell
        case "fetch":
            return permissions.network
        case _:
            return OUR_TOOL.fullmatch(title) is not None


def title_of(call: schema.ToolCallUpdate) -> str:
    return call.title or call.kind or "other"


def _paths(call: schema.ToolCallUpdate) -> Iterator[str]:
    yield from (location.path for location in call.locations or ())
    yield from (part.path for part in call.content or () if isinstance(part, schema.FileEditToolCallContent))
    arguments = call.raw_input if isinstance(call.raw_input, Mapping) else {}
    # Every agent names its arguments differently.
    for name, value in arguments.items():
        if isinstance(value, str) and str(name).lower().endswith(("path", "file", "filename")):
            yield value


def choose_option(
    options: Sequence[schema.PermissionOption], answer: str
) -> schema.AllowedOutcome | schema.DeniedOutcome:
    """The option that decides this call only, else the permanent one; without either, the call is cancelled."""
    for kind in (f"{answer}_once", f"{answer}_always"):
        for option in options:
            if option.kind == kind:
                return schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
    return schema.DeniedOutcome(outcome="cancelled")
