"""OpenAI Responses: requests as codex sends them, shortened, and the answers it needs."""

import json

from iterdev.agents.scripted.script import Fail, Usage
from iterdev.conformance.model import openai_responses
from iterdev.conformance.model.messages import Json, ModelRequest, ModelResponse, ToolCall

SCHEMA = {"type": "object", "properties": {"status": {"type": "string"}}}
REQUEST = {
    "model": "gpt-5.5",
    "stream": True,
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are Codex."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<cwd>/w</cwd>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Write hello.txt."}]},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I will."}]},
        {"type": "custom_tool_call", "call_id": "turn_0_call_0", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "turn_0_call_0", "output": "Success."},
    ],
    "tools": [
        {
            "type": "function",
            "name": "exec_command",
            "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]},
        },
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}},
        {"type": "web_search", "external_web_access": True},
        {"type": "namespace", "name": "mcp__notes", "tools": [{"type": "function", "name": "post_note"}]},
    ],
    "text": {"verbosity": "low", "format": {"type": "json_schema", "strict": True, "schema": SCHEMA}},
    "store": False,
}
ANSWERED = ModelResponse(
    model="m",
    turn=2,
    text="I will write.",
    calls=(
        ToolCall(tool="apply_patch", arguments="*** Begin Patch"),
        ToolCall(tool="exec_command", arguments={"cmd": "ls"}),
        ToolCall(tool="post_note", arguments={}, namespace="mcp__notes"),
    ),
    usage=Usage(input=1200, output=50, cached=1000),
)


def read(**changes: object) -> ModelRequest:
    return openai_responses.read("/v1/responses", json.dumps(REQUEST | changes).encode())


def events() -> list[Json]:
    return list(openai_responses.stream(ANSWERED))


def test_a_request_is_read_with_its_history_and_tools() -> None:
    request = read()

    assert (request.model, request.streaming, request.turn) == ("gpt-5.5", True, 1)
    assert request.prompt == "<cwd>/w</cwd>\nWrite hello.txt."
    assert request.schema == SCHEMA
    assert [(tool.name, tool.freeform, tool.namespace) for tool in request.tools] == [
        ("exec_command", False, ""),
        ("apply_patch", True, ""),
        ("post_note", False, "mcp__notes"),
    ]
    assert request.tools[0].parameters.required == ("cmd",)


def test_tools_that_ride_in_the_input_are_read() -> None:
    exec_tool = {"type": "custom", "name": "exec"}
    request = read(tools=[], input=[{"type": "additional_tools", "tools": [exec_tool]}, *REQUEST["input"]])

    assert [(tool.name, tool.freeform) for tool in request.tools] == [("exec", True)]
    assert request.turn == 1


def test_input_may_be_plain_text() -> None:
    request = read(input="Hi.", instructions="Be brief.", tools=[], text=None)

    assert (request.prompt, request.turn, request.tools, request.schema) == ("Hi.", 0, (), None)
    assert "Be brief." in request.text


def test_a_whole_answer_has_text_calls_and_usage() -> None:
    response = openai_responses.whole(ANSWERED)

    assert response["status"] == "completed"
    assert [(item["type"], item.get("name")) for item in response["output"]] == [
        ("message", None),
        ("custom_tool_call", "apply_patch"),
        ("function_call", "exec_command"),
        ("function_call", "post_note"),
    ]
    assert [item.get("namespace") for item in response["output"]] == [None, None, None, "mcp__notes"]
    assert response["output"][1]["input"] == "*** Begin Patch"
    assert json.loads(response["output"][2]["arguments"]) == {"cmd": "ls"}
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 1000}
    assert response["usage"]["total_tokens"] == 1250


def test_a_stream_brings_every_item_and_ends_with_the_whole_answer() -> None:
    done = [data["item"] for data in events() if data["type"] == "response.output_item.done"]

    assert done == openai_responses.whole(ANSWERED)["output"]
    assert events()[0]["type"] == "response.created"
    assert events()[-1]["type"] == "response.completed"
    assert events()[-1]["response"] == openai_responses.whole(ANSWERED)
    assert [data["sequence_number"] for data in events()] == list(range(len(events())))


def test_the_text_of_a_stream_comes_in_pieces() -> None:
    deltas = [data["delta"] for data in events() if data["type"] == "response.output_text.delta"]

    assert len(deltas) > 1
    assert "".join(deltas) == "I will write."


def test_an_error_has_the_code_of_its_status() -> None:
    failure = openai_responses.failure(Fail(status=429, message="slow down"), 0)

    assert failure.body["error"]["code"] == "rate_limit_exceeded"
    assert failure.body["error"]["message"] == "slow down"


def test_a_limit_with_a_reset_is_a_usage_limit() -> None:
    error = openai_responses.failure(Fail(status=429, reset_in=60), 1_800_000_000).body["error"]

    assert error["type"] == "usage_limit_reached"
    assert (error["resets_at"], error["resets_in_seconds"]) == (1_800_000_060, 60)
