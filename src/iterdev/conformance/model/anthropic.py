"""Anthropic Messages, the API that claude uses."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

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
    OutputConfig,
    Parameters,
    Tool,
    pieces,
    retry_headers,
)

NAME = "anthropic"
PATH = re.compile(r"/messages$")

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class _Block(Struct, frozen=True):
    type: str
    text: str = ""
    id: str = ""


_Content = str | tuple[_Block, ...]


class _Message(Struct, frozen=True):
    role: str
    content: _Content


class _Tool(Struct, frozen=True):
    name: str
    input_schema: Parameters = Parameters()


class _Request(Struct, frozen=True):
    model: str
    messages: tuple[_Message, ...]
    system: _Content = ""
    tools: tuple[_Tool, ...] = ()
    stream: bool = False
    output_config: OutputConfig = OutputConfig()


def read(_path: str, body: bytes) -> ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    return ModelRequest(
        model=request.model,
        streaming=request.stream,
        history=(Message(author=Author.other, text=_text(request.system)), *map(_message, request.messages)),
        tools=tuple(Tool(name=tool.name, parameters=tool.input_schema) for tool in request.tools),
        schema=request.output_config.schema,
    )


def _message(message: _Message) -> Message:
    author = Author.model if message.role == "assistant" else Author.user
    blocks = message.content if isinstance(message.content, tuple) else ()
    calls = tuple(block.id for block in blocks if block.type == "tool_use")
    return Message(author=author, text=_text(message.content), calls=calls)


def _text(content: _Content) -> str:
    return content if isinstance(content, str) else "\n".join(block.text for block in content if block.type == "text")


def whole(response: ModelResponse) -> Json:
    return {
        "id": f"msg_{response.turn}",
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": _blocks(response),
        "stop_reason": "tool_use" if response.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": response.usage.input - response.usage.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": response.usage.cached,
            "output_tokens": response.usage.output,
        },
    }


def _blocks(response: ModelResponse) -> list[Json]:
    said: list[Json] = [{"type": "text", "text": response.text}] if response.text else []
    return said + [
        {"type": "tool_use", "id": id_, "name": call.full_name, "input": call.arguments}
        for id_, call in response.calls_with_ids()
    ]


def stream(response: ModelResponse) -> Iterator[Event]:
    for data in _stream(response):
        yield Event(data, name=str(data["type"]))


def _stream(response: ModelResponse) -> Iterator[Json]:
    message = whole(response)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(_blocks(response)):
        empty: Json = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": response.usage.output}}
    yield {"type": "message_stop"}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(str(block["text"])))
    else:
        written = json.dumps(block["input"])
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(written))


def failure(fail: Fail, now: float) -> Failure:
    kind = fail.code or _ERRORS.get(fail.http_status, "api_error")
    headers = retry_headers(fail)
    if fail.reset_in is not None:
        reset_at = now + fail.reset_in
        headers |= {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-reset": f"{reset_at:.0f}",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": datetime.fromtimestamp(reset_at, UTC).isoformat(timespec="seconds"),
        }
    return Failure(body={"type": "error", "error": {"type": kind, "message": fail.message}}, headers=headers)
