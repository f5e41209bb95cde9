"""The real Codex against the scripted model of the package, with processes of the real supervisor."""

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from tests.clis import alive, find_cli

from iterdev.agents.codex.agent import CodexAgent
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Permissions,
    Reply,
    Said,
    Spent,
    ToolServer,
)
from iterdev.agents.scripted.script import Call, Fail, Rule, Script, Step, Usage
from iterdev.conformance.agent_setup import agent_in_home, variables
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.core import results
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.types import TaskId
from iterdev.host.processes.spawn import Supervisor
from iterdev.teams.development.results import Development
from iterdev.teams.development.team import DEVELOPMENT

PATIENCE = 60.0
DONE: dict[str, object] = {"id": "DEV-001", "status": "completed", "findings": "done", "error": None, "wisdom": None}
HASTY = 'model_providers.hasty={{name="h",base_url="{url}/v1",env_key="CODEX_API_KEY",{retries}}}'


def script(*turns: Step) -> Script:
    return Script(rules=(Rule(steps=turns, match="."),))


@pytest.fixture
def work(assignment: Assignment, tmp_path: Path) -> Iterator[Assignment]:
    session = f"ids-codex-{os.getpid()}-{time.monotonic_ns()}"
    subprocess.run(["git", "init", "--quiet", assignment.workspace], check=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    own = {"TMPDIR": str(tmp_path / "tmp")}
    yield replace(
        assignment,
        session=session,
        schema=DEVELOPMENT.result_schema("developer"),
        environment={**assignment.environment, **own},
    )
    assert alive(f"ITERDEV_SESSION={session}\0") == []


class Play:
    """One Codex in a home of its own that asks one scripted model."""

    def __init__(self, work: Assignment, model: ModelServer, home: Path) -> None:
        self.model = model
        self.work = replace(work, environment={**work.environment, **variables("codex", model.url)})
        made = agent_in_home("codex", home)
        assert isinstance(made, CodexAgent)
        self.agent = replace(made, program=str(find_cli("codex")))
        self.events: list[AgentEvent] = []

    def hasty(self, url: str = "") -> "Play":
        """Asks through a provider that is not tried again, to save the time."""
        retries = "request_max_retries=0,stream_max_retries=1"
        provider = HASTY.format(url=url or self.model.url, retries=retries)
        self.agent = replace(self.agent, args=("-c", provider, "-c", 'model_provider="hasty"'))
        return self

    def turns(self, *prompts: str, work: Assignment | None = None) -> list[Reply]:
        async def converse() -> list[Reply]:
            async with (
                Supervisor() as supervisor,
                self.agent.open(work or self.work, spawn=supervisor.spawn, watch=self.events.append) as conversation,
            ):
                with anyio.fail_after(PATIENCE):
                    return [await conversation.send(prompt) for prompt in prompts]

        return anyio.run(converse)

    def seen(self, kind: type[AgentEvent]) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def codex(work: Assignment, tmp_path: Path) -> Iterator[Callable[..., Play]]:
    """Makes a Codex whose model plays the given turns."""
    with ExitStack() as servers:
        yield lambda *turns: Play(work, servers.enter_context(serving(script(*turns))), tmp_path / "home")


def answers(replies: list[Reply]) -> list[Answer]:
    found = [reply for reply in replies if isinstance(reply, Answer)]
    assert found == replies
    return found


def failure(replies: list[Reply]) -> AgentFailure:
    (reply,) = replies
    assert isinstance(reply, AgentFailure)
    return reply


def test_a_file_is_written_and_the_answer_of_the_schema_decodes(codex: Callable[..., Play]) -> None:
    final = DONE | {"discoveries": [{"type": "pattern", "data": {"as_json": '{"name": "till"}'}}]}
    play = codex(
        Step(say="I will write it.", write={"hello.txt": "hello\n"}, usage=Usage(input=1200, output=50)),
        Step(result=final, usage=Usage(input=1300, output=30)),
    )

    (answer,) = answers(play.turns("Write hello.txt"))

    result = results.decode(answer.body, kind=Development, task=TaskId("DEV-001"))
    assert Path(play.work.workspace, "hello.txt").read_text() == "hello\n"
    assert [(found.type, found.data) for found in result.discoveries] == [("pattern", {"name": "till"})]
    assert answer.usage == results.Usage(input_tokens=2500, output_tokens=80)
    assert play.seen(Spent) == [Spent(answer.usage)]
    assert [Said("I will write it."), Said("add hello.txt")] == play.seen(Said)[:2]


def test_turns_are_one_conversation_that_can_be_taken_up_later_and_each_counts_for_itself(
    codex: Callable[..., Play],
) -> None:
    play = codex(*(Step(result=DONE, usage=Usage(input=size, output=1)) for size in (100, 200, 400)))

    first, second = answers(play.turns("Remember the plum.", "And now?"))
    (third,) = answers(play.turns("And then?", work=replace(play.work, conversation=second.conversation)))

    assert [reply.usage.input_tokens for reply in (first, second, third)] == [100, 200, 400]
    assert "Remember the plum." in play.model.requests[-1].body


def test_a_role_that_may_not_write_is_denied_and_continues(codex: Callable[..., Play]) -> None:
    play = codex(Step(write={"hello.txt": "hello\n"}), Step(result=DONE))

    (answer,) = answers(play.turns("Write", work=replace(play.work, permissions=Permissions(write=False))))

    assert b"completed" in answer.body
    assert not Path(play.work.workspace, "hello.txt").exists()
    assert play.seen(PermissionAsked) == [PermissionAsked("patch rejected: writing is blocked by read-only sandbox")]


def test_a_command_can_write_neither_outside_of_the_workspace_nor_see_the_key(codex: Callable[..., Play]) -> None:
    play = codex(Step(run="env > seen.txt; touch ../outside.txt"), Step(result=DONE))

    answers(play.turns("Try it"))

    workspace = Path(play.work.workspace)
    assert not (workspace.parent / "outside.txt").exists()
    assert "PATH=" in (workspace / "seen.txt").read_text()
    assert "CODEX_API_KEY" not in (workspace / "seen.txt").read_text()


def test_the_user_s_other_settings_neither_change_a_run_nor_are_changed_by_it(
    codex: Callable[..., Play], tmp_path: Path
) -> None:
    hooks = '[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.hooks]]\ntype = "command"\ncommand = "touch {}"\n'
    server = f'[mcp_servers.own]\ncommand = "touch"\nargs = ["{tmp_path}/server-ran"]\n'
    settings = 'developer_instructions = "Speak like a pirate."\n' + server + hooks.format(tmp_path / "hook-ran")
    (tmp_path / "home" / "config.toml").write_text(settings)
    play = codex(Step(result=DONE))

    answers(play.turns("Do it"))

    assert "pirate" not in play.model.requests[0].body
    assert not list(tmp_path.glob("*-ran"))
    assert (tmp_path / "home" / "config.toml").read_text() == settings


@pytest.mark.parametrize(
    ("fail", "kind"),
    [
        (Fail(status=401), FailureKind.not_logged_in),
        (Fail(status=429), FailureKind.limited),
        (Fail(status=500), FailureKind.overloaded),
        (Fail(status=503), FailureKind.overloaded),
        (Fail(status=400, code="context_length_exceeded"), FailureKind.too_long),
    ],
)
def test_a_refusal_of_the_provider_has_its_kind(codex: Callable[..., Play], fail: Fail, kind: FailureKind) -> None:
    play = codex(Step(fail=fail)).hasty()

    found = failure(play.turns("Do it"))

    assert found.kind is kind, found.message


def test_a_usage_limit_has_the_time_at_which_it_is_lifted(codex: Callable[..., Play]) -> None:
    play = codex(Step(fail=Fail(status=429, reset_in=3600)))
    earliest = time.time() + 3600

    found = failure(play.turns("Do it"))

    assert found.kind is FailureKind.limited
    assert found.reset_at is not None
    # Codex tells the minute only.
    assert int(earliest) <= found.reset_at <= time.time() + 3600 + 60


def test_a_provider_that_refuses_connections_is_not_waited_for(codex: Callable[..., Play]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    play = codex(Step(result=DONE)).hasty(f"http://127.0.0.1:{port}")

    found = failure(play.turns("Do it"))

    assert found.kind is FailureKind.overloaded, found.message


def test_a_stream_that_breaks_off_is_the_provider_s_failure(codex: Callable[..., Play]) -> None:
    found = failure(codex(Step(result=DONE, cut=True)).hasty().turns("Do it"))

    assert found.kind is FailureKind.overloaded, found.message


def test_a_turn_with_a_silent_model_ends_when_it_is_cancelled(codex: Callable[..., Play]) -> None:
    play = codex(Step(hang=True))

    async def converse() -> bool:
        async with (
            Supervisor() as supervisor,
            play.agent.open(play.work, spawn=supervisor.spawn, watch=play.events.append) as conversation,
            anyio.create_task_group() as group,
        ):
            group.start_soon(conversation.send, "Do it")
            await until(lambda: bool(play.model.requests))
            busy = bool(alive(f"ITERDEV_SESSION={play.work.session}\0"))
            group.cancel_scope.cancel()
        return busy

    assert anyio.run(converse)


def test_a_turn_is_interrupted_by_the_next_one_which_knows_what_was_said(codex: Callable[..., Play]) -> None:
    play = codex(Step(hang=True))
    replies: list[Reply] = []

    async def converse() -> None:
        async with (
            Supervisor() as supervisor,
            play.agent.open(play.work, spawn=supervisor.spawn, watch=play.events.append) as conversation,
            anyio.create_task_group() as group,
        ):

            async def send(prompt: str) -> None:
                replies.append(await conversation.send(prompt))

            group.start_soon(send, "Remember the plum.")
            await until(lambda: bool(play.model.requests))
            group.start_soon(send, "Think of pears.")
            await until(lambda: "pears" in play.model.requests[-1].body)
            group.cancel_scope.cancel()

    anyio.run(converse)

    failures = [reply.message for reply in replies if isinstance(reply, AgentFailure)]
    assert failures == ['The agent "codex" was interrupted']
    assert "Remember the plum." in play.model.requests[-1].body


def test_a_prompt_of_300_kilobytes_arrives_whole(codex: Callable[..., Play]) -> None:
    play = codex(Step(result=DONE))

    answers(play.turns("plum " * 60_000 + "the end"))

    assert play.model.requests[0].body.count("plum ") == 60_000
    assert "the end" in play.model.requests[0].body


def test_an_answer_without_an_object_is_no_result(codex: Callable[..., Play]) -> None:
    found = failure(codex(Step(say="I would rather not.")).turns("Do it"))

    assert found.kind is FailureKind.silent


def test_the_team_s_tools_are_called_with_the_token(codex: Callable[..., Play]) -> None:
    play = codex(Step(call=Call(tool="post_note", server="iterdev", arguments={"text": "plum"})), Step(result=DONE))

    with tool_server() as (url, calls):
        tools = ToolServer(url=url, token="the-token")
        answers(play.turns("Note it", work=replace(play.work, tools=tools)))

    assert calls == [("Bearer the-token", {"text": "plum"})]
    assert Said("iterdev: post_note") in play.events


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another process makes it true
            await anyio.sleep(0.01)


Calls = list[tuple[str | None, object]]


class Tools(BaseHTTPRequestHandler):
    """The least that is an MCP server over HTTP."""

    protocol_version = "HTTP/1.1"
    calls: Calls

    def do_GET(self) -> None:
        self._reply(405, b"")

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            return self._reply(202, b"")
        result = self._result(message["method"], message.get("params", {}))
        return self._reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def _result(self, method: str, params: dict[str, object]) -> object:
        match method:
            case "initialize":
                about = {"serverInfo": {"name": "tools", "version": "1"}, "capabilities": {"tools": {}}}
                return about | {"protocolVersion": params["protocolVersion"]}
            case "tools/list":
                return {"tools": [{"name": "post_note", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                self.calls.append((self.headers["Authorization"], params["arguments"]))
                return {"content": [{"type": "text", "text": "noted"}]}
            case _:
                return {}

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keeps quiet."""


@contextmanager
def tool_server() -> Iterator[tuple[str, Calls]]:
    calls: Calls = []
    handler = type("Handler", (Tools,), {"calls": calls})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        loop = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        loop.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp", calls
        finally:
            server.shutdown()
            loop.join()
