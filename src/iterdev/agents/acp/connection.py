"""The Agent Client Protocol itself: its messages over the input and output of a process, and its side of a client.

Only this module imports the protocol's package, which loads pydantic and takes most of a second: it is imported
when a conversation is opened. It knows nothing of results and troubles.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar, cast

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
from iterdev.agents.acp.failures import LOGIN_REQUIRED, Refusal
from iterdev.agents.acp.permissions import Wish, granted
from iterdev.agents.acp.usage import told_usage
from iterdev.agents.command import STDERR_KEPT, STDOUT_KEPT, Ear, Watch
from iterdev.agents.common.json_lines import Lines
from iterdev.agents.contract import TOOLS, Assignment, PermissionAsked, Process, Said, ToolServer
from iterdev.core.results import Usage

Message = dict[str, object]
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
Opened = NewSessionResponse | LoadSessionResponse
Answered = TypeVar("Answered")


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a turn, as the agent tells it."""

    reason: str
    usage: Usage
    text: bytes
    """The end of what it said."""


class Envelope(msgspec.Struct, frozen=True):
    """What a message must look like for the package to survive it."""

    id: int | str | None = None
    method: str = ""
    error: Message | None = None


class Wire:
    """Carries messages over a process, a line each, and skips all that is none or that nobody here understands."""

    def __init__(self, process: Process) -> None:
        self.stderr = bytearray()
        self._process = process
        self._messages = self._heard()
        self._writing = anyio.Lock()
        self._torn = False

    async def send(self, message: Message) -> None:
        async with self._writing:
            if self._torn:
                raise ConnectionError("half a message was sent")
            self._torn = True
            try:
                await self._process.write(json.dumps(message).encode() + b"\n")
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise ConnectionError("the agent does not listen any more") from error
            self._torn = False

    async def receive(self) -> Message | None:
        async for message in self._messages:
            return message
        return None

    async def close(self) -> None:
        await self._process.close_input()

    async def _heard(self) -> AsyncIterator[Message]:
        lines = Lines()
        async for stream, chunk in self._process.output():
            if stream == "stderr":
                self.stderr += chunk
                del self.stderr[:-STDERR_KEPT]
                continue
            for message in filter(None, map(understood, lines.feed(chunk))):
                yield message


def understood(line: bytes) -> Message | None:
    """The message in a line; the package would log a stack trace on our user's terminal for any other line."""
    try:
        # Unlike msgspec, it takes half of a character, which is what a stream of pieces of text can bring.
        message = msgspec.convert(json.loads(line), Message)
        envelope = msgspec.convert(message, Envelope)
        if envelope.method and "id" not in message:
            if envelope.method != "session/update":
                return None
            SessionNotification.model_validate(message.get("params"))
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None
    return message


class Listener:
    """Hears what an agent does during a turn, and answers what it asks for."""

    def __init__(self, assignment: Assignment, watch: Watch) -> None:
        self._assignment = assignment
        self._watch = watch
        self._told = set[str]()
        self._ear: Ear | None = None
        """Nothing is heard between turns: an agent that takes up a conversation tells all of it again."""
        self.usage = Usage()
        """Of the calls of the model in this turn, where the agent tells them one by one."""

    def listen(self) -> Ear:
        self.usage = Usage()
        self._ear = Ear(self._watch, keep=STDOUT_KEPT)
        return self._ear

    def rest(self) -> None:
        if self._ear:
            self._ear.finish()
        self._ear = None

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        del session_id
        if self._ear is None:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text), field_meta=extra):
                self._ear.hear(text.encode(errors="replace"))
                self.usage += told_usage(extra)
            case ToolCallStart() | ToolCallProgress() as call:
                self._tell(call.tool_call_id, call.title)
            case _:
                pass

    def _tell(self, call: str, title: str | None) -> None:
        """Passes on a call of a tool once, however many messages are about it."""
        if self._ear and title and call not in self._told:
            self._told.add(call)
            self._ear.finish()
            self._watch(Said(title))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        del session_id
        wish = wished(tool_call)
        self._tell(tool_call.tool_call_id, tool_call.title)
        given = granted(wish, self._assignment.permissions, self._assignment.workspace)
        if not given:
            self._watch(PermissionAsked(wish.title))
        return RequestPermissionResponse(outcome=chosen(options, "allow" if given else "reject"))


def wished(call: ToolCallUpdate) -> Wish:
    places = [location.path for location in call.locations or ()]
    changed = [part.path for part in call.content or () if isinstance(part, FileEditToolCallContent)]
    kind = call.kind or "other"
    return Wish(kind=kind, title=call.title or kind, paths=(*places, *changed, *named_paths(call.raw_input)))


def named_paths(arguments: object) -> tuple[str, ...]:
    """The paths among the arguments of a tool, which every agent calls a little differently."""
    if not isinstance(arguments, Mapping):
        return ()
    return tuple(
        value
        for name, value in arguments.items()
        if isinstance(name, str) and isinstance(value, str) and name.lower().endswith(("path", "file", "filename"))
    )


def chosen(options: list[PermissionOption], answer: str) -> AllowedOutcome | DeniedOutcome:
    """The option for this once, rather than the one for ever; without one of the kind, the call is cancelled."""
    for kind in (f"{answer}_once", f"{answer}_always"):
        for option in options:
            if option.kind == kind:
                return AllowedOutcome(outcome="selected", option_id=option.option_id)
    return DeniedOutcome(outcome="cancelled")


class Link:
    """A connection to one agent and, once begun, one conversation with it."""

    def __init__(self, process: Process, assignment: Assignment, watch: Watch) -> None:
        self.session = ""
        self.keeps_sessions = False
        self._wire = Wire(process)
        self._assignment = assignment
        self._listener = Listener(assignment, watch)
        self._connection = connect_to_agent(cast("Client", self._listener), self._wire)
        self._prompting = False

    @property
    def stderr(self) -> bytes:
        return bytes(self._wire.stderr)

    @property
    def heard(self) -> Usage:
        """What the turn has used so far, of an agent that tells it call by call."""
        return self._listener.usage

    async def begin(self, *, resumes: bool, model: str) -> None:
        """Says who we are, and opens the conversation, or takes an earlier one up."""
        if self.session:
            return
        try:
            about = await self._connection.initialize(
                PROTOCOL_VERSION, client_info=Implementation(name="iterdev", version=__version__)
            )
            opened = await self._open(about, resumes=resumes)
            if model:
                await self._choose(opened, model)
        except (RequestError, ValidationError) as error:
            self.session = ""
            raise refusal(error) from error

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

    async def _choose(self, opened: Opened, model: str) -> None:
        option = next((each for each in opened.config_options or () if each.category == "model"), None)
        if option is None:
            raise Refusal(0, f'does not let the model "{model}" be chosen')
        await self._connection.set_config_option(config_id=option.id, session_id=self.session, value=model)

    async def prompt(self, text: str) -> Stop:
        ear = self._listener.listen()
        self._wire.stderr.clear()
        self._prompting = True
        try:
            answer = await self._connection.prompt(session_id=self.session, prompt=[text_block(text)])
        except (RequestError, ValidationError) as error:
            self._prompting = False
            raise refusal(error) from error
        finally:
            self._listener.rest()
        self._prompting = False
        return Stop(reason=answer.stop_reason, usage=counted(answer, self._listener.usage), text=bytes(ear.kept))

    async def cancel(self) -> bool:
        """Asks the agent to stop, if it was given something to do."""
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


def refusal(error: RequestError | ValidationError) -> Refusal:
    if isinstance(error, ValidationError):
        return Refusal(0, f"gave an answer that the protocol does not know: {error.title}")
    # The details of a missing login are a list of ways to log in, for programs.
    details = "" if error.data is None or error.code == LOGIN_REQUIRED else json.dumps(error.data)
    return Refusal(error.code, " ".join(part for part in (str(error), details) if part))


def counted(answer: PromptResponse, heard: Usage) -> Usage:
    if answer.usage:
        return Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
    return heard + told_usage(answer.field_meta)
