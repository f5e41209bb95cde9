"""The task analyzer: an agent that is asked about the requirement before the session exists."""

import os
from functools import partial
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from iterdev.agents.contract import Agent, AgentFailure, Answer, Assignment, Conversation, Permissions
from iterdev.core import prompts
from iterdev.core.settings import Limits, Settings
from iterdev.execution.kept_work import in_thread
from iterdev.host.git import refs
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.teams.contract import Analyzer


class Analysis(Struct, frozen=True, kw_only=True):
    """One question to one agent."""

    top: Path
    settings: Settings
    redact: Redactor
    agent: Agent
    pool: Pool
    analyzer: Analyzer


async def assess(analysis: Analysis, requirement: str) -> object | str:
    """What the agent makes of the requirement; a string says why nothing came of it."""
    pool, analyzer = analysis.pool, analysis.analyzer
    head = refs.head(analysis.top)
    workspace, _ = await in_thread(partial(pool.borrow, head, task=analyzer.task, number=1))
    try:
        async with Supervisor() as supervisor:
            assignment = _assignment(analysis, workspace)
            opened = analysis.agent.open(assignment, spawn=supervisor.spawn, watch=lambda _: None)
            async with opened as conversation:
                prompt = analysis.redact(analyzer.prompt(requirement, _tech(analysis.top)))
                text = prompt.replace(prompts.RESULT, str(workspace.result))
                return await _ask(conversation, text, analysis)
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(partial(pool.give_back, workspace))
            await in_thread(pool.close)


def _tech(top: Path) -> str:
    """The file that describes the project; git does not know it, so no worktree has it."""
    path = top / ".workflow" / "project-tech.json"
    return str(path) if path.is_file() else ""


async def _ask(conversation: Conversation, text: str, analysis: Analysis) -> object | str:
    """Waits, asks once to finish, and gives up."""
    limits = analysis.settings.limits
    for prompt, seconds in ((text, limits.interactive), (prompts.FINISH_NOW, limits.urged)):
        with anyio.move_on_after(seconds):
            match await conversation.send(prompt):
                case Answer(body=body):
                    return _decoded(body, analysis.analyzer)
                case AgentFailure(message=message):
                    return message
    return f"{analysis.agent.name} was asked to finish and gave no result within {_seconds(limits):g} s"


def _decoded(body: bytes, analyzer: Analyzer) -> object | str:
    """The assessment, or what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=analyzer.answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


def _seconds(limits: Limits) -> float:
    return limits.interactive + limits.urged


def _assignment(analysis: Analysis, workspace: Workspace) -> Assignment:
    analyzer = analysis.analyzer
    return Assignment(
        task=analyzer.task,
        role="analyzer",
        attempt=1,
        session="",
        session_dir="",
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=msgspec.json.schema(analyzer.answer),
        permissions=Permissions(write=False, shell=analysis.settings.allows_shell(analyzer.role)),
        # Never the first to end: the one who waits also asks to finish, and says so.
        limit=2 * _seconds(analysis.settings.limits),
        environment=allowed_environment(os.environ, analysis.agent.needs) | {"TMPDIR": str(workspace.temp)},
    )
