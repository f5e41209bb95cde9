"""Anthropic Messages, the API that claude uses."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model import messages

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


class _Block(messages.TextPart, frozen=True, kw_only=True):
    type: str
    id: str = ""


class _Message(Struct, frozen=True):
    role: str
    content: str | tuple[_Block, ...]


class _Tool(Struct, frozen=True):
    name: str
    input_schema: messages.Parameters = messages.Parameters()


class _Request(Struct, frozen=True):
    model: str
    messages: tuple[_Message, ...]
    system: str | tuple[_Block, ...] = ""
    tools: tuple[_Tool, ...] = ()
    stream: bool = False
    output_config: dict[str, object] | None = None


def read(_path: str, body: bytes) -> messages.ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    return messages.ModelRequest(
        model=request.model,
        streaming=request.stream,
        history=(messages.Message(text=messages.text_of(request.system)), *map(_message, request.messages)),
        tools=tuple(messages.Tool(name=tool.name, parameters=tool.input_schema) for tool in request.tools),
        schema=messages.schema_in(request.output_config),
    )


def _message(message: _Message) -> messages.Message:
    blocks = message.content if isinstance(message.content, tuple) else ()
    return messages.Message(
        author=messages.AUTHORS.get(message.role, messages.Author.user),
        text=messages.text_of(message.content),
        calls=tuple(block.id for block in blocks if block.type == "tool_use"),
    )


def whole(response: messages.ModelResponse) -> messages.Json:
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


def _blocks(response: messages.ModelResponse) -> list[messages.Json]:
    said: list[messages.Json] = [{"type": "text", "text": response.text}] if response.text else []
    return said + [
        {"type": "tool_use", "id": id_, "name": call.full_name, "input": call.arguments}
        for id_, call in response.calls_with_ids()
    ]


def stream(response: messages.ModelResponse) -> Iterator[messages.Json]:
    message = whole(response)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(_blocks(response)):
        empty: messages.Json = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": response.usage.output}}
    yield {"type": "message_stop"}


def _deltas(block: messages.Json) -> list[messages.Json]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": piece} for piece in messages.pieces(str(block["text"]))]
    written = json.dumps(block["input"])
    return [{"type": "input_json_delta", "partial_json": piece} for piece in messages.pieces(written)]


def failure(fail: Fail, now: float) -> messages.Failure:
    kind = fail.code or _ERRORS.get(fail.http_status, "api_error")
    headers = messages.retry_headers(fail)
    if fail.reset_in is not None:
        reset_at = now + fail.reset_in
        headers |= {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-reset": f"{reset_at:.0f}",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": datetime.fromtimestamp(reset_at, UTC).isoformat(timespec="seconds"),
        }
    return messages.Failure(body={"type": "error", "error": {"type": kind, "message": fail.message}}, headers=headers)
