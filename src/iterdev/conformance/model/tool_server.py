"""The least that is an MCP server over HTTP: one tool, which notes down what it is given.

It is here so that the way from an agent to the team's tools can be tried out where the model is played.
"""

from msgspec import Struct

from iterdev.conformance.model.messages import Json

PATH = "/mcp"
TOOL = "note"

_ABOUT: Json = {"serverInfo": {"name": "notes", "version": "1"}, "capabilities": {"tools": {}}}
_NOTE: Json = {
    "name": TOOL,
    "description": "Notes down a text.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class Note(Struct, frozen=True, kw_only=True):
    text: str
    token: str
    """Whose note it is, as the header says."""


class Message(Struct, frozen=True, kw_only=True):
    """As much of a JSON-RPC message as is needed to answer it."""

    method: str = ""
    id: int | str | None = None
    params: dict[str, object] = {}

    def note(self, authorization: str) -> Note | None:
        match self:
            case Message(method="tools/call", params={"name": str(tool), "arguments": {"text": str(text)}}):
                return Note(text=text, token=authorization.removeprefix("Bearer ")) if tool == TOOL else None
            case _:
                return None

    def answer(self) -> Json | None:
        """None for a notification, to which there is no answer."""
        return None if self.id is None else {"jsonrpc": "2.0", "id": self.id, **self._outcome()}

    def _outcome(self) -> Json:
        result = self._result()
        # Clients try newer methods first, and go by this code.
        unknown = {"code": -32601, "message": f"There is no method {self.method}."}
        return {"error": unknown} if result is None else {"result": result}

    def _result(self) -> Json | None:
        match self.method:
            case "initialize":
                return {**_ABOUT, "protocolVersion": self.params.get("protocolVersion", "2025-06-18")}
            case "tools/list":
                return {"tools": [_NOTE]}
            case "tools/call":
                return {"content": [{"type": "text", "text": "noted"}]}
            case "ping":
                return {}
            case _:
                return None
