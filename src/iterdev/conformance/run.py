"""Plays the scenarios with real agents, each in a private home and a scratch repository, and reports the results."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, gettempdir

import anyio
from msgspec import Struct
from msgspec.structs import replace

from iterdev.agents.contract import Agent, AgentEvent, Answer, Assignment, Conversation, Reply, ToolServer
from iterdev.agents.scripted.script import Rule, Script
from iterdev.conformance.agent_setup import agent_in_home, configure_agent
from iterdev.conformance.expectations import ROLE, TASK, Observation
from iterdev.conformance.known_deviations import deviation
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.conformance.scenarios import SCENARIOS, TURN_TIMEOUT, Scenario, done
from iterdev.conformance.verdict import AgentReport, ScenarioResult, judge
from iterdev.core.results import schema
from iterdev.host.git import checkout
from iterdev.host.processes.spawn import Spawn, Supervisor

PARALLEL_SCENARIOS = 3
"""Most of the time of a scenario is waiting."""
BEGUN = "busy.pid"
"""The command of a turn is running when this file exists."""
POLL = 0.02

Progress = Callable[[str, ScenarioResult], None]
"""Called with the agent and the result after each scenario."""


def check(names: Sequence[str], progress: Progress) -> tuple[AgentReport, ...]:
    """Plays every scenario with each of the agents that is installed."""
    probes = {name: agent_in_home(name, Path(gettempdir())).probe() for name in names}
    installed = [name for name, probe in probes.items() if probe.installed]
    results = anyio.run(_play, installed, progress)
    return tuple(
        AgentReport(
            agent=name,
            installed=probe.installed,
            version=probe.version,
            note=probe.note,
            hint=probe.hint,
            results=tuple(results[name, scenario.name] for scenario in SCENARIOS if probe.installed),
        )
        for name, probe in probes.items()
    )


async def _play(names: Sequence[str], progress: Progress) -> dict[tuple[str, str], ScenarioResult]:
    results: dict[tuple[str, str], ScenarioResult] = {}
    limiter = anyio.CapacityLimiter(PARALLEL_SCENARIOS)

    async def play(name: str, scenario: Scenario, spawn: Spawn) -> None:
        async with limiter:
            result = results[name, scenario.name] = await _played(name, scenario, spawn)
        progress(name, result)

    async with Supervisor() as supervisor, anyio.create_task_group() as group:
        for name in names:
            for scenario in sorted(SCENARIOS, key=lambda scenario: not scenario.takes_long):
                group.start_soon(play, name, scenario, supervisor.spawn)
    return results


async def _played(name: str, scenario: Scenario, spawn: Spawn) -> ScenarioResult:
    known, started = deviation(name, scenario.name), anyio.current_time()
    timeout = known.timeout if known else TURN_TIMEOUT
    try:
        observation = await observe(name, scenario, spawn, turn_timeout=timeout)
        if not observation.requests and scenario.limit < TURN_TIMEOUT:
            # The agent had not even started: the limit of this scenario can be too short for a busy machine.
            longer = replace(scenario, limit=TURN_TIMEOUT)
            observation = await observe(name, longer, spawn, turn_timeout=2 * TURN_TIMEOUT)
    except Exception as error:  # noqa: BLE001 - an adapter that fails is a result
        words = f"the adapter failed: {type(error).__name__}: {error}"
        return ScenarioResult(scenario=scenario.name, standing="failed", misses=(words,))
    return judge(scenario, known, observation, anyio.current_time() - started)


async def observe(name: str, scenario: Scenario, spawn: Spawn, *, turn_timeout: float) -> Observation:
    """Plays the scenario; a turn that takes longer than the timeout has no reply."""
    rules = (Rule(match=r"\S", steps=scenario.steps), Rule(name="next", steps=(done("went on"),)))
    with TemporaryDirectory(prefix="iterdev-check-") as folder, serving(Script(rules=rules)) as model:
        assignment = scratch_assignment(name, scenario, Path(folder), model)
        agent = agent_in_home(name, Path(folder, "home"))
        run = ScenarioRun(agent=agent, assignment=assignment, spawn=spawn, timeout=turn_timeout, events=[])
        replies = await _COURSES[scenario.course](run, scenario.prompts)
        requests = [request for request in model.requests if not request.is_side_call]
        return Observation(
            replies=replies,
            events=run.events,
            requests=[request.body for request in requests],
            first_request_at=requests[0].time if requests else None,
            notes=model.notes,
            token=assignment.tools.token if assignment.tools else "",
            files=_files(Path(assignment.workspace)),
            left=await anyio.to_thread.run_sync(find_leftovers, folder),
        )


def scratch_assignment(name: str, scenario: Scenario, folder: Path, model: ModelServer) -> Assignment:
    home, workspace, session, temporary = (folder / part for part in ("home", "workspace", "session", "tmp"))
    for place in (home, workspace, session, temporary):
        place.mkdir()
    checkout.init(workspace, "main")
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": str(temporary)}
    return Assignment(
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


class ScenarioRun(Struct, frozen=True, kw_only=True):
    agent: Agent
    assignment: Assignment
    spawn: Spawn
    timeout: float
    events: list[AgentEvent]

    def open(self, conversation: str = "") -> AbstractAsyncContextManager[Conversation]:
        assignment = replace(self.assignment, conversation=conversation)
        return self.agent.open(assignment, spawn=self.spawn, watch=self.events.append)

    async def reply(self, conversation: Conversation, prompt: str) -> Reply | None:
        with anyio.move_on_after(self.timeout):
            return await conversation.send(prompt)
        return None


async def _one_conversation(run: ScenarioRun, prompts: Sequence[str]) -> list[Reply | None]:
    async with run.open() as conversation:
        return [await run.reply(conversation, prompt) for prompt in prompts]


async def _resumed(run: ScenarioRun, prompts: Sequence[str]) -> list[Reply | None]:
    replies: list[Reply | None] = []
    earlier = ""
    for prompt in prompts:
        async with run.open(earlier) as conversation:
            reply = await run.reply(conversation, prompt)
        replies.append(reply)
        earlier = reply.conversation if isinstance(reply, Answer) else earlier
    return replies


async def _interrupted(run: ScenarioRun, prompts: Sequence[str]) -> list[Reply | None]:
    first, second = prompts
    replies: list[Reply | None] = [None, None]
    async with run.open() as conversation, anyio.create_task_group() as group:

        async def begin() -> None:
            replies[0] = await run.reply(conversation, first)

        group.start_soon(begin)
        begun = anyio.Path(run.assignment.workspace, BEGUN)
        with anyio.move_on_after(run.timeout):
            while replies[0] is None and not await begun.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(POLL)
        replies[1] = await run.reply(conversation, second)
    return replies


_COURSES = {"one conversation": _one_conversation, "resumed": _resumed, "interrupted": _interrupted}


def _files(workspace: Path) -> dict[str, str]:
    return {path.name: path.read_text(errors="replace") for path in workspace.iterdir() if path.is_file()}


def find_leftovers(mark: str) -> tuple[str, ...]:
    """The command lines of all processes with the mark in their environment, arguments or current folder.

    An agent may start its tools with another environment or in another folder, but not both.
    """
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        # It may have ended meanwhile.
        with suppress(OSError):
            files = (process / "cmdline", process / "environ")
            line, environment = (file.read_text(encoding="utf-8", errors="replace") for file in files)
            if mark in line or mark in environment or mark in str((process / "cwd").readlink()):
                lines.append(line.replace("\0", " ").strip())
    return tuple(filter(None, lines))
