"""Real coding agents against the scripted model, each by its own program: from a prompt to files and answers.

What they do when a command is run or the provider fails is shown with their adapters, by the conformance kit.
"""

import json
from collections.abc import Callable

import pytest
from tests.conformance.model.conftest import CodingAgent, Ended

from iterdev.conformance.model.server import ModelServer

MakeAgent = Callable[[str], CodingAgent]

every_cli = pytest.mark.parametrize("name", ["claude", "codex", "gemini", "qwen"])


def answer(name: str, ended: Ended) -> object:
    """The structured answer of a run, from where each CLI puts it."""
    events = ended.events
    match name:
        case "claude":
            return events[-1]["structured_output"]
        case "qwen":
            return events[-1]["structured_result"]
        case "codex":
            items = [event["item"] for event in events if event["type"] == "item.completed"]
            return json.loads([item["text"] for item in items if item["type"] == "agent_message"][-1])
        case _:
            texts = [event["content"] for event in events if event.get("role") == "assistant"]
            return json.loads("".join(texts).removeprefix("I will write the file."))


def tokens(name: str, ended: Ended) -> tuple[int, int]:
    """Input, what came from the cache included, and output."""
    usage = ended.last["stats" if name == "gemini" else "usage"]
    cached = usage["cache_read_input_tokens"] if name == "claude" else 0
    return usage["input_tokens"] + cached, usage["output_tokens"]


def steps(model: ModelServer) -> list[int]:
    return [request.turn for request in model.requests if not request.is_side_call]


@every_cli
def test_a_file_is_written_and_a_structured_answer_given(name: str, agent: MakeAgent, model: ModelServer) -> None:
    running = agent(name)

    ended = running.ask("Write a file. [[scenario:hello]]")

    assert ended.code == 0, ended
    assert running.written("hello.txt") == "hello from the scripted model\n"
    assert answer(name, ended) == {"status": "done", "files": ["hello.txt"]}
    assert tokens(name, ended) == (2500, 80)
    assert steps(model) == [0, 1]


@every_cli
def test_a_file_that_was_read_is_written_over(name: str, agent: MakeAgent, model: ModelServer) -> None:
    running = agent(name)
    (running.workspace / "hello.txt").write_text("old\n", encoding="utf-8")

    ended = running.ask("Write it again. [[scenario:rewrite]]")

    assert ended.code == 0, ended
    assert running.written("hello.txt") == "written again\n"
    assert steps(model) == [0, 1, 2]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_task_of_iterdev_is_done_by_its_role(name: str, agent: MakeAgent, model: ModelServer) -> None:
    running = agent(name)

    ended = running.ask("# DEV-007: Add it\n\nYou are the developer of a development team.\n\nAdd the file.\n")

    assert running.written("DEV-007.txt") == "DEV-007 is done\n", ended
    assert {(request.rule, request.task) for request in model.requests} == {("developer", "DEV-007")}


@pytest.mark.parametrize(("scenario", "status"), [("limited-once", 429), ("broken-once", 500)])
def test_qwen_asks_again_until_it_is_answered(scenario: str, status: int, agent: MakeAgent, model: ModelServer) -> None:
    ended = agent("qwen").ask(f"Do it. [[scenario:{scenario}]]")

    assert ended.code == 0, ended
    assert answer("qwen", ended) == {"status": "done", "files": []}
    assert [request.status for request in model.requests] == [status, 200]
