"""Anthropic Messages: requests as claude sends them, shortened, and the answers it needs."""

import json

from iterdev.agents.scripted.script import Fail, Usage
from iterdev.conformance.model import anthropic
from iterdev.conformance.model.messages import Json, ModelRequest, ModelResponse, ToolCall
from iterdev.conformance.model.server import server_sent_event

REQUEST = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>\n - Primary working directory: /w\n</system-reminder>"},
                {"type": "text", "text": "Write hello.txt."},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "I will."},
                {"type": "tool_use", "id": "turn_0_call_0", "name": "Write", "input": {"file_path": "/w/hello.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "turn_0_call_0", "content": "File created"}],
        },
    ],
    "tools": [
        {
            "name": "Write",
            "description": "Writes.",
            "input_schema": {
                "type": "object",
                "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["file_path", "content"],
            },
        }
    ],
    "stream": True,
    "thinking": {"type": "enabled", "budget_tokens": 31999},
}
ANSWERED = ModelResponse(
    model="m",
    turn=1,
    text="I will write.",
    calls=(ToolCall(tool="Write", arguments={"file_path": "/w/a", "content": "a"}),),
    usage=Usage(input=1200, output=50, cached=1000),
)


def read(**changes: object) -> ModelRequest:
    return anthropic.read("/v1/messages", json.dumps(REQUEST | changes).encode())


def events() -> list[Json]:
    return list(anthropic.stream(ANSWERED))


def test_a_request_is_read_with_its_history_and_tools() -> None:
    request = read()

    assert (request.model, request.streaming, request.turn) == ("claude-sonnet-4-5", True, 1)
    assert request.prompt.rstrip().endswith("Write hello.txt.")
    assert "You are an agent." not in request.prompt
    assert "File created" not in request.prompt
    (tool,) = request.tools
    assert (tool.name, tool.parameters.required) == ("Write", ("file_path", "content"))


def test_content_may_be_plain_text() -> None:
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]

    request = read(messages=messages, system="Be brief.", tools=[], stream=False)

    assert (request.prompt, request.turn, request.tools, request.streaming) == ("Hi.", 1, (), False)


def test_the_schema_of_a_side_call_is_read() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}

    assert read(output_config={"format": {"type": "json_schema", "schema": schema}}).schema == schema
    assert read().schema is None


def test_a_whole_answer_has_text_calls_and_usage() -> None:
    message = anthropic.whole(ANSWERED)

    assert message["content"] == [
        {"type": "text", "text": "I will write."},
        {"type": "tool_use", "id": "turn_1_call_0", "name": "Write", "input": {"file_path": "/w/a", "content": "a"}},
    ]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"] == {
        "input_tokens": 200,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 1000,
        "output_tokens": 50,
    }
    assert anthropic.whole(ModelResponse(model="m", text="Done."))["stop_reason"] == "end_turn"


def test_the_pieces_of_a_stream_make_the_whole_answer() -> None:
    deltas = [data["delta"] for data in events() if data["type"] == "content_block_delta"]

    assert "".join(delta.get("text", "") for delta in deltas) == "I will write."
    written = "".join(delta.get("partial_json", "") for delta in deltas)
    assert json.loads(written) == {"file_path": "/w/a", "content": "a"}


def test_a_stream_has_its_events_in_order_each_with_its_name() -> None:
    assert [data["type"] for data in events()] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert all(
        server_sent_event(data).startswith(f"event: {data['type']}\n".encode()) for data in anthropic.stream(ANSWERED)
    )


def test_an_error_has_the_type_of_its_status() -> None:
    failure = anthropic.failure(Fail(status=401, message="no"), 0)

    assert failure.body == {"type": "error", "error": {"type": "authentication_error", "message": "no"}}
    assert failure.headers == {}


def test_a_limit_has_its_reset_time_in_the_headers() -> None:
    headers = anthropic.failure(Fail(status=429, reset_in=60), 1_800_000_000).headers

    assert headers["retry-after"] == "60"
    assert headers["anthropic-ratelimit-unified-reset"] == "1800000060"
    assert headers["anthropic-ratelimit-requests-reset"] == "2027-01-15T08:01:00+00:00"
