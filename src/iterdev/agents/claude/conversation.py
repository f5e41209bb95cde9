"""A conversation with one running Claude Code; its messages are handled as they arrive."""

import math
from collections.abc import Callable, Iterator

import anyio

from iterdev.agents.claude import protocol
from iterdev.agents.claude.failures import failure_kind, provider_wait
from iterdev.agents.claude.permissions import denial_reason, describe
from iterdev.agents.claude.protocol import AssistantMessage, ControlRequest, RateLimitEvent, SystemMessage, TurnResult
from iterdev.agents.common.conversation import AgentConversation
from iterdev.agents.common.json_lines import Handlers, Write
from iterdev.agents.common.output import LINE_LENGTH, MESSAGE_LENGTH, STDERR_KEPT, OutputTail
from iterdev.agents.contract import AgentFailure, Answer, Assignment, PermissionAsked, Process, Reply, Said, Watch
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

LONGEST_WAIT = 3.0
"""Seconds that a provider may ask to wait. A longer wait ends the turn, and the provider is paused for all tasks."""
EXIT_TIMEOUT = 1.0
"""Seconds for a program without a turn to exit by itself."""


class ClaudeConversation(AgentConversation):
    """One running program. It can be busy with a turn whose reply was already given, until it is interrupted."""

    def __init__(
        self, name: str, assignment: Assignment, watch: Watch, process: Process, *, login: str, now: Callable[[], float]
    ) -> None:
        super().__init__(name, assignment, watch, login=login, now=now, stop_timeout=math.inf)
        self._process = process
        self._stderr = OutputTail(watch, keep=STDERR_KEPT)
        self.handlers = Handlers(message=self._handle, stderr=self._stderr.feed, exit=self._handle_exit)
        self.write: Write = lambda _message: None
        self._idle = anyio.Event()
        self._idle.set()
        self._replied = anyio.Event()
        self._replies: list[Reply] = []
        """Of this turn; the first one counts."""
        self._ended: AgentFailure | None = None
        self._turns = 0
        self._cost: float | None = None if assignment.conversation else 0.0
        self._reset_at: float | None = None

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
            case AssistantMessage(message=message):
                for text in described_lines(message, self._assignment.workspace):
                    self._watch(Said(text))
            case SystemMessage(subtype="api_retry", error_status=status, retry_delay_ms=milliseconds):
                self._wait_for_provider(provider_wait(status, milliseconds))
            case RateLimitEvent(rate_limit_info=limit) if limit.status == "rejected":
                self._reset_at = limit.resets_at
            case ControlRequest() as request:
                self.write(self._respond(request))
            case TurnResult() as result:
                self._finish(result)
            case _:
                pass

    def _wait_for_provider(self, seconds: float | None) -> None:
        if seconds is None:
            return
        self._reset_at = self._now() + seconds
        if seconds > LONGEST_WAIT:
            words = f"it asks to wait for {seconds:g} s"
            self._reply(self._reported(FailureKind.limited, words, self._reset_at))

    def _respond(self, request: ControlRequest) -> object:
        tool, arguments, work = request.request.tool_name, request.request.input, self._assignment
        if request.request.subtype != "can_use_tool":
            return protocol.unsupported(request)
        reason = denial_reason(tool, arguments, work)
        if not reason:
            return protocol.allow(request)
        self._watch(PermissionAsked(f"{describe(tool, arguments, work.workspace)}: {reason}"))
        return protocol.deny(request, f"Denied: {reason}. Go on without it.")

    def _finish(self, result: TurnResult) -> None:
        usage = self._count(protocol.turn_usage(result, self._cost))
        self._cost = result.total_cost_usd
        self._reply(self._reply_to(result, usage))
        self._reset_at = None
        self._idle.set()

    def _reply_to(self, result: TurnResult, usage: Usage) -> Reply:
        if result.interrupted:
            return self._interrupted()
        if result.is_error:
            return self._reported(failure_kind(result), result.text, self._reset_at)
        body = self._result(result.structured or (result.result or "").encode())
        if body is None:
            last = f': "{result.text[:MESSAGE_LENGTH]}"' if result.text else ""
            return self._failure(FailureKind.silent, f"ended its turn without a result{last}")
        return Answer(body=body, usage=usage, conversation=result.session_id)

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
