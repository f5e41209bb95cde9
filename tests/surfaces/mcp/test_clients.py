"""Clients of every revision start a team, are asked, answer, and are told the end."""

import json
import os
import signal
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.context import ClientRequestContext
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult
from tests.clis import command_line, pids_with
from tests.e2e.conftest import eventually
from tests.session_files import left_behind, processes, statuses
from tests.surfaces.mcp.conftest import ERAS, Office, TasksExtension, ask_task, state_after, text

DONE = {"DEV-001": "completed", "VERIFY-001": "completed"}
LINE = '--pipeline patch "Fix it; $(touch never) `touch never`"'


class User:
    """The person at a client, who approves."""

    def __init__(self, action: str = "accept") -> None:
        self.action = action
        self.asked: list[ElicitRequestParams] = []

    async def elicit(self, _: ClientRequestContext, question: ElicitRequestParams) -> ElicitResult:
        self.asked.append(question)
        content = {"choice": "approve"} if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)


async def waited(client: Client, session: str = "") -> CallToolResult:
    while True:
        said = await client.call_tool("wait", {"session": session, "seconds": 60})
        if " is at work: " not in text(said):
            return said


@pytest.mark.parametrize("era", ERAS)
def test_a_client_of_every_revision_sees_the_tools_and_prompts(office: Office, era: str) -> None:
    async def look() -> tuple[Any, Any, Any, Any]:
        async with office.client(era) as client:
            prompt = await client.get_prompt("team-issue", {"line": "GH-42"})
            sessions = await client.call_tool("sessions", {})
            return await client.list_tools(), await client.list_prompts(), prompt, sessions

    tools, prompts, prompt, sessions = anyio.run(look)

    hints = {tool.name: tool.annotations for tool in tools.tools}
    assert {"run", "status", "wait", "answer", "report", "diff", "accept", "issues"} < set(hints)
    assert hints["status"].read_only_hint is True
    assert hints["accept"].destructive_hint is True
    assert [one.name for one in prompts.prompts] == ["team-iterdev", "team-issue"]
    assert "<line>GH-42</line>" in prompt.messages[0].content.text
    assert json.loads(text(sessions)) == {"sessions": [], "elsewhere": []}


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_client_without_tasks_is_asked_while_it_waits(office: Office, era: str) -> None:
    user = User()

    async def work() -> tuple[Any, Any]:
        async with office.client(era, elicitation_callback=user.elicit) as client:
            return await client.call_tool("run", {"line": LINE}), await waited(client)

    started, ended = anyio.run(work)

    (question,) = user.asked
    assert "is at work" in text(started) or "Ask the user" in text(started)
    assert question.requested_schema["properties"]["choice"]["default"] == "approve"
    assert "DEV-001" in question.message
    assert (ended.is_error, "done; nothing is in the user's branch" in text(ended)) == (False, True)
    assert statuses(office.repo.folder()) == DONE
    assert office.repo.git("status", "--porcelain") == ""
    eventually(lambda: not processes(office.repo), "the end of the engine")
    assert left_behind(office.repo) == []


def test_a_client_that_cannot_ask_gets_the_question_and_passes_on_the_answer(office: Office) -> None:
    user = User("decline")

    async def work() -> tuple[Any, ...]:
        async with office.client("legacy", elicitation_callback=user.elicit) as client:
            await client.call_tool("run", {"text": "Fix it", "pipeline": "patch"})
            question = await waited(client)
            wrong = await client.call_tool("answer", {"gate": "plan", "choice": "perhaps"})
            await client.call_tool("answer", {"gate": "plan", "choice": "approve"})
            return question, wrong, await waited(client), await client.call_tool("accept", {})

    question, wrong, ended, preview = anyio.run(work)

    assert 'Then call answer with session "' in text(question)
    assert len(user.asked) == 1
    assert (wrong.is_error, "one of: approve, reject" in text(wrong)) == (True, True)
    assert ended.is_error is False
    assert json.loads(text(preview))["files"] == ["DEV-001.txt"]
    assert office.repo.git("log", "--format=%s", "main") == "start"


def test_a_session_is_a_task_from_its_start_over_a_question_to_its_end(office: Office) -> None:
    tasks = TasksExtension()

    async def work() -> CallToolResult:
        async with office.client(extensions=[tasks]) as client:
            return await client.call_tool("run", {"line": LINE})

    ended = anyio.run(work)

    seen = list(dict.fromkeys(state["status"] for state in tasks.states))
    question = next(state for state in tasks.states if state["status"] == "input_required")
    (request,) = question["inputRequests"].values()
    assert (seen[0] in {"working", "input_required"}, seen[-1]) == (True, "completed")
    assert request["params"]["requestedSchema"]["properties"]["choice"]["oneOf"][0]["const"] == "approve"
    assert {state["taskId"] for state in tasks.states} == {office.repo.folder().name}
    assert ended.is_error is False
    assert statuses(office.repo.folder()) == DONE


def test_a_task_survives_the_death_of_server_and_client(office: Office) -> None:
    repo = office.repo
    repo.behave(developer={"run": "while [ ! -e $HOME/go ]; do sleep 0.05; done"})

    async def start() -> str:
        async with office.client(extensions=[TasksExtension()]) as client:
            task = await client.session.call_tool("run", {"line": f"-y {LINE}"}, allow_claimed=True)
            (server,) = (pid for pid in pids_with(str(repo.home)) if command_line(pid).endswith(" mcp"))
            os.kill(server, signal.SIGKILL)
            return str(task.model_dump(by_alias=True)["taskId"])

    session = anyio.run(start)
    eventually(repo.calls, "the agent")
    tasks = TasksExtension()

    async def poll() -> tuple[dict[str, Any], dict[str, Any]]:
        async with office.client(extensions=[tasks]) as client:
            working = await ask_task(client.session, "tasks/get", session)
            (repo.home / "go").touch()
            return working, await state_after(client, session, "working")

    working, ended = anyio.run(poll)

    assert (working["status"], "DEV-001 developer" in working["statusMessage"]) == ("working", True)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", False)
    assert statuses(repo.folder()) == DONE


def test_cancelling_a_task_interrupts_the_engine_and_keeps_everything(office: Office) -> None:
    repo = office.repo
    repo.behave(developer={"write": {"half.txt": "half\n"}, "sleep": 600})

    async def work() -> tuple[dict[str, Any], str]:
        async with office.client(extensions=[TasksExtension()]) as client:
            task = await client.session.call_tool("run", {"line": f"-y {LINE}"}, allow_claimed=True)
            name = str(task.model_dump(by_alias=True)["taskId"])
            eventually(repo.calls, "the agent")
            await ask_task(client.session, "tasks/cancel", name)
            return await state_after(client, name, "working"), name

    state, name = anyio.run(work)

    assert (state["status"], f"iterdev resume {name}" in state["statusMessage"]) == ("cancelled", True)
    assert repo.git("show", f"refs/iterdev/{name}/DEV-001/1:half.txt") == "half"
    eventually(lambda: not processes(repo), "the end of the engine")
    assert left_behind(repo) == []
