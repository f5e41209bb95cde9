"""Gemini generateContent, the API that gemini uses."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model import messages

NAME = "gemini"
PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)$")

_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class _Part(messages.TextPart, frozen=True, rename="camel"):
    thought: bool = False
    function_call: dict[str, object] | None = None


class _Content(Struct, frozen=True):
    parts: tuple[_Part, ...] = ()
    role: str = "user"


class _Function(Struct, frozen=True, rename="camel"):
    name: str
    parameters: messages.Parameters | None = None
    parameters_json_schema: messages.Parameters | None = None

    @property
    def schema(self) -> messages.Parameters:
        return self.parameters_json_schema or self.parameters or messages.Parameters()


class _Tool(Struct, frozen=True, rename="camel"):
    function_declarations: tuple[_Function, ...] = ()


class _Request(Struct, frozen=True, rename="camel"):
    contents: tuple[_Content, ...]
    system_instruction: _Content = _Content()
    tools: tuple[_Tool, ...] = ()
    generation_config: dict[str, object] | None = None


def read(path: str, body: bytes) -> messages.ModelRequest:
    request = msgspec.json.decode(body, type=_Request)
    place = PATH.search(path)
    functions = [function for tool in request.tools for function in tool.function_declarations]
    return messages.ModelRequest(
        model=place["model"] if place else "",
        streaming=place is not None and place["verb"] == "streamGenerateContent",
        history=(messages.Message(text=_text(request.system_instruction)), *map(_message, request.contents)),
        tools=tuple(messages.Tool(name=function.name, parameters=function.schema) for function in functions),
        schema=messages.schema_in(request.generation_config),
    )


def _message(content: _Content) -> messages.Message:
    return messages.Message(
        author=messages.AUTHORS.get(content.role, messages.Author.user),
        text=_text(content),
        calls=tuple(str(call["id"]) for part in content.parts if (call := part.function_call) and call.get("id")),
    )


def _text(content: _Content) -> str:
    return messages.text_of([part for part in content.parts if not part.thought])


def whole(response: messages.ModelResponse) -> messages.Json:
    said: list[messages.Json] = [{"text": response.text}] if response.text else []
    return _chunk(response, said + _calls(response), "STOP")


def stream(response: messages.ModelResponse) -> Iterator[messages.Json]:
    parts: list[messages.Json] = [*({"text": piece} for piece in messages.pieces(response.text)), *_calls(response)]
    for part in parts:
        yield _chunk(response, [part], "STOP" if part is parts[-1] else None)


def _calls(response: messages.ModelResponse) -> list[messages.Json]:
    return [
        # The newer models sign their calls, and the client sends the signature back.
        {"functionCall": {"id": id_, "name": call.full_name, "args": call.arguments}, "thoughtSignature": "c2lnbmVk"}
        for id_, call in response.calls_with_ids()
    ]


def _chunk(response: messages.ModelResponse, parts: list[messages.Json], reason: str | None) -> dict[str, object]:
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


def failure(fail: Fail, _now: float) -> messages.Failure:
    status = fail.code or _ERRORS.get(fail.http_status, "INTERNAL")
    error: dict[str, object] = {"code": fail.http_status, "message": fail.message, "status": status}
    if fail.reset_in is not None:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fail.reset_in:g}s"}
        error["details"] = [retry]
    return messages.Failure(body={"error": error}, headers=messages.retry_headers(fail))
