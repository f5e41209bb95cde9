"""Which files with instructions real coding agents read by themselves, as iterdev starts them."""

from pathlib import Path

import anyio
import pytest
from tests.clis import CLIS, OPTIONAL_BINARIES, install

from iterdev.agents.contract import Agent, Assignment
from iterdev.agents.scripted.script import Rule, Script
from iterdev.conformance.agent_setup import agent_in_home
from iterdev.conformance.model.server import serving
from iterdev.conformance.run import scratch_assignment
from iterdev.conformance.scenarios import SCENARIOS, done
from iterdev.core.conventions import FOR_AGENTS
from iterdev.host.processes.spawn import Supervisor


async def one_turn(agent: Agent, assignment: Assignment) -> None:
    async with (
        Supervisor() as host,
        agent.open(assignment, spawn=host.spawn, watch=lambda _event: None) as conversation,
    ):
        await conversation.send("Do your task.")


@pytest.mark.parametrize("name", [*CLIS, *OPTIONAL_BINARIES])
def test_a_coding_agent_reads_by_itself_what_its_adapter_says_and_nothing_else(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("c")
    (folder / "bin").mkdir()
    installed = install(name, folder / "bin")
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    agent = agent_in_home(name, folder / "home")
    if not installed:
        assert agent.probe().problem
        return

    with serving(Script(rules=(Rule(match=r"\S", steps=(done("read"),)),))) as model:
        assignment = scratch_assignment(name, SCENARIOS[0], folder, model)
        for path in FOR_AGENTS:
            file = Path(assignment.workspace, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"The mark of {path}.", encoding="utf-8")
        anyio.run(one_turn, agent, assignment)
        asked = "".join(request.body for request in model.requests)

    assert asked
    assert [path for path in FOR_AGENTS if f"The mark of {path}." in asked] == sorted(agent.reads, key=FOR_AGENTS.index)
