"""`iterdev mcp`: the server for one client of a person, in the repository that the client works in."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from msgspec import Struct

from iterdev.mcp.messages import Document
from iterdev.mcp.server import Call, Server
from iterdev.mcp.tools import Prompt, Response, ToolAnswer
from iterdev.surfaces.mcp.client import Client
from iterdev.surfaces.mcp.prompts import PROMPTS
from iterdev.surfaces.mcp.stdio import Connection, standard_streams
from iterdev.surfaces.mcp.tools import TOOLS

if TYPE_CHECKING:
    from iterdev.surfaces.mcp.calls import Calls

FOLDER = "CLAUDE_PROJECT_DIR"
"""The variable in which Claude Code names the folder that it works in."""
INSTRUCTIONS = """\
iterdev runs a team of coding agents on the user's repository, in the background and for minutes to hours.
Start it only when the user asks for team-iterdev or team-issue by name. Pass on questions to the user, and never answer
them yourself. Only the user accepts the work."""


class LazyCalls:
    """The tools and tasks, which are loaded when the first is used: some clients do not wait long for a server."""

    def __init__(self, folder: Path, client: Client) -> None:
        self._folder, self._client = folder, client

    async def use(self, asked: Struct, call: Call) -> ToolAnswer:
        return await (await self._calls()).use(asked, call)

    async def get(self, task: str) -> Document:
        return await (await self._calls()).get(task)

    async def update(self, task: str, responses: Mapping[str, Response]) -> None:
        await (await self._calls()).update(task, responses)

    async def cancel(self, task: str) -> None:
        await (await self._calls()).cancel(task)

    async def _calls(self) -> "Calls":
        return await run_sync(self._loaded)

    def _loaded(self) -> "Calls":
        from iterdev.surfaces.mcp.calls import Calls  # noqa: PLC0415 - it loads all that can be done

        return Calls(self._folder, self._client)


async def serve(*, with_prompts: bool = True) -> None:
    folder = Path(os.environ.get(FOLDER) or Path.cwd())
    async with standard_streams() as (lines, write):
        connection = Connection(write)
        await connection.serve(offered(folder, connection, PROMPTS if with_prompts else ()), lines)


def offered(folder: Path, client: Client, prompts: Sequence[Prompt] = PROMPTS) -> Server:
    """What a client can do with the repository that the folder is in."""
    calls = LazyCalls(folder, client)
    return Server(
        tools=TOOLS, use=calls.use, prompts=prompts, instructions=INSTRUCTIONS, is_stateless=True, tasks=calls
    )
