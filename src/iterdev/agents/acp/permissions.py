"""Whether a tool call is allowed, by what the role may do."""

import re
from collections.abc import Sequence

from msgspec import Struct

from iterdev.agents.common.paths import is_inside
from iterdev.agents.contract import TOOLS, Permissions

OUR_TOOL = re.compile(rf"(mcp_+)?{TOOLS}[-_/:. ]+\w+|\w+ \({TOOLS} MCP Server\).*", re.DOTALL)
"""The names that agents give to a tool of the team; the name of the server is in a different place in each."""

KINDS = {"bash": "execute", "shell": "execute", "write": "edit", "edit": "edit"}
"""The kinds of tools for agents that do not report them; the first word of the title is the name of the tool."""


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """A tool call, as far as the agent describes it."""

    kind: str
    title: str
    paths: Sequence[str] = ()


def is_allowed(request: PermissionRequest, permissions: Permissions, workspace: str) -> bool:
    named = KINDS.get(request.title.split(" ")[0].lower(), "other")
    match named if request.kind == "other" else request.kind:
        case "read" | "search" | "think":
            return True
        case "edit" | "delete" | "move":
            return (
                permissions.write and bool(request.paths) and all(is_inside(path, workspace) for path in request.paths)
            )
        case "execute":
            return permissions.shell
        case "fetch":
            return permissions.network
        case _:
            return OUR_TOOL.fullmatch(request.title) is not None
