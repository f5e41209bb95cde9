"""Plays one scenario with one real agent, in a private home and a scratch repository, and records what happens."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import anyio
import msgspec

from iterdev.agents.contract import Agent, AgentEvent, Answer, Assignment, Conversation, Reply, Spawn, ToolServer
from iterdev.agents.scripted.script import Rule, Script
from iterdev.conformance.agent_setup import agent_in_home, configure_agent
from iterdev.conformance.expectations import ROLE, TASK, Observation
from iterdev.conformance.leftover_processes import find_leftovers
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.conformance.scenarios import Scenario, done
from iterdev.core.results import schema
from iterdev.host.git import checkout

BEGUN = "busy.pid"
"""The command of a turn is running when this file exists."""
POLL = 0.02


class ScenarioSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with everything it needs."""

    scenario: Scenario
    agent: Agent
    model: ModelServer
    assignment: Assignment
    mark: str
    """A text that all processes of the scenario inherit."""
    spawn: Spawn
    timeout: float

    async def reply(self, conversation: Conversation, prompt: str) -> Reply | None:
        with anyio.move_on_after(self.timeout):
            return await conversation.send(prompt)
        return None


async def observe(name: str, scenario: Scenario, spawn: Spawn, *, turn_timeout: float) -> Observation:
    """Plays the scenario; a turn that takes longer than the timeout has no reply."""
    with _setup(name, scenario, spawn, turn_timeout) as setup:
        events: list[AgentEvent] = []
        replies = await _COURSES[scenario.course](setup, events)
        left = await anyio.to_thread.run_sync(find_leftovers, setup.mark)
        requests = [request for request in setup.model.requests if not request.is_side_call]
        return Observation(
            replies=replies,
            events=events,
            requests=[request.body for request in requests],
            first_request_at=requests[0].time if requests else None,
            notes=setup.model.notes,
            token=setup.assignment.tools.token if setup.assignment.tools else "",
            files=_files(Path(setup.assignment.workspace)),
            left=left,
        )


@contextmanager
def _setup(name: str, scenario: Scenario, spawn: Spawn, timeout: float) -> Iterator[ScenarioSetup]:
    rules = (Rule(match=r"\S", steps=scenario.steps), Rule(name="next", steps=(done("went on"),)))
    with TemporaryDirectory(prefix="iterdev-check-") as folder, serving(Script(rules=rules)) as model:
        home, workspace, session, temporary = (Path(folder, part) for part in ("home", "workspace", "session", "tmp"))
        for place in (home, workspace, session, temporary):
            place.mkdir()
        checkout.init(workspace, "main")
        variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": str(temporary)}
        assignment = Assignment(
            task=TASK,
            role=ROLE.name,
            attempt=1,
            session="conformance",
            session_dir=str(session),
            workspace=str(workspace),
            result_path=str(session / "result.json"),
            schema=schema(ROLE.result),
            permissions=scenario.permissions,
            limit=scenario.limit,
            environment=variables | configure_agent(model.url, name, home),
            tools=ToolServer(url=model.tools_url, token=token_hex(8)) if scenario.tools else None,
        )
        yield ScenarioSetup(
            scenario=scenario,
            agent=agent_in_home(name, home),
            model=model,
            assignment=assignment,
            mark=folder,
            spawn=spawn,
            timeout=timeout,
        )


async def _one_conversation(setup: ScenarioSetup, events: list[AgentEvent]) -> list[Reply | None]:
    async with setup.agent.open(setup.assignment, spawn=setup.spawn, watch=events.append) as conversation:
        return [await setup.reply(conversation, prompt) for prompt in setup.scenario.prompts]


async def _resumed(setup: ScenarioSetup, events: list[AgentEvent]) -> list[Reply | None]:
    replies: list[Reply | None] = []
    assignment = setup.assignment
    for prompt in setup.scenario.prompts:
        async with setup.agent.open(assignment, spawn=setup.spawn, watch=events.append) as conversation:
            reply = await setup.reply(conversation, prompt)
        replies.append(reply)
        if isinstance(reply, Answer):
            assignment = msgspec.structs.replace(assignment, conversation=reply.conversation)
    return replies


async def _interrupted(setup: ScenarioSetup, events: list[AgentEvent]) -> list[Reply | None]:
    first, second = setup.scenario.prompts
    replies: list[Reply | None] = [None, None]
    async with (
        setup.agent.open(setup.assignment, spawn=setup.spawn, watch=events.append) as conversation,
        anyio.create_task_group() as group,
    ):

        async def begin() -> None:
            replies[0] = await setup.reply(conversation, first)

        group.start_soon(begin)
        begun = anyio.Path(setup.assignment.workspace, BEGUN)
        with anyio.move_on_after(setup.timeout):
            while replies[0] is None and not await begun.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(POLL)
        replies[1] = await setup.reply(conversation, second)
    return replies


_COURSES = {"one conversation": _one_conversation, "resumed": _resumed, "interrupted": _interrupted}


def _files(workspace: Path) -> dict[str, str]:
    return {path.name: path.read_text(errors="replace") for path in workspace.iterdir() if path.is_file()}
