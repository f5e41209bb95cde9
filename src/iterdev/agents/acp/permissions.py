"""Whether an agent gets what it asks for: decided at once, from what its role may do."""

import re
from collections.abc import Sequence

from msgspec import Struct

from iterdev.agents.common.paths import is_inside
from iterdev.agents.contract import TOOLS, Permissions

OUR_TOOL = re.compile(rf"(mcp_+)?{TOOLS}[-_/:. ]+\w+|\w+ \({TOOLS} MCP Server\).*", re.DOTALL)
"""How agents call a tool of the team; each puts the name of the server somewhere else."""


KINDS = {"bash": "execute", "shell": "execute", "write": "edit", "edit": "edit"}
"""Some agents do not say of what kind a tool is; then the first word of its title is its name."""


class Wish(Struct, frozen=True, kw_only=True):
    """A call of a tool, as far as the agent describes it."""

    kind: str
    title: str
    paths: Sequence[str] = ()


def granted(wish: Wish, permissions: Permissions, workspace: str) -> bool:
    named = KINDS.get(wish.title.split(" ")[0].lower(), "other")
    match named if wish.kind == "other" else wish.kind:
        case "read" | "search" | "think":
            return True
        case "edit" | "delete" | "move":
            return permissions.write and bool(wish.paths) and all(is_inside(path, workspace) for path in wish.paths)
        case "execute":
            return permissions.shell
        case "fetch":
            return permissions.network
        case _:
            return OUR_TOOL.fullmatch(wish.title) is not None
