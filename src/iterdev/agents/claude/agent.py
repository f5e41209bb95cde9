"""Claude Code as an agent: one process per conversation, stream-JSON in both directions.

The user's own login is used as it is, and none of their other settings: hooks, MCP servers, memories and plugins of one
machine must not change a run. Permission requests are answered at once, from what the role may do.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from iterdev.agents.claude.conversation import ClaudeConversation, Who
from iterdev.agents.claude.permissions import withheld
from iterdev.agents.command import Watch, environment
from iterdev.agents.common.json_lines import connected
from iterdev.agents.common.versions import Known, probed
from iterdev.agents.contract import TOOLS, TOOLS_TOKEN, Assignment, Conversation, Probe, Spawn
from iterdev.core.errors import HostError

INSTALL = "npm install -g @anthropic-ai/claude-code"
LAST_KNOWN_GOOD = "2.1.325"


QUIET: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # Nothing goes on after a turn has ended.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    # By itself it tries ten times, also with a wrong key.
    "CLAUDE_CODE_MAX_RETRIES": "2",
    # Tools of MCP servers are hidden behind a search otherwise.
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

    @property
    def needs(self) -> tuple[str, ...]:
        return (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
        )

    def probe(self) -> Probe:
        return probed(self.program, Known(agent=self.name, install=INSTALL, version=LAST_KNOWN_GOOD))

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        private = self.home or environment.get("CLAUDE_CONFIG_DIR")
        home = environment.get("HOME", "")
        return (private,) if private else (f"{home}/.claude", f"{home}/.claude.json")

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        login = f"CLAUDE_CONFIG_DIR={self.home} {self.program}" if self.home else self.program
        who = Who(name=self.name, program=self.program, login=login, now=self.now)
        talk = ClaudeConversation(who, assignment, watch)
        argv, env = command_line(self, assignment), variables(self, assignment)
        async with AsyncExitStack() as stack:
            try:
                program = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(program)
            except (OSError, HostError) as error:
                talk.fail_to_start(str(error))
            else:
                talk.connect(await stack.enter_async_context(connected(process, talk.listener)))
                stack.push_async_callback(talk.hang_up, process)
            yield talk


def command_line(agent: ClaudeAgent, assignment: Assignment) -> list[str]:
    resumed = assignment.conversation
    tools = ["--mcp-config", mcp_config(assignment.tools.url)] if assignment.tools else []
    return [
        *(agent.program, "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
        *("--permission-mode", "default", "--permission-prompt-tool", "stdio"),
        *("--disallowedTools", ",".join(withheld(assignment.permissions))),
        *("--strict-mcp-config", "--setting-sources", ""),
        *(["--json-schema", json.dumps(rooted(assignment.schema))] if assignment.schema else []),
        *(["--model", agent.model] if agent.model else []),
        *tools,
        *(["--resume", resumed] if resumed else ["--session-id", str(uuid.uuid4())]),
        *agent.args,
    ]


def variables(agent: ClaudeAgent, assignment: Assignment) -> dict[str, str]:
    home = {"CLAUDE_CONFIG_DIR": agent.home} if agent.home else {}
    # There it keeps the socket by which others of the user find it, and finds them.
    alone = {"XDG_RUNTIME_DIR": tmp} if (tmp := assignment.environment.get("TMPDIR")) else {}
    return {**environment(assignment, assignment.attempt), **QUIET, **home, **alone}


def mcp_config(url: str) -> str:
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer ${{{TOOLS_TOKEN}}}"}}
    return json.dumps({"mcpServers": {TOOLS: server}})


def rooted(schema: Mapping[str, object]) -> Mapping[str, object]:
    """The same schema without a reference at its root, which the parameters of a tool may not be."""
    match schema:
        case {"$ref": str(reference), "$defs": dict(definitions)}:
            return {**definitions[reference.removeprefix("#/$defs/")], "$defs": definitions}
        case _:
            return schema
