"""Gemini generateContent: requests as gemini sends them, shortened, and the answers it needs."""

import json

from iterdev.agents.scripted.script import Fail, Usage
from iterdev.conformance.model import gemini
from iterdev.conformance.model.messages import Json, ModelRequest, ModelResponse, ToolCall

STREAMED = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
WHOLE = "/v1beta/models/gemini-2.5-flash:generateContent"
CALL = {"functionCall": {"id": "turn_0_call_0", "name": "write_file", "args": {}}, "thoughtSignature": "x"}
RESPONSE = {"functionResponse": {"id": "turn_0_call_0", "name": "write_file", "response": {"output": "Wrote it."}}}
REQUEST = {
    "contents": [
        {"role": "user", "parts": [{"text": "- **Workspace Directories:**\n  - /w"}, {"text": "Write hello.txt."}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "I will."}, CALL]},
        {"role": "user", "parts": [RESPONSE]},
    ],
    "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
    "tools": [
        {
            "functionDeclarations": [
                {"name": "write_file", "parametersJsonSchema": {"properties": {"file_path": {}, "content": {}}}},
                {"name": "old_style", "parameters": {"properties": {"a": {}}, "required": ["a"]}},
                {"name": "bare"},
            ]
        }
    ],
    "generationConfig": {"temperature": 1},
}
ANSWERED = ModelResponse(
    model="gemini-2.5-pro",
    turn=1,
    text="I will write.",
    calls=(ToolCall(tool="write_file", arguments={"file_path": "/w/a"}),),
    usage=Usage(input=1200, output=50, cached=1000),
)


def read(path: str = STREAMED, **changes: object) -> ModelRequest:
    return gemini.read(path, json.dumps(REQUEST | changes).encode())


def parts(chunk: Json) -> list[dict[str, object]]:
    (candidate,) = chunk["candidates"]
    return candidate["content"]["parts"]


def test_a_request_is_read_with_its_history_and_tools() -> None:
    request = read()

    assert (request.model, request.streaming, request.turn) == ("gemini-2.5-pro", True, 1)
    assert request.prompt.rstrip().endswith("Write hello.txt.")
    assert "You are an agent." not in request.prompt
    assert [tool.name for tool in request.tools] == ["write_file", "old_style", "bare"]
    assert list(request.tools[0].parameters.properties) == ["file_path", "content"]
    assert request.tools[1].parameters.required == ("a",)


def test_the_path_says_whether_to_stream() -> None:
    schema = {"type": "OBJECT"}

    request = read(WHOLE, tools=[], generationConfig={"responseSchema": schema})

    assert (request.model, request.streaming, request.schema) == ("gemini-2.5-flash", False, schema)


def test_a_whole_answer_has_text_calls_and_usage() -> None:
    response = gemini.whole(ANSWERED)

    text, call = parts(response)
    assert text == {"text": "I will write."}
    assert call["functionCall"] == {"id": "turn_1_call_0", "name": "write_file", "args": {"file_path": "/w/a"}}
    assert response["candidates"][0]["finishReason"] == "STOP"
    assert response["usageMetadata"] == {
        "promptTokenCount": 1200,
        "candidatesTokenCount": 50,
        "totalTokenCount": 1250,
        "cachedContentTokenCount": 1000,
    }


def test_the_pieces_of_a_stream_make_the_whole_answer_and_only_the_last_stops() -> None:
    chunks = list(gemini.stream(ANSWERED))

    streamed = [part for chunk in chunks for part in parts(chunk)]
    assert "".join(part.get("text", "") for part in streamed) == "I will write."
    assert streamed[-1] == parts(gemini.whole(ANSWERED))[-1]
    reasons = [chunk["candidates"][0].get("finishReason") for chunk in chunks]
    assert reasons == [*[None] * (len(chunks) - 1), "STOP"]


def test_a_stream_whose_pieces_are_alike_stops_once() -> None:
    chunks = list(gemini.stream(ModelResponse(model="m", text="haha")))

    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None, "STOP"]


def test_an_error_has_the_word_of_its_status() -> None:
    assert gemini.failure(Fail(status=500, message="oh"), 0).body == {
        "error": {"code": 500, "message": "oh", "status": "INTERNAL"}
    }


def test_a_limit_has_its_delay_in_the_body() -> None:
    error = gemini.failure(Fail(status=429, reset_in=5), 0).body["error"]

    assert error["status"] == "RESOURCE_EXHAUSTED"
    assert [detail["retryDelay"] for detail in error["details"]] == ["5s"]
