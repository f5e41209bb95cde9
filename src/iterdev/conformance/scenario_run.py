"""One scenario with one real agent: a private home, a scratch repository, a model of its own, and what came of it.

It knows how a conversation is led. Whether it went well is not for it to say.
"""

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
from iterdev.conformance.agent_setup import client, pointed_at
from iterdev.conformance.expectations import ROLE, TASK, Seen
from iterdev.conformance.leftover_processes import remains
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.conformance.scenarios import Scenario, done
from iterdev.core.results import schema
from iterdev.host.git import checkout

BEGUN = "busy.pid"
"""A turn is in the middle of a command when this file is there."""
POLL = 0.02


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where a scenario is played, and by whom."""

    scenario: Scenario
    agent: Agent
    model: ModelServer
    assignment: Assignment
    mark: str
    """All its processes have it somewhere."""
    spawn: Spawn
    patience: float

    async def reply(self, conversation: Conversation, prompt: str) -> Reply | None:
        with anyio.move_on_after(self.patience):
            return await conversation.send(prompt)
        return None


async def seen(name: str, scenario: Scenario, spawn: Spawn, *, patience: float) -> Seen:
    """Plays the scenario; a turn that has not ended when the patience has is given up."""
    with _site(name, scenario, spawn, patience) as site:
        events: list[AgentEvent] = []
        replies = await _COURSES[scenario.course](site, events)
        left = await anyio.to_thread.run_sync(remains, site.mark)
        requests = [request for request in site.model.requests if not request.is_side_call]
        return Seen(
            replies=replies,
            events=events,
            asked=[request.body for request in requests],
            first_asked=requests[0].time if requests else None,
            notes=site.model.notes,
            token=site.assignment.tools.token if site.assignment.tools else "",
            files=_files(Path(site.assignment.workspace)),
            left=left,
        )


@contextmanager
def _site(name: str, scenario: Scenario, spawn: Spawn, patience: float) -> Iterator[Site]:
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
            environment=variables | pointed_at(model.url, name, home),
            tools=ToolServer(url=model.tools_url, token=token_hex(8)) if scenario.tools else None,
        )
        yield Site(
            scenario=scenario,
            agent=client(name, home),
            model=model,
            assignment=assignment,
            mark=folder,
            spawn=spawn,
            patience=patience,
        )


async def _one_conversation(site: Site, events: list[AgentEvent]) -> list[Reply | None]:
    async with site.agent.open(site.assignment, spawn=site.spawn, watch=events.append) as conversation:
        return [await site.reply(conversation, prompt) for prompt in site.scenario.prompts]


async def _resumed(site: Site, events: list[AgentEvent]) -> list[Reply | None]:
    replies: list[Reply | None] = []
    assignment = site.assignment
    for prompt in site.scenario.prompts:
        async with site.agent.open(assignment, spawn=site.spawn, watch=events.append) as conversation:
            reply = await site.reply(conversation, prompt)
        replies.append(reply)
        if isinstance(reply, Answer):
            assignment = msgspec.structs.replace(assignment, conversation=reply.conversation)
    return replies


async def _interrupted(site: Site, events: list[AgentEvent]) -> list[Reply | None]:
    first, second = site.scenario.prompts
    replies: list[Reply | None] = [None, None]
    async with (
        site.agent.open(site.assignment, spawn=site.spawn, watch=events.append) as conversation,
        anyio.create_task_group() as group,
    ):

        async def begin() -> None:
            replies[0] = await site.reply(conversation, first)

        group.start_soon(begin)
        begun = anyio.Path(site.assignment.workspace, BEGUN)
        with anyio.move_on_after(site.patience):
            while replies[0] is None and not await begun.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(POLL)
        replies[1] = await site.reply(conversation, second)
    return replies


_COURSES = {"one conversation": _one_conversation, "resumed": _resumed, "interrupted": _interrupted}


def _files(workspace: Path) -> dict[str, str]:
    return {path.name: path.read_text(errors="replace") for path in workspace.iterdir() if path.is_file()}
