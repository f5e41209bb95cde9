"""Real coding agents that speak the protocol, each in a private home, with the scripted model only."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest
from tests.clis import alive, find_cli
from tests.conformance.default_script import default_script

from iterdev.agents.acp.agent import AcpAgent
from iterdev.agents.contract import (
    AgentEvent,
    Answer,
    Assignment,
    PermissionAsked,
    Permissions,
    Reply,
    Said,
    Spent,
)
from iterdev.conformance.agent_setup import agent_in_home, configure_agent
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.core.results import Usage
from iterdev.host.processes.spawn import Supervisor

LIMIT = 90.0

pytestmark = pytest.mark.parametrize("name", ["gemini", "qwen"])


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serving(default_script()) as server:
        yield server


@pytest.fixture
def agent(name: str, tmp_path: Path) -> AcpAgent:
    home = tmp_path / "home"
    home.mkdir()
    made = agent_in_home(name, home)
    assert isinstance(made, AcpAgent)
    return msgspec.structs.replace(made, command=(str(find_cli(name)), *made.command[1:]))


@pytest.fixture
def work(name: str, agent: AcpAgent, assignment: Assignment, model: ModelServer, tmp_path: Path) -> Assignment:
    (tmp_path / "tmp").mkdir()
    provider = configure_agent(model.url, name, Path(agent.home)) | {"TMPDIR": str(tmp_path / "tmp")}
    return msgspec.structs.replace(assignment, limit=LIMIT, environment={**assignment.environment, **provider})


def converse(agent: AcpAgent, work: Assignment, *prompts: str) -> tuple[list[Reply], list[AgentEvent]]:
    events: list[AgentEvent] = []

    async def turns() -> list[Reply]:
        async with (
            Supervisor() as supervisor,
            agent.open(work, spawn=supervisor.spawn, watch=events.append) as conversation,
        ):
            return [await conversation.send(prompt) for prompt in prompts]

    return anyio.run(turns), events


def test_it_writes_a_file_answers_and_continues_in_the_same_conversation(agent: AcpAgent, work: Assignment) -> None:
    replies, events = converse(agent, work, "Write hello.txt [[scenario:hello]]", "And now?")

    assert [type(reply) for reply in replies] == [Answer, Answer]
    assert [msgspec.json.decode(reply.body)["status"] for reply in replies] == ["done", "went on"]
    assert Path(work.workspace, "hello.txt").read_text() == "hello from the scripted model\n"
    assert Said("I will write the file.") in events
    spent = [Usage(input_tokens=2500, output_tokens=80), Usage(input_tokens=1400, output_tokens=10)]
    assert [reply.usage for reply in replies] == spent
    assert [event.usage for event in events if isinstance(event, Spent)] == spent
    assert not alive(f"ITERDEV_SESSION_DIR={work.session_dir}\0")


def test_a_command_that_the_role_may_not_run_is_denied_and_reported(agent: AcpAgent, work: Assignment) -> None:
    permissions = Permissions(write=True, shell=False)

    replies, events = converse(agent, msgspec.structs.replace(work, permissions=permissions), "[[scenario:shell]]")

    assert not Path(work.workspace, "ran.txt").exists()
    assert len([event for event in events if isinstance(event, PermissionAsked)]) == 1
    # A denial ends nothing: the model hears of it, and the turn goes on.
    assert isinstance(replies[0], Answer)
    assert not alive(f"ITERDEV_SESSION_DIR={work.session_dir}\0")
