"""Real coding agents, calling the tools of the team over MCP as the scripted model tells them to."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.engine.conftest import Office

from iterdev.agents.acp.agent import AcpAgent
from iterdev.agents.acp.programs import PROGRAMS
from iterdev.agents.claude.agent import ClaudeAgent
from iterdev.agents.codex.agent import CodexAgent
from iterdev.agents.contract import Agent, AgentEvent, Answer, Assignment, Permissions, Reply, Said
from iterdev.agents.scripted.script import Call, Rule, Script, Step
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.host.processes.spawn import Supervisor
from iterdev.store.session_folder import discoveries
from iterdev.teams.development.results import Development

PATIENCE = 60.0
RESULT = {"id": "DEV-001", "status": "completed", "findings": "through the tool"}
LAST_WORDS = RESULT | {"findings": "as last words"}


def tool(name: str, **arguments: object) -> Step:
    return Step(call=Call(tool=name, server="iterdev", arguments=arguments))


SCRIPT = Script(
    rules=(
        Rule(
            match=".",
            steps=(
                tool("team_msg", operation="log", type="progress", summary="half way"),
                tool("board", operation="add", type="convention", data={"name": "tabs"}),
                tool("report_result", result=RESULT | {"status": "finished"}),
                tool("report_result", result=RESULT),
                Step(result=LAST_WORDS),
            ),
        ),
    )
)


def claude(installed: Path, model: ModelServer, home: Path) -> tuple[Agent, dict[str, str]]:
    program = next(installed.glob(f"@anthropic-ai/claude-code-{sys.platform}-*/claude"))
    agent = ClaudeAgent(program=str(program), model="claude-sonnet-4-5", home=str(home))
    return agent, {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "dummy"}


def codex(installed: Path, model: ModelServer, home: Path) -> tuple[Agent, dict[str, str]]:
    program = next(installed.glob(f"@openai/codex-{sys.platform}-*/vendor/*/bin/codex"))
    agent = CodexAgent(program=str(program), model="gpt-5.5", home=str(home))
    return agent, {"OPENAI_BASE_URL": f"{model.url}/v1", "CODEX_API_KEY": "dummy"}


def acp(name: str, installed: Path, model: ModelServer, home: Path) -> tuple[Agent, dict[str, str]]:
    row = PROGRAMS[name]
    command = (str(installed / ".bin" / name), *row.command[1:])
    agent = AcpAgent(name, command, program=row, model="gemini-2.5-pro", home=str(home))
    google = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": model.url}
    return agent, {**google, "OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{model.url}/v1"}


Make = Callable[[Path, ModelServer, Path], tuple[Agent, dict[str, str]]]


@pytest.mark.parametrize(
    "make", [claude, codex, partial(acp, "gemini"), partial(acp, "qwen")], ids=["claude", "codex", "gemini", "qwen"]
)
def test_the_model_calls_the_tools_and_hears_what_they_answer(make: Make, office: Office, tmp_path: Path) -> None:
    installed = Path(os.environ.get("ITERDEV_TEST_CLIS") or Path(__file__).parents[2] / ".agents" / "node_modules")
    for name in ("workspace", "home", "tmp"):
        (tmp_path / name).mkdir()
    subprocess.run(["git", "init", "--quiet", tmp_path / "workspace"], check=True)
    events: list[AgentEvent] = []

    async def attempt(agent: Agent, variables: dict[str, str]) -> tuple[Reply, AttemptAccess]:
        async with office.server.opened(), Supervisor() as host:
            with office.server.access(office.job()) as caller:
                work = assignment(caller, tmp_path, variables)
                async with agent.open(work, spawn=host.spawn, watch=events.append) as conversation:
                    with anyio.fail_after(PATIENCE):
                        return await conversation.send("Do it."), caller

    with serving(SCRIPT) as model:
        reply, caller = anyio.run(attempt, *make(installed, model, tmp_path / "home"))

    assert isinstance(reply, Answer), reply
    assert json.loads(reply.body)["findings"] == "as last words"
    assert isinstance(caller.reported, Development)
    assert caller.reported.findings == "through the tool"
    assert office.log.state.messages.sent[-1].summary == "[developer] half way"
    assert [(line.worker, line.data) for line in discoveries.read(office.folder / discoveries.NAME)] == [
        ("DEV-001", {"name": "tabs"})
    ]
    assert "Invalid enum value 'finished' - at `$.status`" in model.requests[-1].body
    assert any(isinstance(event, Said) and "report_result" in event.text for event in events)


def assignment(caller: AttemptAccess, top: Path, variables: dict[str, str]) -> Assignment:
    job = caller.job
    return Assignment(
        task=job.task.id,
        role=job.task.role,
        attempt=job.number,
        session=job.session,
        session_dir=str(top / "session"),
        workspace=str(top / "workspace"),
        result_path=str(top / "result.json"),
        schema=job.schema,
        permissions=Permissions(write=True),
        limit=job.limit,
        environment={"PATH": os.environ["PATH"], "HOME": str(top), "TMPDIR": str(top / "tmp"), **variables},
        tools=caller.server,
    )
