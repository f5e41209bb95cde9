"""The real Codex against the scripted model of the package, with processes of the real supervisor."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
    Reply,
    Said,
    Spent,
)
from iterdev.agents.scripted.script import Fail, Rule, Script, Step, Usage
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


def test_an_answer_without_an_object_is_no_result(codex: Callable[..., Play]) -> None:
    found = failure(codex(Step(say="I would rather not.")).turns("Do it"))

    assert found.kind is FailureKind.silent


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another process makes it true
            await anyio.sleep(0.01)
