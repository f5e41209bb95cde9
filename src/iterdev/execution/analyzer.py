"""The task analyzer: an interactive agent that is asked about the requirement before the session exists."""

import os
from functools import partial

import anyio

from iterdev.agents import registry
from iterdev.agents.contract import Agent, AgentFailure, Answer, Assignment, Conversation, Permissions
from iterdev.core import prompts
from iterdev.core.settings import Limits
from iterdev.core.types import Role
from iterdev.engine.repository import Repository
from iterdev.execution.kept_work import thread
from iterdev.host import paths
from iterdev.host.git import refs
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.secrets import allowed_environment
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.teams.development import analyzer
from iterdev.teams.development.analyzer import Assessment


async def assessed(repository: Repository, requirement: str, agent: str | None) -> Assessment | str:
    """What the architect's agent makes of the requirement, or why nothing came of it."""
    name = agent or repository.settings.agent_for(Role.architect)
    asked = registry.make_usable(name, repository.settings.agents, repository.top)
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / f"analysis-{os.getpid()}", paths.temps())
    workspace, _ = await thread(partial(pool.borrow, refs.head(repository.top), task=analyzer.TASK, number=1))
    try:
        async with Supervisor() as supervisor:
            opened = asked.open(_assignment(repository, asked, workspace), spawn=supervisor.spawn, watch=lambda _: None)
            async with opened as conversation:
                asking = repository.redact(analyzer.prompt(requirement, _tech(repository)))
                text = asking.replace(prompts.RESULT, str(workspace.result))
                return await _patiently(conversation, text, repository.settings.limits, name)
    finally:
        with anyio.CancelScope(shield=True):
            await thread(partial(pool.give_back, workspace))
            await thread(pool.close)


def _tech(repository: Repository) -> str:
    """Where somebody wrote down what the project is made of; git does not know it, so no worktree has it."""
    path = repository.top / ".workflow" / "project-tech.json"
    return str(path) if path.is_file() else ""


async def _patiently(conversation: Conversation, text: str, limits: Limits, name: str) -> Assessment | str:
    """Waited for, urged once, and given up."""
    for prompt, seconds in ((text, limits.interactive), (prompts.URGE, limits.urged)):
        with anyio.move_on_after(seconds):
            match await conversation.send(prompt):
                case Answer(body=body):
                    return analyzer.decode(body)
                case AgentFailure(message=message):
                    return message
    return f"{name} was urged once and gave no result within {limits.interactive + limits.urged:g} s"


def _assignment(repository: Repository, agent: Agent, workspace: Workspace) -> Assignment:
    limits = repository.settings.limits
    return Assignment(
        task=analyzer.TASK,
        role="analyzer",
        attempt=1,
        session="",
        session_dir="",
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=analyzer.schema(),
        permissions=Permissions(write=False, shell=repository.settings.allows_shell(Role.architect)),
        # Never the first to end: whoever waits also urges, and says so.
        limit=2 * (limits.interactive + limits.urged),
        environment=allowed_environment(os.environ, agent.needs) | {"TMPDIR": str(workspace.temp)},
    )
