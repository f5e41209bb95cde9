"""The one tool of the MCP server beside the model, which records its argument.

With it, scenarios show that an agent reaches the team's tools; the protocol is answered by the same module.
"""

from msgspec import Struct

from iterdev.mcp.tools import Tool

PATH = "/mcp"
TOOL = "note"


class NoteArguments(Struct, frozen=True):
    text: str


TOOLS = (Tool(name=TOOL, description="Records a text.", arguments=NoteArguments),)


class Note(Struct, frozen=True, kw_only=True):
    text: str
    token: str
    """The token in the header of the request."""
