"""The tool server beside the model: a client finds and calls its one tool."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from tests.conformance.default_script import default_script

from iterdev.conformance.model.server import ModelServer, serving
from iterdev.conformance.model.tool_server import Note


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serving(default_script()) as server:
        yield server


def sent(model: ModelServer, message: object = None, *, verb: str = "POST", **headers: str) -> tuple[int, dict]:
    address = urlsplit(model.tools_url)
    connection = HTTPConnection(address.netloc, timeout=30)
    try:
        connection.request(verb, address.path, json.dumps(message), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def called(model: ModelServer, method: str, **params: object) -> dict:
    _, answer = sent(model, {"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    assert answer["id"] == 7
    return answer


def test_a_client_finds_the_tool(model: ModelServer) -> None:
    greeting = called(model, "initialize", protocolVersion="2025-06-18")["result"]
    tools = called(model, "tools/list")["result"]["tools"]

    assert greeting["protocolVersion"] == "2025-06-18"
    assert [tool["name"] for tool in tools] == ["note"]


def test_what_the_tool_is_given_is_noted_with_the_token(model: ModelServer) -> None:
    params = {"name": "note", "arguments": {"text": "plum"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    status, answer = sent(model, call, Authorization="Bearer mine")

    assert (status, answer["result"]["content"][0]["text"]) == (200, '{"noted":"plum"}')
    assert model.notes == [Note(text="plum", token="mine")]


def test_another_tool_notes_nothing(model: ModelServer) -> None:
    called(model, "tools/call", name="other", arguments={"text": "plum"})

    assert model.notes == []


def test_a_method_that_is_not_known_is_refused_with_the_code_for_it(model: ModelServer) -> None:
    assert called(model, "server/discover")["error"]["code"] == -32601


def test_a_notification_is_accepted_and_a_stream_from_the_server_is_not_offered(model: ModelServer) -> None:
    assert sent(model, {"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202
    assert sent(model, verb="GET")[0] == 405
