"""OpenAI Responses, the API that codex uses."""

import json
import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model import messages

NAME = "responses"
PATH = re.compile(r"/responses$")

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_MODEL_ITEMS = _CALLS | {"reasoning"}
_ERRORS = {401: "invalid_request_error", 403: "permission_error", 429: "rate_limit_exceeded"}


class _Tool(Struct, frozen=True):
    type: str = ""
    name: str = ""
    parameters: messages.Parameters | None = None
    tools: tuple["_Tool", ...] = ()
    """Of a namespace."""


class _Item(Struct, frozen=True):
    type: str = "message"
    role: str = ""
    content: str | tuple[messages.TextPart, ...] | None = None
    call_id: str | None = None
    tools: tuple[_Tool, ...] = ()
    """Of `additional_tools`: models with "code mode" get their tools as part of the input."""


class _Request(Struct, frozen=True):
    model: str
    input: str | tuple[_Item, ...]
    instructions: str | None = None
    tools: tuple[_Tool, ...] = ()
    stream: bool = False
    text: dict[str, object] | None = None


def read(_path: str, body: bytes) -> messages.ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    items = (_Item(role="user", content=request.input),) if isinstance(request.input, str) else request.input
    offered = [*request.tools, *(tool for item in items for tool in item.tools)]
    return messages.ModelRequest(
        model=request.model,
        streaming=request.stream,
        history=(messages.Message(text=request.instructions or ""), *map(_message, items)),
        tools=tuple(_tools(offered)),
        schema=messages.schema_in(request.text),
    )


def _message(item: _Item) -> messages.Message:
    role = item.role if item.type == "message" else "model" if item.type in _MODEL_ITEMS else "tool"
    return messages.Message(
        author=messages.AUTHORS.get(role, messages.Author.other),
        text=messages.text_of(item.content),
        calls=(item.call_id,) if item.type in _CALLS and item.call_id else (),
    )


def _tools(offered: Iterable[_Tool], namespace: str = "") -> Iterator[messages.Tool]:
    for tool in offered:
        if tool.type == "namespace":
            yield from _tools(tool.tools, tool.name)
        elif tool.type in {"function", "custom"}:
            yield messages.Tool(
                name=tool.name,
                parameters=tool.parameters or messages.Parameters(),
                freeform=tool.type == "custom",
                namespace=namespace,
            )


def whole(response: messages.ModelResponse) -> messages.Json:
    return _response(response) | {
        "status": "completed",
        "output": _items(response),
        "usage": {
            "input_tokens": response.usage.input,
            "input_tokens_details": {"cached_tokens": response.usage.cached},
            "output_tokens": response.usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": response.usage.input + response.usage.output,
        },
    }


def _response(response: messages.ModelResponse) -> dict[str, object]:
    return {"id": f"resp_{response.turn}", "object": "response", "created_at": 0, "model": response.model}


def _items(response: messages.ModelResponse) -> list[messages.Json]:
    part = {"type": "output_text", "text": response.text, "annotations": []}
    message = {"type": "message", "id": f"msg_{response.turn}", "role": "assistant", "content": [part]}
    said: list[messages.Json] = [message | {"status": "completed"}] if response.text else []
    return said + [_call_item(id_, call) for id_, call in response.calls_with_ids()]


def _call_item(id_: str, call: messages.ToolCall) -> messages.Json:
    item: dict[str, object] = {"id": f"item_{id_}", "call_id": id_, "name": call.tool, "status": "completed"}
    if isinstance(call.arguments, str):
        return item | {"type": "custom_tool_call", "input": call.arguments}
    if call.namespace:
        item["namespace"] = call.namespace
    return item | {"type": "function_call", "arguments": json.dumps(call.arguments)}


def stream(response: messages.ModelResponse) -> Iterator[messages.Json]:
    for number, data in enumerate(_stream(response)):
        yield {**data, "sequence_number": number}


def _stream(response: messages.ModelResponse) -> Iterator[messages.Json]:
    begun = _response(response) | {"status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(_items(response)):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            yield {"type": "response.output_item.added", **place, "item": {**item, "content": []}}
            for piece in messages.pieces(response.text):
                yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece}
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": "response.completed", "response": whole(response)}


def failure(fail: Fail, now: float) -> messages.Failure:
    code = fail.code or _ERRORS.get(fail.http_status, "server_error")
    error: dict[str, object] = {"message": fail.message, "type": code, "code": code, "param": None}
    if fail.reset_in is not None:
        reset = {"resets_at": round(now + fail.reset_in), "resets_in_seconds": round(fail.reset_in)}
        error |= {"type": fail.code or "usage_limit_reached", "plan_type": "plus", **reset}
    return messages.Failure(body={"error": error}, headers=messages.retry_headers(fail))
