"""OpenAI chat completions: requests as qwen sends them, shortened, and the answers it needs."""

import json

from iterdev.agents.scripted.script import Fail, Usage
from iterdev.conformance.model import openai_chat
from iterdev.conformance.model.messages import Json, ModelRequest, ModelResponse, ToolCall

CALL = {"id": "turn_0_call_0", "type": "function", "function": {"name": "write_file", "arguments": "{}"}}
REQUEST = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You are Qwen Code."},
        {"role": "user", "content": [{"type": "text", "text": "I'm currently working in the directory: /w\n"}]},
        {"role": "assistant", "content": "Got it. Thanks for the context!"},
        {"role": "user", "content": "Write hello.txt."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "turn_0_call_0", "content": [{"type": "text", "text": "Wrote it."}]},
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "write_file",
                "parameters": {"type": "object", "properties": {"file_path": {}}, "required": ["file_path"]},
            },
        }
    ],
}
ANSWERED = ModelResponse(
    model="m",
    turn=1,
    text="I will write.",
    calls=(
        ToolCall(tool="write_file", arguments={"file_path": "/w/a"}),
        ToolCall(tool="post_note", arguments={}, namespace="mcp__notes"),
    ),
    usage=Usage(input=1200, output=50, cached=1000),
)


def read(**changes: object) -> ModelRequest:
    return openai_chat.read("/v1/chat/completions", json.dumps(REQUEST | changes).encode())


def chunks() -> list[Json]:
    return [data for data in openai_chat.stream(ANSWERED) if not isinstance(data, str)]


def test_a_request_is_read_with_its_history_and_tools() -> None:
    request = read()

    assert (request.model, request.streaming, request.turn) == ("m", True, 1)
    assert request.prompt.endswith("Write hello.txt.")
    assert "Wrote it." not in request.prompt
    assert "You are Qwen Code." in request.text
    (tool,) = request.tools
    assert (tool.name, tool.parameters.required) == ("write_file", ("file_path",))


def test_a_side_call_has_no_tools_and_may_have_a_schema() -> None:
    schema = {"type": "object"}

    request = read(tools=None, stream=False, response_format={"type": "json_schema", "json_schema": {"schema": schema}})

    assert (request.tools, request.streaming, request.schema) == ((), False, schema)
    assert read(response_format={"type": "json_object"}).schema is None


def test_a_whole_answer_has_text_calls_and_usage() -> None:
    completion = openai_chat.whole(ANSWERED)

    (choice,) = completion["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I will write."
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["turn_1_call_0", "turn_1_call_1"]
    assert choice["message"]["tool_calls"][1]["function"]["name"] == "mcp__notes__post_note"
    assert completion["usage"]["prompt_tokens"] == 1200
    assert completion["usage"]["prompt_tokens_details"] == {"cached_tokens": 1000}


def test_an_answer_without_calls_stops() -> None:
    (choice,) = openai_chat.whole(ModelResponse(model="m", text="Done."))["choices"]

    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]


def test_the_pieces_of_a_stream_make_the_whole_answer() -> None:
    deltas = [choice["delta"] for chunk in chunks() for choice in chunk["choices"]]

    assert "".join(delta.get("content") or "" for delta in deltas) == "I will write."
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [(call["index"], json.loads(call["function"]["arguments"])) for call in calls] == [
        (0, {"file_path": "/w/a"}),
        (1, {}),
    ]


def test_a_stream_ends_with_a_reason_then_the_usage_then_done() -> None:
    *_, last, usage = chunks()

    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 1250)
    assert list(openai_chat.stream(ANSWERED))[-1] == "[DONE]"


def test_an_error_has_the_code_of_its_status_or_one_of_its_own() -> None:
    assert openai_chat.failure(Fail(status=401), 0).body["error"]["code"] == "invalid_api_key"
    assert openai_chat.failure(Fail(status=500), 0).body["error"]["code"] == "server_error"
    assert openai_chat.failure(Fail(status=400, code="context_length_exceeded"), 0).body["error"]["code"] == (
        "context_length_exceeded"
    )


def test_a_limit_has_its_reset_time_in_the_headers() -> None:
    headers = openai_chat.failure(Fail(status=429, reset_in=60), 0).headers

    assert headers == {
        "retry-after": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "60s",
    }
