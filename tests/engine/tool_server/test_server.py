"""Who is let in to the tools, and what is answered to those who are not, or who do not speak the protocol."""

import json
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from tests.engine.conftest import Office, client_of

from iterdev.agents.contract import ToolServer
from iterdev.core.collaboration.tool_schemas import TOOLS
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.mcp import messages
from iterdev.mcp import server as mcp
from iterdev.mcp.tools import ToolAnswer, as_json


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Visitor:
    """Somebody who sends whatever they like to the address of the tools."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server

    def sends(self, body: object = PING, *, method: str = "POST", path: str = "/mcp", **headers: str) -> Reply:
        given = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"} | headers
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", urlsplit(self.server.url).port, timeout=30)
        try:
            connection.request(method, path, data, {name: value for name, value in given.items() if value})
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def asks(self, method: str, params: object = None) -> dict[str, object]:
        message = {"jsonrpc": "2.0", "id": "a", "method": method} | ({} if params is None else {"params": params})
        return answer(self.sends(message))


def answer(response: Reply) -> dict[str, object]:
    assert response.status == 200
    document = json.loads(response.body)
    return dict(document)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def attempt(office: Office, portal: BlockingPortal) -> Iterator[AttemptAccess]:
    """The attempt at DEV-001, which runs as long as the test."""
    with portal.wrap_async_context_manager(office.server.opened()), office.server.access(office.job()) as caller:
        yield caller


@pytest.fixture
def agent(attempt: AttemptAccess) -> Visitor:
    return Visitor(attempt.server)


def test_the_token_of_the_attempt_opens_the_door(agent: Visitor) -> None:
    assert answer(agent.sends()) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer wrong", "Bearer xitd_" + "A" * 43, "Basic {token}", "{token}", "Bearer {token}x"],
)
def test_without_the_token_nobody_is_let_in(agent: Visitor, authorization: str) -> None:
    response = agent.sends(Authorization=authorization.format(token=agent.server.token))

    assert response.status == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_is_worth_nothing_after_its_attempt(office: Office, portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(office.server.opened()):
        with office.server.access(office.job()) as ended:
            first = Visitor(ended.server).sends().status
        with office.server.access(office.job()) as current:
            statuses = [Visitor(caller.server).sends().status for caller in (ended, current)]

    assert (first, statuses) == (200, [401, 200])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "localhost:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
    ],
)
def test_a_web_page_of_another_place_is_turned_away(agent: Visitor, headers: dict[str, str], status: int) -> None:
    port = urlsplit(agent.server.url).port

    assert agent.sends(**{name: value.format(port=port) for name, value in headers.items()}).status == status


def test_there_is_one_path_and_one_method(agent: Visitor) -> None:
    assert agent.sends(path="/").status == 404
    assert agent.sends(path="/.well-known/oauth-protected-resource").status == 404
    assert agent.sends(path="/mcp?a=b").status == 200
    assert agent.sends(b"", method="GET").status == 405
    assert agent.sends(b"", method="DELETE").status == 405


def test_a_request_beyond_all_measure_is_refused(agent: Visitor) -> None:
    big = json.dumps(PING | {"params": {"text": "x" * 5_000_000}}).encode()

    assert refused(lambda: agent.sends(big).status) == 413
    assert agent.sends().status == 200


def refused(send: Callable[[], int]) -> int:
    """The status; a server that has heard enough may hang up before everything is sent."""
    try:
        return send()
    except (BrokenPipeError, ConnectionResetError):
        return 413


def test_what_is_no_http_is_answered_and_ended(agent: Visitor) -> None:
    async def shout() -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", urlsplit(agent.server.url).port or 0) as stream:
            await stream.send(b"\x16\x03\x01 hello\r\n\r\n")
            return await stream.receive()

    assert anyio.run(shout).startswith(b"HTTP/1.1 400")
    assert agent.sends().status == 200


def test_many_requests_may_come_over_one_connection(agent: Visitor) -> None:
    port = urlsplit(agent.server.url).port
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {agent.server.token}"}
    statuses, sockets = [], set()
    for _ in range(3):
        connection.request("POST", "/mcp", json.dumps(PING), headers)
        response = connection.getresponse()
        statuses.append(response.status)
        response.read()
        sockets.add(connection.sock)
    connection.close()

    assert statuses == [200, 200, 200]
    assert len(sockets) == 1
    assert None not in sockets


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(agent: Visitor) -> None:
    async def leave() -> None:
        async with await anyio.connect_tcp("127.0.0.1", urlsplit(agent.server.url).port or 0) as stream:
            await stream.send(b"POST /mcp HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")

    anyio.run(leave)

    assert agent.sends().status == 200


def test_a_message_that_wants_no_answer_gets_none(agent: Visitor) -> None:
    notification = agent.sends({"jsonrpc": "2.0", "method": "notifications/initialized"})
    response = agent.sends({"jsonrpc": "2.0", "id": 1, "result": {}})

    assert (notification.status, response.status) == (202, 202)


@pytest.mark.parametrize(
    ("offered", "taken"),
    [
        *((known, known) for known in ("2024-11-05", "2025-06-18", "2025-11-25")),
        *(("2025-03-26", "2024-11-05"), ("2026-07-28", "2025-11-25"), ("9", "2025-11-25"), ("1", "2024-11-05")),
    ],
)
def test_the_newest_version_is_agreed_on_that_is_not_newer_than_the_one_offered(
    agent: Visitor, offered: str, taken: str
) -> None:
    about = agent.asks("initialize", {"protocolVersion": offered, "capabilities": {}, "clientInfo": {"name": "x"}})

    assert about["id"] == "a"
    assert about["result"]["protocolVersion"] == taken
    assert about["result"]["serverInfo"]["name"] == "iterdev"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resources/list", {}, -32601),
        ("server/discover", {}, -32601),
        ("initialize", {}, -32602),
        ("tools/call", {"name": "rm"}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", [], -32602),
    ],
)
def test_a_call_that_is_none_is_an_error_of_the_protocol(
    agent: Visitor, method: str, params: object, code: int
) -> None:
    assert agent.asks(method, params)["error"]["code"] == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"params": ' + b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
    ],
)
def test_what_is_no_message_is_an_error_of_the_protocol(agent: Visitor, body: bytes, code: int) -> None:
    response = agent.sends(body)

    assert response.status == 400
    assert json.loads(response.body)["error"]["code"] == code


@pytest.mark.parametrize("depth", [500, 900, 5_000])
def test_what_is_nested_too_deeply_is_a_mistake_of_the_agent(agent: Visitor, depth: int) -> None:
    data = b'{"a":' * depth + b"1" + b"}" * depth
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"team_msg","arguments":'

    response = agent.sends(head + b'{"operation":"log","data":' + data + b"}}}")

    assert response.status in {200, 400}
    assert agent.sends().status == 200


def test_the_sdk_s_client_is_refused_with_a_wrong_token(office: Office) -> None:
    async def knock() -> None:
        async with office.server.opened():
            with office.server.access(office.job()) as caller:
                wrong = ToolServer(url=caller.server.url, token="wrong")
                async with client_of(wrong):
                    raise AssertionError("it was let in")

    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(knock)

    assert caught.group_contains(MCPError)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": JSON},
    optional={
        "method": st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "x"]),
        "params": st.fixed_dictionaries(
            {"name": st.sampled_from(["team_msg", "board", "lock", "checkpoint", "x"]), "arguments": JSON}
        )
        | JSON,
    },
)


@given(body=st.binary() | MESSAGES.map(lambda message: json.dumps(message).encode()))
def test_whatever_is_sent_has_an_answer_or_wants_none(body: bytes) -> None:
    async def use(_: object, __: mcp.Call) -> ToolAnswer:
        return as_json({})

    async def read() -> bytes | None:
        try:
            return await mcp.answer(messages.read(body), mcp.Server(tools=TOOLS, use=use))
        except messages.InvalidMessage as error:
            return error.answer

    said = anyio.run(read)

    assert said is None or json.loads(said)["jsonrpc"] == "2.0"
