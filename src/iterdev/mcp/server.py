"""Answers messages: one answer to each request, by what a server offers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct

from iterdev import __version__
from iterdev.mcp import messages, revisions
from iterdev.mcp.messages import UNREADABLE, Document, Message, RequestRefused
from iterdev.mcp.revisions import TASKS, Caller, RequestParams
from iterdev.mcp.tools import Asked, Begun, CallRejected, Prompt, Response, Text, Tool, ToolAnswer, as_requests

FRESH_MS = 60_000
"""Milliseconds for which a client need not ask again what there is: it changes only with the program."""


class Call(Struct, frozen=True, kw_only=True):
    """What a call of a tool says beside its arguments."""

    caller: Caller
    responses: Mapping[str, Response] = {}
    """What the user said to the questions of the call before."""
    progress_token: int | str | None = None


UseTool = Callable[[Any, Call], Awaitable[ToolAnswer]]


class Tasks(Protocol):
    """The tasks of a server, by the extension of that name."""

    async def get(self, task: str) -> Document: ...

    async def update(self, task: str, responses: Mapping[str, Response]) -> None: ...

    async def cancel(self, task: str) -> None: ...


class Server(Struct, frozen=True, kw_only=True):
    """What a server offers."""

    tools: Sequence[Tool[Any]]
    use: UseTool
    prompts: Sequence[Prompt] = ()
    instructions: str = ""
    is_stateless: bool = False
    """Whether it knows the revisions without a handshake too."""
    tasks: Tasks | None = None

    @property
    def capabilities(self) -> Document:
        offered: Document = {"tools": {}}
        return {**offered, "prompts": {}} if self.prompts else offered

    @property
    def facts(self) -> Document:
        return {"instructions": self.instructions} if self.instructions else {}


INFO = {"name": "iterdev", "version": __version__}


class _CallParams(RequestParams, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")
    responses: dict[str, Response] | None = msgspec.field(name="inputResponses", default=None)


class _PromptParams(Struct, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class _TaskParams(Struct, frozen=True, kw_only=True):
    task: str = msgspec.field(name="taskId")
    responses: dict[str, Response] = msgspec.field(name="inputResponses", default={})


async def answer(message: Message, server: Server, caller: Caller | None = None) -> bytes | None:
    """The answer to a message, or None for one that wants none; `caller` is who said so in a handshake."""
    to = message.id
    if to is msgspec.UNSET or not message.method:
        return None
    try:
        known = _caller(message, server) or caller or Caller()
        result = await _result(message, server, known)
        return messages.result(to, {"resultType": "complete", **result} if known.is_stateless else result)
    except RequestRefused as refused:
        return messages.failure(to, refused.code, refused.message, refused.data)
    except UNREADABLE as error:
        return messages.failure(to, messages.INVALID_PARAMS, messages.reason(error))
    except Exception as error:  # noqa: BLE001 - a defect in one answer must not end the server
        return messages.failure(to, messages.INTERNAL_ERROR, f"a defect of iterdev: {type(error).__name__}: {error}")


def _caller(message: Message, server: Server) -> Caller | None:
    """The client of a request that says which revision it is of; one that is not known is refused."""
    if not server.is_stateless or message.method == "initialize":
        return None
    caller = msgspec.json.decode(message.params, type=RequestParams).caller
    if caller is None and message.method == "server/discover":
        raise RequestRefused(messages.INVALID_PARAMS, "the request does not say which revision it is of")
    if caller and not caller.is_stateless:
        raise RequestRefused(
            messages.UNSUPPORTED_REVISION,
            f'the revision "{caller.revision}" is not known',
            {"supported": list(revisions.STATELESS), "requested": caller.revision},
        )
    return caller


async def _result(message: Message, server: Server, caller: Caller) -> Document:
    match message.method:
        case "tools/call":
            return await _call(msgspec.json.decode(message.params, type=_CallParams), server, caller)
        case "tools/list":
            return _list(caller, tools=[tool.listed for tool in server.tools])
        case "prompts/list" if server.prompts:
            return _list(caller, prompts=[prompt.listed for prompt in server.prompts])
        case "prompts/get" if server.prompts:
            return _prompt(msgspec.json.decode(message.params, type=_PromptParams), server)
        case "initialize":
            agreed = revisions.initialized(message.params).revision
            facts = {"capabilities": server.capabilities, "serverInfo": INFO, **server.facts}
            return {"protocolVersion": agreed, **facts}
        case "ping" if not caller.is_stateless:
            return {}
        case "server/discover" if caller.is_stateless:
            return _discovered(server, caller)
        case "tasks/get" | "tasks/update" | "tasks/cancel" if server.tasks and caller.is_stateless:
            return await _task(message, server.tasks, caller)
        case unknown:
            raise RequestRefused(messages.METHOD_NOT_FOUND, f'there is no method "{unknown}"')


def _list(caller: Caller, **listed: object) -> Document:
    return listed | ({"ttlMs": FRESH_MS, "cacheScope": "private"} if caller.is_stateless else {})


def _discovered(server: Server, caller: Caller) -> Document:
    capabilities = server.capabilities | ({"extensions": {TASKS: {}}} if server.tasks else {})
    known = {"supportedVersions": list(revisions.STATELESS), "capabilities": capabilities}
    return _list(caller, **known, **server.facts, _meta={"io.modelcontextprotocol/serverInfo": INFO})


def _prompt(params: _PromptParams, server: Server) -> Document:
    for prompt in server.prompts:
        if prompt.name == params.name:
            return prompt.filled(params.arguments or {})
    raise RequestRefused(messages.INVALID_PARAMS, f'there is no prompt "{params.name}"')


async def _call(params: _CallParams, server: Server, caller: Caller) -> Document:
    tool = next((tool for tool in server.tools if tool.name == params.name), None)
    if tool is None:
        raise RequestRefused(messages.INVALID_PARAMS, f'there is no tool "{params.name}"')
    call = Call(caller=caller, responses=params.responses or {}, progress_token=params.progress_token)
    try:
        given = Raw(b"{}") if bytes(params.arguments).strip() == b"null" else params.arguments
        answered = await server.use(msgspec.json.decode(given, type=tool.arguments), call)
    except CallRejected as rejection:
        answered = Text(text=str(rejection), is_error=True)
    except UNREADABLE as error:
        # An agent can fix its arguments only if it sees what is wrong, so this is an answer of the tool.
        answered = Text(text=f"{tool.name} was called wrongly: {messages.reason(error)}", is_error=True)
    match answered:
        case Text():
            return as_result(answered)
        case Asked(questions):
            return {"resultType": "input_required", "inputRequests": as_requests(questions)}
        case Begun(task):
            return {"resultType": "task", **task}


def as_result(said: Text) -> Document:
    return {"content": [{"type": "text", "text": said.text}], "isError": said.is_error}


async def _task(message: Message, tasks: Tasks, caller: Caller) -> Document:
    if not caller.has_tasks:
        required: Document = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise RequestRefused(messages.MISSING_CAPABILITY, f'the client does not have the extension "{TASKS}"', required)
    params = msgspec.json.decode(message.params, type=_TaskParams)
    if message.method == "tasks/get":
        return await tasks.get(params.task)
    if message.method == "tasks/update":
        await tasks.update(params.task, params.responses)
    else:
        await tasks.cancel(params.task)
    return {}
