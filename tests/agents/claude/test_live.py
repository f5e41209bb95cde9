"""The real Claude Code, with the scripted model of the package only."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from msgspec.structs import replace
from tests.clis import alive, find_cli
from tests.conformance.default_script import default_script

from iterdev.agents.claude.agent import ClaudeAgent
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Reply,
    Said,
    Spent,
)
from iterdev.conformance.agent_setup import agent_in_home, variables
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.host.processes.spawn import Supervisor
from iterdev.teams.development.team import DEVELOPMENT

MARK = "ITERDEV_TEST_MARK"
SCHEMA = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}}},
    "required": ["status", "files"],
}

Converse = Callable[..., tuple[list[Reply], list[AgentEvent]]]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with serving(default_script()) as server:
        yield server


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeAgent:
    made = agent_in_home("claude", tmp_path / "claude")
    assert isinstance(made, ClaudeAgent)
    return replace(made, program=str(find_cli("claude")))


@pytest.fixture
def work(assignment: Assignment, model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    environment = variables("claude", model.url) | {MARK: uuid4().hex}
    # Short, because claude keeps a socket there, whose path has 103 characters at most.
    environment["TMPDIR"] = str(tmp_path_factory.mktemp("t"))
    return replace(assignment, schema=SCHEMA, environment={**assignment.environment, **environment})


@pytest.fixture
def converse(claude: ClaudeAgent, work: Assignment) -> Iterator[Converse]:
    """Gives claude one turn per prompt; afterwards none of its processes is left."""

    def turns(*prompts: str, given: Assignment = work, wait: float = 60) -> tuple[list[Reply], list[AgentEvent]]:
        replies: list[Reply] = []
        events: list[AgentEvent] = []

        async def converse() -> None:
            async with (
                Supervisor() as host,
                claude.open(given, spawn=host.spawn, watch=events.append) as conversation,
            ):
                for prompt in prompts:
                    with anyio.move_on_after(wait):
                        replies.append(await conversation.send(prompt))

        anyio.run(converse)
        assert alive(work.environment[MARK]) == []
        return replies, events

    yield turns
    assert alive(work.environment[MARK]) == []


def answer(reply: Reply) -> dict[str, object]:
    assert isinstance(reply, Answer), reply
    return dict(json.loads(reply.body))


def failure(replies: list[Reply]) -> AgentFailure:
    (reply,) = replies
    assert isinstance(reply, AgentFailure), reply
    return reply


def test_claude_writes_a_file_and_answers_with_the_object_asked_for(converse: Converse, work: Assignment) -> None:
    replies, events = converse("[[scenario:hello]]")

    assert answer(replies[0]) == {"status": "done", "files": ["hello.txt"]}
    assert Path(work.workspace, "hello.txt").read_text(encoding="utf-8") == "hello from the scripted model\n"
    assert Said("Write hello.txt") in events
    (spent,) = [event.usage for event in events if isinstance(event, Spent)]
    assert (spent.input_tokens, spent.output_tokens) == (2500, 80)
    assert spent.cost_usd > 0


def test_claude_remembers_the_first_turn_in_the_second_and_counts_each_alone(converse: Converse) -> None:
    replies, _ = converse("[[scenario:hello]]", "And now?")

    assert [answer(reply)["status"] for reply in replies] == ["done", "went on"]
    assert [reply.usage.input_tokens for reply in replies if isinstance(reply, Answer)] == [2500, 1400]


def test_claude_takes_a_conversation_up_again_in_a_new_process(converse: Converse, work: Assignment) -> None:
    (first,), _ = converse("[[scenario:hello]]")
    assert isinstance(first, Answer)

    (second,), _ = converse("And now?", given=replace(work, conversation=first.conversation))

    assert answer(second)["status"] == "went on"
    assert isinstance(second, Answer)
    assert second.conversation == first.conversation
    assert second.usage.input_tokens == 1400
    assert 0 < second.usage.cost_usd < 0.01


def test_nothing_is_written_outside_of_the_workspace(converse: Converse, work: Assignment) -> None:
    _, events = converse("[[scenario:outside]]")

    assert [event.what.split(": ")[-1] for event in events if isinstance(event, PermissionAsked)] == [
        "it is outside of the workspace"
    ]
    assert not Path(work.workspace).with_name("outside.txt").exists()


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("limited-until", FailureKind.limited),
        ("too-long", FailureKind.too_long),
        ("prose", FailureKind.silent),
    ],
)
def test_an_error_of_the_provider_is_a_failure_of_its_kind(
    converse: Converse, scenario: str, kind: FailureKind
) -> None:
    replies, _ = converse(f"[[scenario:{scenario}]]")

    found = failure(replies)
    assert found.kind is kind
    assert (found.reset_at is not None) == (kind is FailureKind.limited)


def test_claude_continues_after_a_failed_turn(converse: Converse) -> None:
    replies, _ = converse("[[scenario:unauthorized]]", "[[scenario:hello]]")

    assert isinstance(replies[0], AgentFailure)
    assert answer(replies[1])["status"] == "done"


def test_a_silent_model_is_interrupted_by_the_next_turn(
    claude: ClaudeAgent, work: Assignment, model: ModelServer
) -> None:
    async def interrupt() -> Reply:
        asked = len(model.requests)
        async with (
            Supervisor() as host,
            claude.open(work, spawn=host.spawn, watch=lambda _event: None) as conversation,
            anyio.create_task_group() as group,
        ):
            group.start_soon(conversation.send, "[[scenario:silent]]")
            with anyio.fail_after(60):
                while len(model.requests) == asked:  # noqa: ASYNC110 - another process asks
                    await anyio.sleep(0.05)
                return await conversation.send("[[scenario:hello]] Finish now.")

    assert answer(anyio.run(interrupt))["status"] == "done"
    assert alive(work.environment[MARK]) == []


def test_claude_accepts_the_schema_of_a_developers_result(converse: Converse, work: Assignment) -> None:
    given = replace(work, schema=DEVELOPMENT.result_schema("developer"))

    replies, _ = converse("# DEV-001: Add a file\nYou are the developer of a development team.", given=given)

    assert answer(replies[0])["id"] == "DEV-001"


def test_the_settings_of_the_user_do_not_change_a_run(
    converse: Converse, claude: ClaudeAgent, model: ModelServer, tmp_path: Path
) -> None:
    home, hooked = Path(claude.home), tmp_path / "hooked"
    home.mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {hooked}"}]}
    (home / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [hook]}}), encoding="utf-8")
    (home / "CLAUDE.md").write_text("A MEMORY OF THE USER", encoding="utf-8")

    replies, _ = converse("[[scenario:hello]]")

    assert answer(replies[0])["status"] == "done"
    assert not hooked.exists()
    assert not any("A MEMORY OF THE USER" in request.body for request in model.requests)


def test_the_real_program_reports_its_version(claude: ClaudeAgent) -> None:
    probe = claude.probe()

    assert probe.installed
    assert probe.version.count(".") == 2
