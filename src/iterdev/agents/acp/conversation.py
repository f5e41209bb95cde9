"""A conversation over the Agent Client Protocol, on the standard input and output of a process.

The protocol's package loads pydantic and takes most of a second: this module is imported when a conversation is opened.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import anyio
import msgspec
from acp import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, schema, text_block
from pydantic import ValidationError

from iterdev import __version__
from iterdev.agents import contract
from iterdev.agents.acp import permissions
from iterdev.agents.acp.agent import AcpAgent
from iterdev.agents.common.conversation import AgentConversation, usage_since
from iterdev.agents.common.failures import kind_in
from iterdev.agents.common.streams import STDERR_KEPT, STDOUT_KEPT, Lines, OutputTail, last_lines
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

Message = dict[str, object]
McpServer = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
Opened = schema.NewSessionResponse | schema.LoadSessionResponse

LOGIN_REQUIRED = -32000
"""The protocol's error code for a missing login, the only failure that has one."""

ERROR_TEXT = re.compile(
    r"^\W*(?i:(api |request |network )?(error|failed))|\bError: |\b(Network error|Ran into this error): "
)

# The protocol does not transmit the HTTP status of the provider. The order matters: errors of every status can name a
# quota, and errors with status 400 a long prompt.
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.limited: r"\b429\b|(rate|usage|session|weekly).?limit|quota|resource.?exhausted|too many requests",
    FailureKind.too_long: r"context.?(length|window)|(prompt|input).{0,20}too long"
    r"|(maximum|exceeds?).{0,40}(tokens|context)",
    FailureKind.not_logged_in: r"\b40[13]\b|authenticat|unauthori[sz]ed|permission_denied|api.?key"
    r"|not logged in|log ?in (first|again|required)",
    FailureKind.overloaded: r"\b(50[0234]|52\d)\b|overloaded|unavailable|bad gateway|internal server error"
    r"|fetch failed|ECONN\w+|socket hang up|connection (error|refused|reset)"
    r"|stream (ended|closed)|premature|\bterminated\b|error decoding|cannot connect|connection was closed"
    # opencode's name for all other errors of its provider.
    r'|"errorName": "APIError"',
}


class AcpConversation(AgentConversation):
    """One connection to one agent and, from the first turn on, one session with it."""

    def __init__(
        self, agent: AcpAgent, assignment: contract.Assignment, watch: contract.Watch, process: contract.Process
    ) -> None:
        login = f"with HOME={agent.home}, {agent.program.login}" if agent.home else agent.program.login
        super().__init__(agent.name, assignment, watch, login=login, now=agent.now, stop_timeout=agent.stop_timeout)
        self._program = agent.program
        has_setting = agent.program.model_flag or agent.program.model_variable or agent.program.settings_variable
        self._model = "" if has_setting else agent.model
        self._process = process
        self._transport = MessageTransport(process)
        self._client = SessionClient(assignment, watch)
        self._connection = connect_to_agent(cast("Client", self._client), self._transport)
        self._session = ""
        self._keeps_sessions = False
        self._prompting = False
        self._counted = Usage()
        self._ended: contract.AgentFailure | None = None

    async def close(self) -> None:
        busy = self._turn_lock.locked()
        await super().close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(0 if busy else self._program.save_delay):
                await self._process.wait()
            await self._connection.close()

    async def _ask_to_stop(self) -> bool:
        if self._prompting:
            await self._connection.cancel(session_id=self._session)
        return self._prompting

    async def _turn(self, prompt: str) -> contract.Reply:
        if self._ended:
            return self._ended
        self._delete_result()
        try:
            if not self._session:
                self._session = await self._begin()
            text, response = await self._prompt(prompt)
        except ConnectionError:
            self._count(self._client.usage)
            self._ended = self._exited(await self._process.wait(), self._transport.stderr)
            return self._ended
        except (RequestError, ValidationError) as error:
            self._prompting = False
            self._count(self._client.usage)
            return self._request_failed(error)
        usage = self._count(self._turn_usage(response))
        if response.stop_reason == "cancelled":
            return self._interrupted()
        body = self._result(text)
        if body is None:
            return self._without_result(text, response.stop_reason)
        return contract.Answer(body=body, usage=usage, conversation=self._session if self._keeps_sessions else "")

    async def _begin(self) -> str:
        """Initializes the connection, and opens a session or loads an earlier one."""
        initialized = await self._connection.initialize(
            PROTOCOL_VERSION, client_info=schema.Implementation(name="iterdev", version=__version__)
        )
        capabilities = initialized.agent_capabilities
        self._keeps_sessions = self._program.resumes and bool(capabilities and capabilities.load_session)
        supports_http = bool(capabilities and capabilities.mcp_capabilities and capabilities.mcp_capabilities.http)
        servers: list[McpServer] = []
        if supports_http and (tools := self._assignment.tools):
            header = schema.HttpHeader(name="Authorization", value=f"Bearer {tools.token}")
            servers = [schema.HttpMcpServer(type="http", name=contract.TOOLS, url=tools.url, headers=[header])]
        cwd, session = self._assignment.workspace, self._assignment.conversation
        if session and self._keeps_sessions:
            opened: Opened = await self._connection.load_session(cwd=cwd, session_id=session, mcp_servers=servers)
        else:
            opened = await self._connection.new_session(cwd=cwd, mcp_servers=servers)
            session = opened.session_id
        if self._model:
            await self._set_model(opened, session)
        return session

    async def _set_model(self, opened: Opened, session: str) -> None:
        option = next((option for option in opened.config_options or () if option.category == "model"), None)
        if option is None:
            raise RequestError(0, f'has no setting for the model, and "{self._model}" is wanted')
        await self._connection.set_config_option(config_id=option.id, session_id=session, value=self._model)

    async def _prompt(self, prompt: str) -> tuple[bytes, schema.PromptResponse]:
        """The last part of what the agent said, and its response."""
        self._transport.stderr.clear()
        self._prompting = True
        with self._client.turn() as tail:
            response = await self._connection.prompt(session_id=self._session, prompt=[text_block(prompt)])
        self._prompting = False
        return bytes(tail.kept), response

    def _turn_usage(self, response: schema.PromptResponse) -> Usage:
        if response.usage:
            reported = Usage(input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens)
        else:
            reported = self._client.usage + usage_in_meta(response.field_meta)
        if not self._program.cumulative_usage:
            return reported
        before, self._counted = self._counted, reported
        return usage_since(before, reported)

    def _request_failed(self, error: RequestError | ValidationError) -> contract.AgentFailure:
        if isinstance(error, ValidationError):
            words = f"sent a response that is not valid in the protocol: {error.title}"
        elif error.code == LOGIN_REQUIRED:
            # Its details list the login methods, for programs.
            return self._reported(FailureKind.not_logged_in, str(error))
        else:
            words = f"{error} {'' if error.data is None else json.dumps(error.data)}".strip()
        return self._reported(kind_in(words, BY_MESSAGE) or FailureKind.crashed, words)

    def _without_result(self, text: bytes, reason: str) -> contract.AgentFailure:
        """Some agents end a turn normally when their provider failed, and report that elsewhere, if at all."""
        said = last_lines(text)
        words = said or last_lines(self._transport.stderr)
        kind = kind_in(error_in(said) if said else words, BY_MESSAGE)
        if kind is None and reason == "max_tokens":
            kind = FailureKind.too_long
        if kind is None:
            return self._failure(FailureKind.silent, f"ended its turn ({reason}) without a result: {words}")
        return self._reported(kind, words)


def error_in(said: str) -> str:
    """The part of a text that reports an error of the agent itself, rather than one in its work."""
    found = ERROR_TEXT.search(said)
    return said[found.start() :] if found else ""


class Envelope(msgspec.Struct, frozen=True):
    """The members that the package relies on without checking them."""

    id: int | str | None = None
    method: str = ""
    error: Message | None = None


class MessageTransport:
    """Carries messages over a process, one per line, and skips lines that the package cannot handle."""

    def __init__(self, process: contract.Process) -> None:
        self.stderr = bytearray()
        self._process = process
        self._messages = self._read()
        self._writing = anyio.Lock()
        self._broken = False

    async def send(self, message: Message) -> None:
        async with self._writing:
            if self._broken:
                raise ConnectionError("an earlier message was sent only in part")
            self._broken = True
            try:
                await self._process.write(json.dumps(message).encode() + b"\n")
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise ConnectionError("the agent has closed its input") from error
            self._broken = False

    async def receive(self) -> Message | None:
        return await anext(self._messages, None)

    async def close(self) -> None:
        await self._process.close_input()

    async def _read(self) -> AsyncIterator[Message]:
        lines = Lines()
        async for stream, chunk in self._process.output():
            if stream == "stderr":
                self.stderr += chunk
                del self.stderr[:-STDERR_KEPT]
                continue
            for message in filter(None, map(valid_message, lines.feed(chunk))):
                yield message


def valid_message(line: bytes) -> Message | None:
    """The message in a line; for an invalid one the package would log a stack trace to the user's terminal."""
    try:
        # Unlike msgspec, it accepts half of a surrogate pair, which text in pieces can contain.
        message = msgspec.convert(json.loads(line), Message)
        envelope = msgspec.convert(message, Envelope)
        if envelope.method and "id" not in message:
            if envelope.method != "session/update":
                return None
            schema.SessionNotification.model_validate(message.get("params"))
    except (ValueError, RecursionError):
        return None
    return message


class SessionClient:
    def __init__(self, assignment: contract.Assignment, watch: contract.Watch) -> None:
        self._assignment, self._watch = assignment, watch
        self._reported = set[str]()
        self._text: OutputTail | None = None
        """None between turns: an agent that resumes a conversation reports all of it again."""
        self.usage = Usage()
        """Of this turn so far, if the agent reports the usage of each model call."""

    @contextmanager
    def turn(self) -> Iterator[OutputTail]:
        self.usage = Usage()
        self._text = tail = OutputTail(self._watch, keep=STDOUT_KEPT)
        try:
            yield tail
        finally:
            tail.finish()
            self._text = None

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        del session_id
        if self._text is None:
            return
        match update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text), field_meta=extra):
                self._text.feed(text.encode(errors="replace"))
                self.usage += usage_in_meta(extra)
            case schema.ToolCallStart() | schema.ToolCallProgress() as call:
                self._report_call(call.tool_call_id, call.title)
            case _:
                pass

    def _report_call(self, call: str, title: str | None) -> None:
        """Reports a tool call once, however many messages are about it."""
        if self._text and title and call not in self._reported:
            self._reported.add(call)
            self._text.finish()
            self._watch(contract.Said(title))

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: object
    ) -> schema.RequestPermissionResponse:
        del session_id
        self._report_call(tool_call.tool_call_id, tool_call.title)
        allowed = permissions.is_allowed(tool_call, self._assignment.permissions, self._assignment.workspace)
        if not allowed:
            self._watch(contract.PermissionAsked(permissions.title_of(tool_call)))
        option = permissions.choose_option(options, "allow" if allowed else "reject")
        return schema.RequestPermissionResponse(outcome=option)


class CallUsage(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0


class Quota(msgspec.Struct, frozen=True):
    token_count: Usage = Usage()


class Meta(msgspec.Struct, frozen=True):
    """The extension field: gemini adds a quota to the end of a turn, qwen the usage of a model call to each message."""

    quota: Quota = Quota()
    usage: CallUsage = CallUsage()


def usage_in_meta(meta: Mapping[str, object] | None) -> Usage:
    try:
        found = msgspec.convert(meta or {}, Meta)
    except msgspec.ValidationError:
        return Usage()
    call = Usage(input_tokens=found.usage.input_tokens, output_tokens=found.usage.output_tokens)
    return found.quota.token_count + call
