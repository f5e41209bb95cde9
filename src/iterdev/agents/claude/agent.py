"""Claude Code as an agent: one process per conversation, stream-JSON in both directions.

The user's login is used, and none of their other settings: hooks, MCP servers, memories and plugins of one machine must
not change a run. Permission requests are answered at once, by what the role may do.
"""

import json
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import ClassVar

import msgspec

from iterdev.agents.claude.conversation import ClaudeConversation
from iterdev.agents.claude.permissions import disallowed_tools
from iterdev.agents.common.conversation import FailedConversation
from iterdev.agents.common.environment import agent_environment
from iterdev.agents.common.json_lines import connect
from iterdev.agents.common.versions import probe_program
from iterdev.agents.contract import TOOLS, TOOLS_TOKEN, Assignment, Conversation, Probe, Spawn, Watch
from iterdev.core.errors import HostError
from iterdev.core.limits.agent_failures import FailureKind

INSTALL = "npm install -g @anthropic-ai/claude-code"
LAST_KNOWN_GOOD = "2.1.325"

BASE_VARIABLES: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # No work continues after a turn has ended.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    # The default is ten retries, also with a wrong key.
    "CLAUDE_CODE_MAX_RETRIES": "2",
    # Otherwise the tools of MCP servers are hidden behind a search.
    "ENABLE_TOOL_SEARCH": "false",
}


class ClaudeAgent(msgspec.Struct, frozen=True):
    name: str = "claude"
    program: str = "claude"
    model: str = ""
    args: tuple[str, ...] = ()
    home: str = ""
    """A private configuration folder; without one it is the user's own, with their login."""
    now: Callable[[], float] = time.time

    needs: ClassVar[tuple[str, ...]] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    )

    def probe(self) -> Probe:
        return probe_program(self.program, agent=self.name, install=INSTALL, last_known_good=LAST_KNOWN_GOOD)

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        private = self.home or environment.get("CLAUDE_CONFIG_DIR")
        home = environment.get("HOME", "")
        return (private,) if private else (f"{home}/.claude", f"{home}/.claude.json")

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        argv, env = command_line(self, assignment), variables(self, assignment)
        async with AsyncExitStack() as stack:
            try:
                program = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(program)
            except (OSError, HostError) as error:
                kind = FailureKind.crashed if shutil.which(self.program) else FailureKind.not_installed
                yield FailedConversation.of(self.name, error, kind)
                return
            login = f"CLAUDE_CONFIG_DIR={self.home} {self.program}" if self.home else self.program
            conversation = ClaudeConversation(
                self.name, assignment, watch, process, login=f"run `{login}` and log in", now=self.now
            )
            conversation.write = await stack.enter_async_context(connect(process, conversation.handlers))
            stack.push_async_callback(conversation.close)
            yield conversation


def command_line(agent: ClaudeAgent, assignment: Assignment) -> list[str]:
    resumed = assignment.conversation
    tools = ["--mcp-config", mcp_config(assignment.tools.url)] if assignment.tools else []
    return [
        *(agent.program, "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
        *("--permission-mode", "default", "--permission-prompt-tool", "stdio"),
        *("--disallowedTools", ",".join(disallowed_tools(assignment.permissions))),
        *("--strict-mcp-config", "--setting-sources", ""),
        *(["--json-schema", json.dumps(with_inlined_root(assignment.schema))] if assignment.schema else []),
        *(["--model", agent.model] if agent.model else []),
        *tools,
        *(["--resume", resumed] if resumed else ["--session-id", str(uuid.uuid4())]),
        *agent.args,
    ]


def variables(agent: ClaudeAgent, assignment: Assignment) -> dict[str, str]:
    home = {"CLAUDE_CONFIG_DIR": agent.home} if agent.home else {}
    # This folder holds the socket by which the user's instances of Claude Code find each other.
    alone = {"XDG_RUNTIME_DIR": tmp} if (tmp := assignment.environment.get("TMPDIR")) else {}
    return {**agent_environment(assignment, assignment.attempt), **BASE_VARIABLES, **home, **alone}


def mcp_config(url: str) -> str:
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer ${{{TOOLS_TOKEN}}}"}}
    return json.dumps({"mcpServers": {TOOLS: server}})


def with_inlined_root(schema: Mapping[str, object]) -> Mapping[str, object]:
    """The same schema without a reference at its root, which the API rejects in the parameters of a tool."""
    match schema:
        case {"$ref": str(reference), "$defs": dict(definitions)}:
            return {**definitions[reference.removeprefix("#/$defs/")], "$defs": definitions}
        case _:
            return schema
