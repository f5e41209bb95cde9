"""A minimal MCP server over HTTP with one tool, which records its argument.

With it, scenarios show that an agent reaches the team's tools.
"""

from msgspec import Struct

from iterdev.conformance.model.messages import Json

PATH = "/mcp"
TOOL = "note"

_ABOUT: Json = {"serverInfo": {"name": "notes", "version": "1"}, "capabilities": {"tools": {}}}
_NOTE: Json = {
    "name": TOOL,
    "description": "Records a text.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class Note(Struct, frozen=True, kw_only=True):
    text: str
    token: str
    """The token in the header of the request."""


class RpcMessage(Struct, frozen=True, kw_only=True):
    """The part of a JSON-RPC message that is needed to answer it."""

    method: str = ""
    id: int | str | None = None
    params: dict[str, object] = {}

    def note(self, authorization: str) -> Note | None:
        match self:
            case RpcMessage(method="tools/call", params={"name": str(tool), "arguments": {"text": str(text)}}):
                return Note(text=text, token=authorization.removeprefix("Bearer ")) if tool == TOOL else None
            case _:
                return None

    def answer(self) -> Json | None:
        """The response; None for a notification."""
        return None if self.id is None else {"jsonrpc": "2.0", "id": self.id, **self._outcome()}

    def _outcome(self) -> Json:
        result = self._result()
        # Clients try newer methods first, and fall back after this code.
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
