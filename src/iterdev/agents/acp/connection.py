"""The client side of the Agent Client Protocol, over the standard input and output of a process.

Only this module imports the protocol's package, which loads pydantic and takes most of a second: it is imported when a
conversation is opened.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import cast

import anyio
import msgspec
from acp import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, text_block
from acp.schema import (
    AcpMcpServer,
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    FileEditToolCallContent,
    HttpHeader,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    McpServerStdio,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    SessionNotification,
    SseMcpServer,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)
from pydantic import ValidationError

from iterdev import __version__
from iterdev.agents.acp.failures import LOGIN_REQUIRED, RequestFailed
from iterdev.agents.acp.permissions import PermissionRequest, is_allowed
from iterdev.agents.acp.usage import usage_in_meta
from iterdev.agents.common.json_lines import Lines
from iterdev.agents.common.output import STDERR_KEPT, STDOUT_KEPT, OutputTail
from iterdev.agents.contract import TOOLS, Assignment, PermissionAsked, Process, Said, ToolServer, Watch
from iterdev.core.results import Usage

Message = dict[str, object]
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
Opened = NewSessionResponse | LoadSessionResponse


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a turn, as the agent reports it."""

    reason: str
    usage: Usage
    text: bytes
    """The last part of what the agent said."""


class Envelope(msgspec.Struct, frozen=True):
    """The members that the package relies on without checking them."""

    id: int | str | None = None
    method: str = ""
    error: Message | None = None


class MessageTransport:
    """Carries messages over a process, one per line, and skips lines that the package cannot handle."""

    def __init__(self, process: Process) -> None:
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
        async for message in self._messages:
            return message
        return None

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
            SessionNotification.model_validate(message.get("params"))
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None
    return message


class SessionClient:
    """Receives what an agent reports during a turn, and answers its requests."""

    def __init__(self, assignment: Assignment, watch: Watch) -> None:
        self._assignment = assignment
        self._watch = watch
        self._reported = set[str]()
        self._text: OutputTail | None = None
        """None between turns: an agent that resumes a conversation reports all of it again."""
        self.usage = Usage()
        """Of this turn so far, if the agent reports the usage of each model call."""

    def begin_turn(self) -> OutputTail:
        self.usage = Usage()
        self._text = OutputTail(self._watch, keep=STDOUT_KEPT)
        return self._text

    def end_turn(self) -> None:
        if self._text:
            self._text.finish()
        self._text = None

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        del session_id
        if self._text is None:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text), field_meta=extra):
                self._text.feed(text.encode(errors="replace"))
                self.usage += usage_in_meta(extra)
            case ToolCallStart() | ToolCallProgress() as call:
                self._report_call(call.tool_call_id, call.title)
            case _:
                pass

    def _report_call(self, call: str, title: str | None) -> None:
        """Reports a tool call once, however many messages are about it."""
        if self._text and title and call not in self._reported:
            self._reported.add(call)
            self._text.finish()
            self._watch(Said(title))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        del session_id
        request = permission_request(tool_call)
        self._report_call(tool_call.tool_call_id, tool_call.title)
        allowed = is_allowed(request, self._assignment.permissions, self._assignment.workspace)
        if not allowed:
            self._watch(PermissionAsked(request.title))
        return RequestPermissionResponse(outcome=choose_option(options, "allow" if allowed else "reject"))


def permission_request(call: ToolCallUpdate) -> PermissionRequest:
    places = [location.path for location in call.locations or ()]
    changed = [part.path for part in call.content or () if isinstance(part, FileEditToolCallContent)]
    kind = call.kind or "other"
    return PermissionRequest(
        kind=kind, title=call.title or kind, paths=(*places, *changed, *named_paths(call.raw_input))
    )


def named_paths(arguments: object) -> tuple[str, ...]:
    """The paths among the arguments of a tool; every agent names them differently."""
    if not isinstance(arguments, Mapping):
        return ()
    return tuple(
        value
        for name, value in arguments.items()
        if isinstance(name, str) and isinstance(value, str) and name.lower().endswith(("path", "file", "filename"))
    )


def choose_option(options: list[PermissionOption], answer: str) -> AllowedOutcome | DeniedOutcome:
    """The option that decides this call only, else the permanent one; without either, the call is cancelled."""
    for kind in (f"{answer}_once", f"{answer}_always"):
        for option in options:
            if option.kind == kind:
                return AllowedOutcome(outcome="selected", option_id=option.option_id)
    return DeniedOutcome(outcome="cancelled")


class AcpConnection:
    """A connection to one agent and, after `begin`, one session with it."""

    def __init__(self, process: Process, assignment: Assignment, watch: Watch) -> None:
        self.session = ""
        self.keeps_sessions = False
        self._transport = MessageTransport(process)
        self._assignment = assignment
        self._client = SessionClient(assignment, watch)
        self._connection = connect_to_agent(cast("Client", self._client), self._transport)
        self._prompting = False

    @property
    def stderr(self) -> bytes:
        return bytes(self._transport.stderr)

    @property
    def usage(self) -> Usage:
        """Of the turn so far, if the agent reports it call by call."""
        return self._client.usage

    async def begin(self, *, resumes: bool, model: str) -> None:
        """Initializes the connection, and opens a session or loads an earlier one."""
        if self.session:
            return
        try:
            about = await self._connection.initialize(
                PROTOCOL_VERSION, client_info=Implementation(name="iterdev", version=__version__)
            )
            opened = await self._open(about, resumes=resumes)
            if model:
                await self._set_model(opened, model)
        except (RequestError, ValidationError) as error:
            self.session = ""
            raise request_failed(error) from error

    async def _open(self, about: InitializeResponse, *, resumes: bool) -> Opened:
        abilities = about.agent_capabilities
        self.keeps_sessions = resumes and bool(abilities and abilities.load_session)
        speaks_http = bool(abilities and abilities.mcp_capabilities and abilities.mcp_capabilities.http)
        servers = mcp_servers(self._assignment.tools) if speaks_http else []
        cwd, earlier = self._assignment.workspace, self._assignment.conversation
        if earlier and self.keeps_sessions:
            loaded = await self._connection.load_session(cwd=cwd, session_id=earlier, mcp_servers=servers)
            self.session = earlier
            return loaded
        created = await self._connection.new_session(cwd=cwd, mcp_servers=servers)
        self.session = created.session_id
        return created

    async def _set_model(self, opened: Opened, model: str) -> None:
        option = next((each for each in opened.config_options or () if each.category == "model"), None)
        if option is None:
            raise RequestFailed(0, f'has no setting for the model, and "{model}" is wanted')
        await self._connection.set_config_option(config_id=option.id, session_id=self.session, value=model)

    async def prompt(self, text: str) -> TurnEnd:
        text_tail = self._client.begin_turn()
        self._transport.stderr.clear()
        self._prompting = True
        try:
            answer = await self._connection.prompt(session_id=self.session, prompt=[text_block(text)])
        except (RequestError, ValidationError) as error:
            self._prompting = False
            raise request_failed(error) from error
        finally:
            self._client.end_turn()
        self._prompting = False
        return TurnEnd(
            reason=answer.stop_reason, usage=turn_usage(answer, self._client.usage), text=bytes(text_tail.kept)
        )

    async def cancel(self) -> bool:
        """Asks the agent to stop, if it has a prompt; whether it has."""
        if self._prompting:
            await self._connection.cancel(session_id=self.session)
        return self._prompting

    async def close(self) -> None:
        await self._connection.close()


def mcp_servers(tools: ToolServer | None) -> list[McpServer]:
    if tools is None:
        return []
    header = HttpHeader(name="Authorization", value=f"Bearer {tools.token}")
    return [HttpMcpServer(type="http", name=TOOLS, url=tools.url, headers=[header])]


def request_failed(error: RequestError | ValidationError) -> RequestFailed:
    if isinstance(error, ValidationError):
        return RequestFailed(0, f"sent a response that is not valid in the protocol: {error.title}")
    # The details of a missing login list the login methods, for programs.
    details = "" if error.data is None or error.code == LOGIN_REQUIRED else json.dumps(error.data)
    return RequestFailed(error.code, " ".join(part for part in (str(error), details) if part))


def turn_usage(answer: PromptResponse, reported: Usage) -> Usage:
    if answer.usage:
        return Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
    return reported + usage_in_meta(answer.field_meta)
