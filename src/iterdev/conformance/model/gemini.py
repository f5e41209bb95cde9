"""Gemini generateContent, the API that gemini uses."""

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

NAME = "gemini"
PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)$")

_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class _Call(Struct, frozen=True):
    id: str | None = None


class _Part(Struct, frozen=True, rename="camel"):
    text: str = ""
    thought: bool = False
    function_call: _Call | None = None


class _Content(Struct, frozen=True):
    parts: tuple[_Part, ...] = ()
    role: str = "user"


class _Function(Struct, frozen=True, rename="camel"):
    name: str
    parameters: Parameters | None = None
    parameters_json_schema: Parameters | None = None


class _Tool(Struct, frozen=True, rename="camel"):
    function_declarations: tuple[_Function, ...] = ()


class _Config(Struct, frozen=True, rename="camel"):
    response_schema: dict[str, object] | None = None
    response_json_schema: dict[str, object] | None = None


class _Request(Struct, frozen=True, rename="camel"):
    contents: tuple[_Content, ...]
    system_instruction: _Content = _Content()
    tools: tuple[_Tool, ...] = ()
    generation_config: _Config = _Config()


def read(path: str, body: bytes) -> ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    place = PATH.search(path)
    config = request.generation_config
    return ModelRequest(
        model=place["model"] if place else "",
        streaming=place is not None and place["verb"] == "streamGenerateContent",
        history=(
            Message(author=Author.other, text=_text(request.system_instruction)),
            *map(_message, request.contents),
        ),
        tools=tuple(_tool(function) for tool in request.tools for function in tool.function_declarations),
        schema=config.response_json_schema or config.response_schema,
    )


def _tool(function: _Function) -> Tool:
    return Tool(name=function.name, parameters=function.parameters_json_schema or function.parameters or Parameters())


def _message(content: _Content) -> Message:
    calls = [part.function_call for part in content.parts if part.function_call]
    return Message(
        author=Author.model if content.role == "model" else Author.user,
        text=_text(content),
        calls=tuple(call.id for call in calls if call.id),
    )


def _text(content: _Content) -> str:
    return "\n".join(part.text for part in content.parts if part.text and not part.thought)


def whole(response: ModelResponse) -> Json:
    said: list[Json] = [{"text": response.text}] if response.text else []
    return _chunk(response, said + _calls(response), "STOP")


def stream(response: ModelResponse) -> Iterator[Event]:
    parts: list[Json] = [*({"text": piece} for piece in pieces(response.text)), *_calls(response)]
    for part in parts:
        yield Event(_chunk(response, [part], "STOP" if part is parts[-1] else None))


def _calls(response: ModelResponse) -> list[Json]:
    return [
        # The newer models sign their calls, and the client sends the signature back.
        {"functionCall": {"id": id_, "name": call.full_name, "args": call.arguments}, "thoughtSignature": "c2lnbmVk"}
        for id_, call in response.calls_with_ids()
    ]


def _chunk(response: ModelResponse, parts: list[Json], reason: str | None) -> dict[str, object]:
    candidate: dict[str, object] = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {
        "responseId": f"response-{response.turn}",
        "modelVersion": response.model,
        "candidates": [candidate | ({"finishReason": reason} if reason else {})],
        "usageMetadata": {
            "promptTokenCount": response.usage.input,
            "candidatesTokenCount": response.usage.output,
            "totalTokenCount": response.usage.input + response.usage.output,
            "cachedContentTokenCount": response.usage.cached,
        },
    }


def failure(fail: Fail, _now: float) -> Failure:
    status = fail.code or _ERRORS.get(fail.http_status, "INTERNAL")
    error: dict[str, object] = {"code": fail.http_status, "message": fail.message, "status": status}
    if fail.reset_in is not None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fail.reset_in:g}s"}
        error["details"] = [retry]
    return Failure(body={"error": error}, headers=retry_headers(fail))
