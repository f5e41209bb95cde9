"""OpenAI chat completions, the API that qwen, opencode, copilot, goose and kimi use."""

import json
import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model import messages

NAME = "chat"
PATH = re.compile(r"/chat/completions$")

_ERRORS = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class _Call(Struct, frozen=True):
    id: str = ""


class _Message(Struct, frozen=True):
    role: str
    content: str | tuple[messages.TextPart, ...] | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Tool(Struct, frozen=True):
    function: messages.Tool


class _Request(Struct, frozen=True):
    model: str
    messages: tuple[_Message, ...]
    tools: tuple[_Tool, ...] | None = None
    stream: bool = False
    response_format: dict[str, object] | None = None


def read(_path: str, body: bytes) -> messages.ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    return messages.ModelRequest(
        model=request.model,
        streaming=request.stream,
        history=tuple(map(_message, request.messages)),
        tools=tuple(tool.function for tool in request.tools or ()),
        schema=messages.schema_in(request.response_format),
    )


def _message(message: _Message) -> messages.Message:
    return messages.Message(
        author=messages.AUTHORS.get(message.role, messages.Author.other),
        text=messages.text_of(message.content),
        calls=tuple(call.id for call in message.tool_calls or ()),
    )


def whole(response: messages.ModelResponse) -> messages.Json:
    message: dict[str, object] = {"role": "assistant", "content": response.text or None}
    if response.calls:
        message["tool_calls"] = _calls(response)
    return _completion(response, "chat.completion", [{"message": message, "finish_reason": _reason(response)}])


def _completion(response: messages.ModelResponse, kind: str, choices: list[messages.Json]) -> dict[str, object]:
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


def _calls(response: messages.ModelResponse) -> list[messages.Json]:
    return [
        {"id": id_, "type": "function", "function": {"name": call.full_name, "arguments": json.dumps(call.arguments)}}
        for id_, call in response.calls_with_ids()
    ]


def _reason(response: messages.ModelResponse) -> str:
    return "tool_calls" if response.calls else "stop"


def stream(response: messages.ModelResponse) -> Iterator[messages.Json | str]:
    for delta, reason in _deltas(response):
        chunk = _completion(response, "chat.completion.chunk", [{"delta": delta, "finish_reason": reason}])
        yield {**chunk, "usage": None}
    yield _completion(response, "chat.completion.chunk", [])
    yield "[DONE]"


def _deltas(response: messages.ModelResponse) -> Iterator[tuple[messages.Json, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    yield from (({"content": piece}, None) for piece in messages.pieces(response.text))
    for index, call in enumerate(_calls(response)):
        yield {"tool_calls": [{"index": index, **call}]}, None
    yield {}, _reason(response)


def failure(fail: Fail, _now: float) -> messages.Failure:
    code = fail.code or _ERRORS.get(fail.http_status, "server_error")
    headers = messages.retry_headers(fail)
    if fail.reset_in is not None:
        headers |= {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{fail.reset_in:g}s"}
    return messages.Failure(
        body={"error": {"message": fail.message, "type": code, "code": code, "param": None}}, headers=headers
    )
