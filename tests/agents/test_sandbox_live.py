"""Real coding agents in the sandbox, with their login in the user's home, with the scripted model only."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from tests.conftest import Repo

from iterdev.agents.acp.agent import AcpAgent
from iterdev.agents.acp.programs import PROGRAMS
from iterdev.agents.claude.agent import ClaudeAgent
from iterdev.agents.codex.agent import CodexAgent
from iterdev.agents.contract import Agent, Answer, Assignment, Permissions, Reply
from iterdev.agents.scripted.script import Rule, Script, Step
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.host.git import worktrees
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.sandbox.bubblewrap import Access, build
from iterdev.host.workspaces.pool import Pool, Workspace

INSTALLED = Path(os.environ.get("ITERDEV_TEST_CLIS") or Path(__file__).parents[2] / ".agents" / "node_modules")
SECRET = "the-key-of-the-user"
DONE = {"status": "done", "files": ["hello.txt"]}
SCHEMA = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}}},
    "required": ["status", "files"],
    "additionalProperties": False,
}
HARM = "(cat ~/.ssh/id_ed25519; echo harm > ~/harm; echo harm > {top}/harm; pwd) > seen.txt 2>&1; true"

every = pytest.mark.parametrize("name", ["claude", "codex", "gemini", "qwen"])


@pytest.fixture
def model(repo: Repo) -> Iterator[ModelServer]:
    turns = (
        Step(run=HARM.format(top=repo.path)),
        Step(write={"hello.txt": "hello\n"}),
        Step(result=DONE),
        Step(result=DONE | {"status": "went on"}),
    )
    with serving(Script(rules=(Rule(steps=turns, match="."),))) as server:
        yield server


@pytest.fixture
def agent(name: str, repo: Repo) -> Agent:
    """An agent of the user's, who has used it before."""
    (repo.home / f".{name}").mkdir()
    match name:
        case "claude":
            program = next(INSTALLED.glob(f"@anthropic-ai/claude-code-{sys.platform}-*/claude"))
            (repo.home / ".claude.json").write_text('{"hasCompletedOnboarding": true}', encoding="utf-8")
            return ClaudeAgent(program=str(program), model="claude-sonnet-4-5")
        case "codex":
            program = next(INSTALLED.glob(f"@openai/codex-{sys.platform}-*/vendor/*/bin/codex"))
            return CodexAgent(program=str(program), model="gpt-5.5")
        case _:
            row = PROGRAMS[name]
            settings = {**row.settings, **row.key_settings}
            (repo.home / f".{name}" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
            command = (str(INSTALLED / ".bin" / name), *row.command[1:])
            return AcpAgent(name, command, program=row, model="gemini-2.5-pro")


@pytest.fixture
def workspace(repo: Repo, tmp_path: Path) -> Iterator[Workspace]:
    pool = Pool(repo.path, tmp_path / "state" / "ids-demo", tmp_path / "state" / "tmp")
    workspace, _ = pool.borrow(repo.git("rev-parse", "HEAD"), task="DEV-001", number=1)
    yield workspace
    pool.give_back(workspace)
    pool.close()


@pytest.fixture
def work(assignment: Assignment, repo: Repo, workspace: Workspace, model: ModelServer) -> Assignment:
    (repo.home / ".ssh").mkdir()
    (repo.home / ".ssh" / "id_ed25519").write_text(SECRET, encoding="utf-8")
    provider = {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_API_KEY": "dummy",
    }
    return replace(
        assignment,
        session=str(workspace.slot),
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=SCHEMA,
        limit=90,
        environment={**repo.env, **provider, "TMPDIR": str(workspace.temp)},
        sandboxed=not build(repo.path, repo.env).nests,
    )


def converse(agent: Agent, work: Assignment, repo: Repo, workspace: Workspace, *prompts: str) -> list[Reply]:
    async def turns() -> list[Reply]:
        async with Supervisor() as host:
            access = Access(write=work.permissions.write, network=True, files=tuple(agent.folders(work.environment)))
            spawn = build(repo.path, repo.env).around(host.spawn, workspace, access)
            async with agent.open(work, spawn=spawn, watch=lambda _event: None) as conversation:
                return [await conversation.send(prompt) for prompt in prompts]

    replies = anyio.run(turns)
    assert alive(work.session) == []
    return replies


def alive(session: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"ITERDEV_SESSION={session}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def status(reply: Reply) -> object:
    assert isinstance(reply, Answer), reply
    return json.loads(reply.body)["status"]


@every
def test_it_works_in_its_workspace_and_reaches_nothing_else(
    name: str, agent: Agent, work: Assignment, repo: Repo, workspace: Workspace
) -> None:
    replies = converse(agent, work, repo, workspace, "Write hello.txt", "And now?")

    assert [status(reply) for reply in replies] == ["done", "went on"]
    assert (workspace.tree / "hello.txt").read_text(encoding="utf-8") == "hello\n"
    assert str(workspace.tree) in (workspace.tree / "seen.txt").read_text(encoding="utf-8")
    assert SECRET not in (workspace.tree / "seen.txt").read_text(encoding="utf-8")
    assert not (repo.home / "harm").exists()
    assert not (repo.path / "harm").exists()
    assert {path.name for path in repo.home.iterdir()} - {f".{name}", ".claude.json"} == {
        "agent",
        "tmp",
        ".gitconfig",
        ".ssh",
    }


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_conversation_is_taken_up_again_in_a_new_sandbox(
    agent: Agent, work: Assignment, repo: Repo, workspace: Workspace
) -> None:
    (first,) = converse(agent, work, repo, workspace, "Write hello.txt")
    assert isinstance(first, Answer), first

    (second,) = converse(agent, replace(work, conversation=first.conversation), repo, workspace, "And now?")

    assert status(second) == "went on"


@every
def test_a_reader_can_change_nothing_even_by_a_command(
    agent: Agent, work: Assignment, repo: Repo, workspace: Workspace
) -> None:
    reader = replace(work, role="reviewer", permissions=Permissions(write=False))

    (reply,) = converse(agent, reader, repo, workspace, "Write hello.txt")

    assert status(reply) == "done"
    assert worktrees.is_untouched(workspace.tree, repo.git("rev-parse", "HEAD"))
