"""Claude Code as an agent: one process per conversation, stream-JSON in both directions.

The user's login is used, and none of their other settings: hooks, MCP servers, memories and plugins of one machine must
not change a run. Permission requests are answered at once, by what the role may do.
"""

import json
import math
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import ClassVar

import anyio
import msgspec

from iterdev.agents import contract
from iterdev.agents.claude import protocol
from iterdev.agents.claude.permissions import denial_reason, describe, disallowed_tools
from iterdev.agents.common.conversation import AgentConversation
from iterdev.agents.common.environment import agent_environment
from iterdev.agents.common.streams import LINE_LENGTH, STDERR_KEPT, OutputTail, Write, connect, quoted
from iterdev.agents.common.versions import probe_program
from iterdev.agents.contract import Assignment, Probe, Process, Reply, Spawn, Watch
from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

INSTALL = "npm install -g @anthropic-ai/claude-code"
LAST_KNOWN_GOOD = "2.1.325"
LONGEST_WAIT = 3.0
"""Seconds that a provider may ask to wait. A longer wait ends the turn, and the provider is paused for all tasks."""
EXIT_TIMEOUT = 1.0
"""Seconds for a program without a turn to exit by itself."""

ANY_RESULT: Mapping[str, object] = {
    "type": "object",
    "description": "The result, in the form that the prompt describes.",
    "properties": {"id": {"type": "string"}, "status": {"type": "string"}},
    "additionalProperties": True,
}
"""The same for all roles: it stands among the tools, so that another one would be a prompt that no provider has cached.

The prompt has the schema of the role, and iterdev checks what comes.
"""
BASE_VARIABLES: Mapping[str, str] = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # No work continues after a turn has ended.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    # How to commit is not its business; and git's status, with the newest commits, would stand before each prompt.
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
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

    # It reads CLAUDE.md only together with the project's settings, which can start programs.
    reads: ClassVar[tuple[str, ...]] = ()

    def probe(self) -> Probe:
        return probe_program(self.program, agent=self.name, install=INSTALL, last_known_good=LAST_KNOWN_GOOD)

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        private = self.home or environment.get("CLAUDE_CONFIG_DIR")
        home = environment.get("HOME", "")
        return (private,) if private else (f"{home}/.claude", f"{home}/.claude.json")

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[contract.Conversation]:
        argv, env = command_line(self, assignment), variables(self, assignment)
        async with AsyncExitStack() as stack:
            try:
                program = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(program)
            except (OSError, HostError) as error:
                kind = FailureKind.crashed if shutil.which(self.program) else FailureKind.not_installed
                yield contract.FailedConversation.of(self.name, error, kind)
                return
            conversation = ClaudeConversation(self, assignment, watch, process)
            conversation.write = await stack.enter_async_context(conversation.connect())
            yield await stack.enter_async_context(conversation)


def command_line(agent: ClaudeAgent, assignment: Assignment) -> list[str]:
    resumed = assignment.conversation
    headers = {"Authorization": f"Bearer ${{{contract.TOOLS_TOKEN}}}"}
    server = assignment.tools and {"type": "http", "url": assignment.tools.url, "headers": headers}
    return [
        *(agent.program, "-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
        *("--permission-mode", "default", "--permission-prompt-tool", "stdio"),
        *("--disallowedTools", ",".join(disallowed_tools(assignment.permissions))),
        *("--strict-mcp-config", "--setting-sources", ""),
        *(["--json-schema", json.dumps(ANY_RESULT)] if assignment.schema else []),
        *(["--model", agent.model] if agent.model else []),
        *(["--mcp-config", json.dumps({"mcpServers": {contract.TOOLS: server}})] if server else []),
        *(["--resume", resumed] if resumed else ["--session-id", str(uuid.uuid4())]),
        *agent.args,
    ]


def variables(agent: ClaudeAgent, assignment: Assignment) -> dict[str, str]:
    home = {"CLAUDE_CONFIG_DIR": agent.home} if agent.home else {}
    # This folder holds the socket by which the user's instances of Claude Code find each other.
    alone = {"XDG_RUNTIME_DIR": tmp} if (tmp := assignment.environment.get("TMPDIR")) else {}
    return {**agent_environment(assignment, assignment.attempt), **BASE_VARIABLES, **home, **alone}


class ClaudeConversation(AgentConversation):
    """One running program. It can be busy with a turn whose reply was already given, until it is interrupted."""

    def __init__(self, agent: ClaudeAgent, assignment: Assignment, watch: Watch, process: Process) -> None:
        command = f"CLAUDE_CONFIG_DIR={agent.home} {agent.program}" if agent.home else agent.program
        login = f"run `{command}` and log in"
        super().__init__(agent.name, assignment, watch, login=login, now=agent.now, stop_timeout=math.inf)
        self._process = process
        self._stderr = OutputTail(watch, keep=STDERR_KEPT)
        self.write: Write = lambda _message: None
        self._idle = anyio.Event()
        self._idle.set()
        self._replied = anyio.Event()
        self._replies: list[Reply] = []
        """Of this turn; the first one counts."""
        self._ended: contract.AgentFailure | None = None
        self._turns = 0
        self._cost: float | None = None if assignment.conversation else 0.0
        self._reset_at: float | None = None

    def connect(self) -> AbstractAsyncContextManager[Write]:
        return connect(self._process, message=self._handle, stderr=self._stderr.feed, exited=self._handle_exit)

    async def _turn(self, prompt: str) -> Reply:
        await self._idle.wait()
        if self._ended:
            return self._ended
        self._delete_result()
        self._turns += 1
        self._idle, self._replied, self._replies = anyio.Event(), anyio.Event(), []
        self.write(protocol.prompt(prompt))
        await self._replied.wait()
        return self._replies[0]

    def _reply(self, reply: Reply) -> None:
        self._replies.append(reply)
        self._replied.set()

    async def _ask_to_stop(self) -> bool:
        if not self._idle.is_set():
            self.write(protocol.interrupt(self._turns))
        return True

    async def close(self) -> None:
        """Lets a program without a turn exit by itself; any other is ended by its owner."""
        if self._idle.is_set():
            with anyio.move_on_after(EXIT_TIMEOUT):
                await self._process.close_input()
                await self._process.wait()

    def _handle(self, line: bytes) -> None:
        match protocol.read(line):
            case protocol.AssistantMessage(message=message):
                for text in described_lines(message, self._assignment.workspace):
                    self._watch(contract.Said(text))
            case protocol.SystemMessage(subtype="api_retry", error_status=status, retry_delay_ms=milliseconds):
                self._wait_for_provider(protocol.provider_wait(status, milliseconds))
            case protocol.RateLimitEvent(rate_limit_info=limit) if limit.status == "rejected":
                self._reset_at = limit.resets_at
            case protocol.ControlRequest() as request:
                self.write(self._respond(request))
            case protocol.TurnResult() as result:
                self._finish(result)
            case _:
                pass

    def _wait_for_provider(self, seconds: float | None) -> None:
        if seconds is None:
            return
        self._reset_at = self._now() + seconds
        if seconds > LONGEST_WAIT:
            words = f"it asks to wait for {duration(seconds)}"
            self._reply(self._reported(FailureKind.limited, words, self._reset_at))

    def _respond(self, request: protocol.ControlRequest) -> object:
        asked, work = request.request, self._assignment
        if asked.subtype != "can_use_tool":
            return protocol.response(request, subtype="error", error=f'"{asked.subtype}" is not supported')
        reason = denial_reason(asked.tool_name, asked.input, work)
        if reason:
            described = describe(asked.tool_name, asked.input, work.workspace)
            self._watch(contract.PermissionAsked(f"{described}: {reason}"))
        return protocol.permission(request, f"Denied: {reason}. Go on without it." if reason else "")

    def _finish(self, result: protocol.TurnResult) -> None:
        usage = self._count(protocol.turn_usage(result, self._cost))
        self._cost = result.total_cost_usd
        self._reply(self._reply_to(result, usage))
        self._reset_at = None
        self._idle.set()

    def _reply_to(self, result: protocol.TurnResult, usage: Usage) -> Reply:
        if result.interrupted:
            return self._interrupted()
        if result.is_error:
            return self._reported(protocol.failure_kind(result), result.text, self._reset_at)
        body = self._result(result.structured or (result.result or "").encode())
        if body is None:
            last = f': "{quoted(result.text)}"' if result.text else ""
            return self._failure(FailureKind.silent, f"ended its turn without a result{last}")
        return contract.Answer(body=body, usage=usage, conversation=result.session_id)

    def _handle_exit(self, ended: Exit) -> None:
        self._stderr.finish()
        self._ended = self._exited(ended, self._stderr.kept)
        self._reply(self._ended)
        self._idle.set()


def described_lines(message: protocol.Message, workspace: str) -> Iterator[str]:
    """What a message says and does, line by line."""
    content = message.content
    for block in (protocol.Block(type="text", text=content),) if isinstance(content, str) else content:
        if block.type == "text":
            yield from (line[:LINE_LENGTH] for line in block.text.splitlines() if line.strip())
        elif block.type == "tool_use" and block.name != "StructuredOutput":
            yield describe(block.name, block.input, workspace)
