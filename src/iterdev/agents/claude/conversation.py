"""A conversation with one running Claude Code: what it says is heard as it comes, and each turn ends with one reply.

It knows how turns follow and interrupt each other; how the program is started is not known here.
"""

import shutil
from collections.abc import Callable

import anyio
from msgspec import Struct

from iterdev.agents.claude import protocol as events
from iterdev.agents.claude.failures import kind_of, provider_wait
from iterdev.agents.claude.permissions import described, objection
from iterdev.agents.claude.protocol import Asked, Assistant, Ended, Notice, RateLimited
from iterdev.agents.command import (
    COMPLAINT_LENGTH,
    LINE_LENGTH,
    STDERR_KEPT,
    Ear,
    Watch,
    death,
    forget,
    last_json_object,
    written,
)
from iterdev.agents.common.failures import FAILURES
from iterdev.agents.common.json_lines import Listener, Send
from iterdev.agents.common.reset_times import reset_at
from iterdev.agents.contract import (
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Process,
    Reply,
    Said,
    Spent,
    TroubleKind,
)
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

PATIENCE = 3.0
"""Seconds that a provider may ask to wait before the turn is given up, so that nobody else asks it meanwhile either."""
FAREWELL = 1.0
"""Seconds for a program without a turn to end by itself."""


class Who(Struct, frozen=True, kw_only=True):
    """The agent, as it is spoken of in messages, and its clock."""

    name: str
    program: str
    login: str
    """The command with which the user logs in."""
    now: Callable[[], float]


class Turn:
    """A reply that somebody may be waiting for; the first one counts."""

    def __init__(self) -> None:
        self._replies: list[Reply] = []
        self._replied = anyio.Event()

    def tell(self, reply: Reply) -> None:
        self._replies.append(reply)
        self._replied.set()

    async def reply(self) -> Reply:
        await self._replied.wait()
        return self._replies[0]


class ClaudeConversation:
    """One running program. A turn goes on in it when nobody waits for its reply any more, until it is interrupted."""

    def __init__(self, who: Who, assignment: Assignment, watch: Watch) -> None:
        self._who, self._assignment, self._watch = who, assignment, watch
        self._complaints = Ear(watch, keep=STDERR_KEPT)
        self.listener = Listener(message=self._hear, complaint=self._complaints.hear, end=self._end)
        self._send: Send = lambda _message: None
        self._floor = anyio.Lock()
        self._idle = anyio.Event()
        self._idle.set()
        self._turn = Turn()
        self._over: AgentFailure | None = None
        self._turns = 0
        self._cost: float | None = None if assignment.conversation else 0.0
        self._reset_at: float | None = None

    def connect(self, send: Send) -> None:
        self._send = send

    def fail_to_start(self, reason: str) -> None:
        kind = TroubleKind.crashed if shutil.which(self._who.program) else TroubleKind.not_installed
        self._over = self._trouble(kind, f"could not be started: {reason}")

    async def send(self, prompt: str) -> Reply:
        if not self._idle.is_set():
            self._send(events.interruption(self._turns))
        async with self._floor:
            await self._idle.wait()
            if self._over:
                return self._over
            forget(self._assignment.result_path)
            self._turns += 1
            self._idle, self._turn = anyio.Event(), Turn()
            self._send(events.prompt(prompt))
            return await self._turn.reply()

    async def hang_up(self, process: Process) -> None:
        """Lets a program that has nothing to do end by itself; any other is ended by its owner."""
        if self._idle.is_set():
            with anyio.move_on_after(FAREWELL):
                await process.close_input()
                await process.wait()

    def _hear(self, line: bytes) -> None:
        match events.read(line):
            case Assistant(message=message):
                for text in said(message, self._assignment.workspace):
                    self._watch(Said(text))
            case Notice(subtype="api_retry", error_status=status, retry_delay_ms=milliseconds):
                self._wait_for_provider(provider_wait(status, milliseconds))
            case RateLimited(rate_limit_info=limit) if limit.status == "rejected":
                self._reset_at = limit.resets_at
            case Asked() as asked:
                self._send(self._answer(asked))
            case Ended() as ended:
                self._finish(ended)
            case _:
                pass

    def _wait_for_provider(self, seconds: float | None) -> None:
        if seconds is None:
            return
        self._reset_at = self._who.now() + seconds
        if seconds > PATIENCE:
            self._turn.tell(self._failure(TroubleKind.limited, f"it asks to wait for {seconds:g} s"))

    def _answer(self, asked: Asked) -> object:
        tool, given, work = asked.request.tool_name, asked.request.input, self._assignment
        if asked.request.subtype != "can_use_tool":
            return events.refusal(asked)
        reason = objection(tool, given, work)
        if not reason:
            return events.permission(asked)
        self._watch(PermissionAsked(f"{described(tool, given, work.workspace)}: {reason}"))
        return events.denial(asked, f"Denied: {reason}. Go on without it.")

    def _finish(self, ended: Ended) -> None:
        usage = events.spent(ended, self._cost)
        self._cost = ended.total_cost_usd
        if usage.tokens or usage.cost_usd:
            self._watch(Spent(usage))
        self._turn.tell(self._judge(ended, usage))
        self._reset_at = None
        self._idle.set()

    def _judge(self, ended: Ended, usage: Usage) -> Reply:
        if ended.interrupted:
            return self._trouble(TroubleKind.timed_out, "was interrupted")
        if ended.is_error:
            return self._failure(kind_of(ended), ended.text)
        body = written(self._assignment.result_path) or answer_in(ended)
        if body is None:
            last = f': "{ended.text[:COMPLAINT_LENGTH]}"' if ended.text else ""
            return self._trouble(TroubleKind.silent, f"ended its turn without a result{last}")
        return Answer(body=body, usage=usage, conversation=ended.session_id)

    def _failure(self, kind: TroubleKind, words: str) -> AgentFailure:
        what = f"{FAILURES.get(kind, 'failed')}: {words[:COMPLAINT_LENGTH]}"
        if kind is TroubleKind.not_logged_in:
            what += f"; run `{self._who.login}` and log in"
        limit = kind is TroubleKind.limited
        return self._trouble(kind, what, reset_at=self._next_chance(words) if limit else None)

    def _next_chance(self, words: str) -> float | None:
        return self._reset_at or reset_at(words, self._who.now())

    def _end(self, ended: Exit) -> None:
        self._complaints.finish()
        self._over = self._trouble(*death(ended, bytes(self._complaints.kept), self._assignment.limit))
        self._turn.tell(self._over)
        self._idle.set()

    def _trouble(self, kind: TroubleKind, what: str, reset_at: float | None = None) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._who.name}" {what}', reset_at=reset_at)


def said(message: events.Message, workspace: str) -> list[str]:
    """What a message says and does, line by line."""
    if isinstance(message.content, str):
        return _lines(message.content)
    return [line for block in message.content for line in _said(block, workspace)]


def _said(block: events.Block, workspace: str) -> list[str]:
    match block.type:
        case "text":
            return _lines(block.text)
        case "tool_use" if block.name != "StructuredOutput":
            return [described(block.name, block.input, workspace)]
        case _:
            return []


def _lines(text: str) -> list[str]:
    return [line[:LINE_LENGTH] for line in text.splitlines() if line.strip()]


def answer_in(ended: Ended) -> bytes | None:
    """The structured output, or else the last JSON object of the text."""
    structured = bytes(ended.structured_output)
    return structured if structured not in {b"", b"null"} else last_json_object((ended.result or "").encode())
