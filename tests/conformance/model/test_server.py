"""The server: what goes over the wire, what is remembered, and that nothing of it is left."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlsplit

import pytest
from tests.conformance.default_script import default_script

from iterdev.agents.scripted.script import Fail, Rule, Script, Step
from iterdev.conformance.model.server import ModelServer, serving

PATIENCE = 30.0
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}


def scenario(*turns: Step) -> Script:
    return Script(rules=(Rule(name="test", match="Do it", steps=turns),))


def chat(*messages: str, stream: bool = False, tools: bool = True, **more: object) -> dict[str, object]:
    """A conversation in which user and assistant take turns."""
    roles = ("user", "assistant") * len(messages)
    message = [{"role": role, "content": text} for role, text in zip(roles, messages, strict=False)]
    return {"model": "m", "messages": message, "stream": stream, "tools": [TOOL] if tools else [], **more}


@contextmanager
def connected(model: ModelServer) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(urlsplit(model.url).netloc, timeout=PATIENCE)
    try:
        yield connection
    finally:
        connection.close()


def post(model: ModelServer, body: object, path: str = "/v1/chat/completions") -> tuple[HTTPResponse, bytes]:
    with connected(model) as connection:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response, response.read()


def said(model: ModelServer, body: object) -> str:
    _, answer = post(model, body)
    return json.loads(answer)["choices"][0]["message"]["content"]


def get(model: ModelServer, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    with connected(model) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()


def eventually(look: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_turns_are_played_by_the_history_of_the_request() -> None:
    with serving(scenario(Step(say="one"), Step(say="two"))) as model:
        assert said(model, chat("Do it", "one", "Go on")) == "two"
        assert said(model, chat("Do it")) == "one"


def test_a_stream_is_sent_as_events() -> None:
    with serving(scenario(Step(say="hello"))) as model:
        response, body = post(model, chat("Do it", stream=True))

    assert response.getheader("Content-Type") == "text/event-stream; charset=utf-8"
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/messages?beta=true", {"messages": [{"role": "user", "content": "Do it"}]}, "anthropic"),
        ("/v1/responses", {"input": "Do it"}, "responses"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Do it"}]}, "chat"),
        ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Do it"}]}]}, "gemini"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": [{"parts": [{"text": "Do it"}]}]}, "gemini"),
    ],
)
def test_every_dialect_has_its_path(path: str, body: dict[str, object], named: str) -> None:
    with serving(scenario(Step(say="hello"))) as model:
        response, _ = post(model, body | {"model": "m"}, path)

    assert response.status == 200
    assert [request.dialect for request in model.requests] == [named]


def test_requests_are_recorded() -> None:
    prompt = "# DEV-001: Add it\n\nYou are the developer of a development team."

    with serving(default_script()) as model:
        post(model, chat(prompt))
        post(model, chat(prompt, "written", "Go on"))

    assert [(request.rule, request.task, request.turn, request.status) for request in model.requests] == [
        ("developer", "DEV-001", 0, 200),
        ("developer", "DEV-001", 1, 200),
    ]
    assert model.requests[0].path == "/v1/chat/completions"
    assert json.loads(model.requests[0].body) == chat(prompt)


def test_a_request_without_tools_is_a_side_call_and_gets_a_stock_answer() -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": {"properties": {"title": {"type": "string"}}}}}

    with serving(scenario(Step(fail=Fail(status=401)))) as model:
        answer = said(model, chat("Do it", tools=False, response_format=schema))

    assert json.loads(answer) == {"title": "scripted"}
    assert [request.is_side_call for request in model.requests] == [True]


def test_a_prompt_that_no_rule_is_for_is_refused_and_quoted() -> None:
    with serving(scenario(Step(say="hello"))) as model:
        response, body = post(model, chat("Something else"))

    assert response.status == 400
    assert b"Something else" in body


def test_a_failure_is_over_after_so_many_times() -> None:
    with serving(scenario(Step(fail=Fail(status=429, times=2), say="at last"))) as model:
        statuses = [post(model, chat("Do it"))[0].status for _ in range(3)]

    assert statuses == [429, 429, 200]
    assert [request.status for request in model.requests] == statuses


def test_a_limit_is_lifted_at_the_reported_time() -> None:
    with serving(scenario(Step(fail=Fail(status=429, reset_in=0.5), say="at last"))) as model:
        first, _ = post(model, chat("Do it"))
        eventually(lambda: post(model, chat("Do it"))[0].status == 200)

    assert first.status == 429
    assert float(first.getheader("retry-after", "")) == pytest.approx(0.5)
    refused = [request.time for request in model.requests if request.status == 429]
    assert model.requests[-1].time >= refused[0] + 0.5


def test_a_failure_that_is_not_limited_never_ends() -> None:
    with serving(scenario(Step(fail=Fail(status=500)))) as model:
        assert {post(model, chat("Do it"))[0].status for _ in range(5)} == {500}


@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_answer_begins_and_breaks_off(*, stream: bool) -> None:
    with serving(scenario(Step(say="a rather long answer", cut=True))) as model, connected(model) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it", stream=stream)))
        response = connection.getresponse()
        with pytest.raises((HTTPException, ConnectionError)):
            response.read()

    assert response.status == 200


@pytest.mark.parametrize("stream", [True, False])
def test_a_silent_model_ends_with_its_server_and_leaves_no_thread(*, stream: bool) -> None:
    before = set(threading.enumerate())

    with serving(scenario(Step(hang=True))) as model, connected(model) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it", stream=stream)))
        eventually(lambda: model.requests)

    assert set(threading.enumerate()) == before


def test_a_delayed_answer_does_not_hold_up_the_end() -> None:
    before = set(threading.enumerate())

    with serving(scenario(Step(say="late", sleep=600))) as model, connected(model) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it")))
        eventually(lambda: model.requests)

    assert set(threading.enumerate()) == before


def test_a_client_that_leaves_is_no_failure_for_the_next(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(scenario(Step(hang=True))) as model:
        with connected(model) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it", stream=True)))
            eventually(lambda: model.requests)
        assert said(model, chat("Do it", tools=False)) == "scripted"

    assert capfd.readouterr() == ("", "")


def test_a_body_with_wrong_chunks_is_rejected() -> None:
    with serving(scenario(Step(say="hello"))) as model, connected(model) as connection:
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders(b"not a size\r\n")
        assert connection.getresponse().status == 400


def test_a_connection_may_be_used_again() -> None:
    with serving(scenario(Step(say="hello"))) as model, connected(model) as connection:
        for stream in (True, False, True):
            connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it", stream=stream)))
            assert b"he" in connection.getresponse().read()

    assert len(model.requests) == 3


def test_a_body_may_come_in_chunks() -> None:
    data = json.dumps(chat("Do it")).encode()

    with serving(scenario(Step(say="hello"))) as model, connected(model) as connection:
        connection.request("POST", "/v1/chat/completions", iter((data[:20], data[20:])), encode_chunked=True)
        assert connection.getresponse().status == 200

    assert json.loads(model.requests[0].body) == chat("Do it")


def test_many_clients_are_served_at_once() -> None:
    with serving(scenario(Step(hang=True))) as model, ExitStack() as clients:
        for _ in range(8):
            connection = clients.enter_context(connected(model))
            connection.request("POST", "/v1/chat/completions", json.dumps(chat("Do it")))

        eventually(lambda: len(model.requests) == 8)


def test_other_paths_have_plain_answers() -> None:
    with serving(scenario(Step(say="hello"))) as model:
        assert get(model, "/v1/chat/completions", Upgrade="websocket", Connection="Upgrade")[0] == 426
        assert get(model, "/", method="HEAD") == (200, b"")
        assert json.loads(get(model, "/v1/models")[1])["data"][0]["id"] == "scripted"
        assert json.loads(post(model, {}, "/v1/messages/count_tokens")[1]) == {"input_tokens": 100}
        assert json.loads(post(model, {}, "/v1beta/models/m:countTokens")[1]) == {"totalTokens": 100}
        assert get(model, "/elsewhere")[0] == 404
        assert post(model, {}, "/elsewhere")[0].status == 404

    assert model.requests == []


def test_a_request_that_cannot_be_read_is_refused_with_the_reason() -> None:
    with serving(scenario(Step(say="hello"))) as model:
        response, body = post(model, {"model": "m", "messages": "none"})

    assert response.status == 400
    assert b"messages" in body


def test_only_this_machine_can_ask() -> None:
    with serving(scenario(Step(say="hello"))) as model:
        assert urlsplit(model.url).hostname == "127.0.0.1"
