"""OpenAI chat completions, the API that qwen, opencode, copilot, goose and kimi use."""

import json
import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model.messages import (
    Author,
    Event,
    Failure,
    Json,
    Message,
    ModelRequest,
    ModelResponse,
    Parameters,
    Tool,
    pieces,
    retry_headers,
)

NAME = "chat"
PATH = re.compile(r"/chat/completions$")

_AUTHORS = {"user": Author.user, "assistant": Author.model}
_ERRORS = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class _Part(Struct, frozen=True):
    text: str = ""


class _Call(Struct, frozen=True):
    id: str = ""


class _Message(Struct, frozen=True):
    role: str
    content: str | tuple[_Part, ...] | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Function(Struct, frozen=True):
    name: str
    parameters: Parameters = Parameters()


class _Tool(Struct, frozen=True):
    function: _Function


class _JsonSchema(Struct, frozen=True):
    schema: dict[str, object] | None = None


class _Format(Struct, frozen=True):
    json_schema: _JsonSchema = _JsonSchema()


class _Request(Struct, frozen=True):
    model: str
    messages: tuple[_Message, ...]
    tools: tuple[_Tool, ...] | None = None
    stream: bool = False
    response_format: _Format | None = None


def read(_path: str, body: bytes) -> ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    functions = [tool.function for tool in request.tools or ()]
    return ModelRequest(
        model=request.model,
        streaming=request.stream,
        history=tuple(map(_message, request.messages)),
        tools=tuple(Tool(name=function.name, parameters=function.parameters) for function in functions),
        schema=request.response_format.json_schema.schema if request.response_format else None,
    )


def _message(message: _Message) -> Message:
    content = message.content
    return Message(
        author=_AUTHORS.get(message.role, Author.other),
        text=content if isinstance(content, str) else "\n".join(part.text for part in content or ()),
        calls=tuple(call.id for call in message.tool_calls or ()),
    )


def whole(response: ModelResponse) -> Json:
    message: dict[str, object] = {"role": "assistant", "content": response.text or None}
    if response.calls:
        message["tool_calls"] = _calls(response)
    return _completion(response, "chat.completion", [{"message": message, "finish_reason": _reason(response)}])


def _completion(response: ModelResponse, kind: str, choices: list[Json]) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{response.turn}",
        "object": kind,
        "created": 0,
        "model": response.model,
        "choices": [{"index": 0, **choice} for choice in choices],
        "usage": {
            "prompt_tokens": response.usage.input,
            "completion_tokens": response.usage.output,
            "total_tokens": response.usage.input + response.usage.output,
            "prompt_tokens_details": {"cached_tokens": response.usage.cached},
        },
    }


def _calls(response: ModelResponse) -> list[Json]:
    return [
        {"id": id_, "type": "function", "function": {"name": call.full_name, "arguments": json.dumps(call.arguments)}}
        for id_, call in response.calls_with_ids()
    ]


def _reason(response: ModelResponse) -> str:
    return "tool_calls" if response.calls else "stop"


def stream(response: ModelResponse) -> Iterator[Event]:
    for delta, reason in _deltas(response):
        chunk = _completion(response, "chat.completion.chunk", [{"delta": delta, "finish_reason": reason}])
        yield Event({**chunk, "usage": None})
    yield Event(_completion(response, "chat.completion.chunk", []))
    yield Event("[DONE]")


def _deltas(response: ModelResponse) -> Iterator[tuple[Json, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    yield from (({"content": piece}, None) for piece in pieces(response.text))
    for index, call in enumerate(_calls(response)):
        yield {"tool_calls": [{"index": index, **call}]}, None
    yield {}, _reason(response)


def failure(fail: Fail, _now: float) -> Failure:
    code = fail.code or _ERRORS.get(fail.http_status, "server_error")
    headers = retry_headers(fail)
    if fail.reset_in is not None:
        headers |= {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{fail.reset_in:g}s"}
    return Failure(
        body={"error": {"message": fail.message, "type": code, "code": code, "param": None}}, headers=headers
    )
