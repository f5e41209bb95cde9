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
        if self.id is None:
            return None
        results: dict[str, Json] = {
            "initialize": {**_ABOUT, "protocolVersion": self.params.get("protocolVersion", "2025-06-18")},
            "tools/list": {"tools": [_NOTE]},
            "tools/call": {"content": [{"type": "text", "text": "noted"}]},
            "ping": {},
        }
        # Clients try newer methods first, and fall back after this code.
        unknown = {"error": {"code": -32601, "message": f"There is no method {self.method}."}}
        outcome = {"result": results[self.method]} if self.method in results else unknown
        return {"jsonrpc": "2.0", "id": self.id, **outcome}
