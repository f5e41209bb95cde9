"""What a tool may say to its client before the request is answered."""

from typing import Protocol

from iterdev.mcp.messages import Document
from iterdev.mcp.tools import Question, Response


class Client(Protocol):
    async def ask(self, question: Question) -> Response | None: ...

    async def notify(self, method: str, params: Document) -> None: ...
