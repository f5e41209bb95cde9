"""The task analyzer: an agent that is asked about the requirement before the session exists."""

import os
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from iterdev.agents.contract import Agent, Answer, Assignment, Permissions
from iterdev.core import prompts
from iterdev.core.settings import Settings
from iterdev.execution.context import in_thread
from iterdev.execution.conversation import ask_to_finish
from iterdev.host.git import refs
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.teams.contract import Analyzer


class AnalyzerContext(Struct, frozen=True, kw_only=True):
    """What the analyzer works with."""

    top: Path
    settings: Settings
    redact: Redactor
    agent: Agent
    pool: Pool
    analyzer: Analyzer


async def assess(context: AnalyzerContext, requirement: str) -> object | str:
    """The agent's assessment of the requirement; a string says why there is none."""
    pool, analyzer, agent = context.pool, context.analyzer, context.agent
    workspace, _ = await in_thread(pool.borrow, refs.head(context.top), task=analyzer.task, number=1)
    try:
        prompt = context.redact(analyzer.prompt(requirement, _project_description(context.top)))
        text = prompt.replace(prompts.RESULT, str(workspace.result))
        async with Supervisor() as supervisor:
            opened = agent.open(_assignment(context, workspace), spawn=supervisor.spawn, watch=lambda _: None)
            async with opened as conversation:
                reply = await ask_to_finish(conversation.send, text, context.settings.limits, agent.name)
                return _decoded(reply.body, analyzer) if isinstance(reply, Answer) else reply.message
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(pool.give_back, workspace)
            await in_thread(pool.close)


def _project_description(top: Path) -> str:
    """The path of the file that describes the project; git does not track it, so no worktree has it."""
    path = top / ".workflow" / "project-tech.json"
    return str(path) if path.is_file() else ""


def _decoded(body: bytes, analyzer: Analyzer) -> object | str:
    """The assessment, or what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=analyzer.answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


def _assignment(context: AnalyzerContext, workspace: Workspace) -> Assignment:
    analyzer, limits = context.analyzer, context.settings.limits
    return Assignment(
        task=analyzer.task,
        role="analyzer",
        attempt=1,
        session="",
        session_dir="",
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=msgspec.json.schema(analyzer.answer),
        permissions=Permissions(write=False, shell=context.settings.allows_shell(analyzer.role)),
        # Long enough that it never ends the agent before it was asked to finish.
        limit=2 * (limits.interactive + limits.urged),
        environment=allowed_environment(os.environ, context.agent.needs) | {"TMPDIR": str(workspace.temp)},
    )
