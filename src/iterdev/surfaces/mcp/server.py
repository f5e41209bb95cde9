"""`iterdev mcp`: the server for one client of a person, in the repository that the client works in."""

import os
from collections.abc import Sequence
from pathlib import Path

from iterdev.mcp.server import Server
from iterdev.mcp.tools import Prompt
from iterdev.surfaces.mcp.calls import Calls, Client
from iterdev.surfaces.mcp.prompts import PROMPTS
from iterdev.surfaces.mcp.stdio import Connection, standard_streams
from iterdev.surfaces.mcp.tools import TOOLS

FOLDER = "CLAUDE_PROJECT_DIR"
"""The variable in which Claude Code names the folder that it works in."""
INSTRUCTIONS = """\
iterdev runs a team of coding agents on the user's repository, in the background and for minutes to hours.
Start it only when the user asks for team-iterdev or team-issue by name. Pass on questions to the user, and never answer
them yourself. Only the user accepts the work."""


async def serve(*, with_prompts: bool = True) -> None:
    folder = Path(os.environ.get(FOLDER) or Path.cwd())
    async with standard_streams() as (lines, write):
        connection = Connection(write)
        await connection.serve(offered(folder, connection, PROMPTS if with_prompts else ()), lines)


def offered(folder: Path, client: Client, prompts: Sequence[Prompt] = PROMPTS) -> Server:
    """What a client can do with the repository that the folder is in."""
    calls = Calls(folder, client)
    return Server(
        tools=TOOLS, use=calls.use, prompts=prompts, instructions=INSTRUCTIONS, is_stateless=True, tasks=calls
    )
