"""Whatever comes on the line, the server answers or wants nothing, and goes on."""

import json
import random
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo

from iterdev.mcp.server import Call, Server
from iterdev.mcp.tools import Text, ToolAnswer
from iterdev.surfaces.mcp.server import offered
from iterdev.surfaces.mcp.stdio import TOO_LONG, Connection, lines_of
from iterdev.surfaces.mcp.tools import TOOLS, Status

META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }
}
METHODS = ("initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "server/discover")
TASK_METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
PARTS = (None, 0, -1, 1e308, True, "", "x", "\u0000", "nope", [], [[]], {}, {"a": {"b": []}}, "run", META["_meta"])
NAMES = (
    "name",
    "arguments",
    "_meta",
    "taskId",
    "inputResponses",
    "protocolVersion",
    "capabilities",
    "requestId",
    "uri",
)
PING = b'{"jsonrpc": "2.0", "id": "last", "method": "ping"}'


def exchanged(folder: Path, *lines: bytes, server: Server | None = None) -> list[dict[str, object]]:
    """What a server says to these lines until it has answered them all; the answer to `PING` comes last."""
    said: list[bytes] = []

    async def write(message: bytes) -> None:
        said.append(message)

    async def talk() -> None:
        send, receive = anyio.create_memory_object_stream[bytes](len(lines))
        connection = Connection(write)
        async with send, receive, anyio.create_task_group() as group:
            group.start_soon(connection.serve, server or offered(folder, connection), receive)
            with anyio.fail_after(60):
                for line in lines:
                    await send.send(line)
                await until(lambda: not send.statistics().current_buffer_used and not connection._unanswered)
                await send.send(PING)
                await until(lambda: any(b'"id":"last"' in one for one in said))
            await send.aclose()

    anyio.run(talk)
    assert all(one.endswith(b"\n") and one.count(b"\n") == 1 for one in said)
    return [json.loads(one) for one in said]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing is told of it
        await anyio.sleep(0.01)


def asked(method: str, number: object = 1, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def malformed(count: int) -> Iterator[bytes]:
    """Messages that are wrong in many ways, the same ones in every run."""
    chance = random.Random(14)
    for number in range(count):
        method = chance.choice([*METHODS, *TASK_METHODS, "notifications/cancelled", "x", ""])
        params = {name: chance.choice(PARTS) for name in chance.sample(NAMES, chance.randrange(5))}
        message = {"jsonrpc": "2.0", "id": chance.choice([number, *PARTS]), "method": method, "params": params}
        for name in chance.sample(list(message), chance.randrange(3)):
            message[name] = chance.choice(PARTS)
        whole = json.dumps(message).encode()
        match number % 5:
            case 0:
                yield whole[: chance.randrange(1, len(whole))]
            case 1:
                place = chance.randrange(len(whole))
                yield whole[:place] + chance.randbytes(3).replace(b"\n", b"") + whole[place:]
            case _:
                yield whole


def test_ten_thousand_malformed_messages_do_not_end_the_server(tmp_path: Path) -> None:
    lines = list(malformed(10_000))

    said = exchanged(tmp_path, *lines)

    assert {one["jsonrpc"] for one in said} == {"2.0"}
    assert any("result" in one and one["id"] == "last" for one in said)
    assert [one for one in said if "a defect of iterdev" in str(one)] == []


def test_a_request_of_an_unknown_revision_is_told_the_known_ones(tmp_path: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2027-01-01", "io.modelcontextprotocol/clientCapabilities": {}}

    said, _ = exchanged(tmp_path, asked("server/discover", _meta=meta))

    assert said["error"]["code"] == -32022
    assert said["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


def test_a_client_without_the_tasks_extension_gets_no_task(tmp_path: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}

    said, _ = exchanged(tmp_path, asked("tasks/get", taskId="x", _meta=meta))

    assert said["error"]["code"] == -32021


def test_a_task_that_is_not_known_is_an_error_of_the_request(repo: Repo) -> None:
    said, _ = exchanged(repo.path, asked("tasks/get", taskId="ids-none", **META))

    assert said["error"]["code"] == -32602


@pytest.mark.parametrize("offered_revision", ["2025-06-18", "2025-11-25"])
def test_the_revision_that_a_client_offers_is_taken(tmp_path: Path, offered_revision: str) -> None:
    params = {"protocolVersion": offered_revision, "capabilities": {"roots": {}}, "clientInfo": {"name": "x"}}

    said, _ = exchanged(tmp_path, asked("initialize", **params))

    assert said["result"]["protocolVersion"] == offered_revision
    assert "resultType" not in said["result"]


def test_outside_of_a_repository_a_tool_says_so(tmp_path: Path) -> None:
    said = exchanged(tmp_path, asked("tools/call", name="sessions", arguments={}))

    (answer,) = (one["result"] for one in said if one["id"] == 1)
    assert (answer["isError"], "is not in a git repository" in str(answer)) == (True, True), answer


def test_a_cancelled_request_gets_no_answer(tmp_path: Path) -> None:
    async def use(_: object, __: Call) -> ToolAnswer:
        await anyio.sleep_forever()
        raise AssertionError

    waiting = asked("tools/call", 7, name="wait", arguments={"seconds": 300})
    cancelled = b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}'

    said = exchanged(tmp_path, waiting, cancelled, server=Server(tools=TOOLS, use=use))

    assert [one["id"] for one in said] == ["last"]


def test_a_request_is_answered_also_if_nothing_follows_it(repo: Repo) -> None:
    line = asked("tools/call", name="sessions", arguments={}).decode()

    done = repo.iterdev("mcp", stdin=f"{line}\n{line}")

    assert (done.returncode, done.stdout.count('"isError":false')) == (0, 2), done


def test_requests_with_the_same_id_are_all_answered_before_the_end() -> None:
    said: list[bytes] = []

    async def write(message: bytes) -> None:
        said.append(message)

    async def use(given: Status, _: Call) -> ToolAnswer:
        if given.session == "first":
            await until(lambda: bool(said))
            await anyio.sleep(0.1)  # The server looks several times meanwhile whether all are answered.
        return Text(text=given.session)

    async def talk() -> None:
        send, receive = anyio.create_memory_object_stream[bytes](2)
        async with send, receive:
            for name in ("first", "second"):
                await send.send(asked("tools/call", 7, name="status", arguments={"session": name}))
            await send.aclose()
            await Connection(write).serve(Server(tools=TOOLS, use=use), receive)

    anyio.run(talk)

    assert [name in one for name, one in zip((b"second", b"first"), said, strict=True)] == [True, True]


def test_waiting_without_a_session_is_an_answer_of_the_tool(repo: Repo) -> None:
    said, _ = exchanged(repo.path, asked("tools/call", name="wait", arguments={}))

    assert said["result"]["isError"] is True
    assert "There is no session in" in str(said)


def test_lines_are_read_in_any_pieces_and_too_long_ones_are_left_out() -> None:
    text = b"a\n\n  \n" + b"b" * 30 + b"\ncc\n" + b"d" * 11

    for size in (1, 2, 7, 100):
        stream = BytesIO(text)
        lines = list(lines_of(lambda _, stream=stream, size=size: stream.read(size), 10))
        assert lines[:3] == [b"a", TOO_LONG, b"cc"]
