"""The task analyzer: an agent that is asked about the requirement before the session exists."""

import os

import anyio
import msgspec

from iterdev.agents.contract import Agent, Answer, Assignment, Permissions
from iterdev.agents.registry import make_usable
from iterdev.core import prompts
from iterdev.core.errors import HostError
from iterdev.core.request import Request
from iterdev.core.settings import Settings
from iterdev.engine.repository import STATE, Repository
from iterdev.engine.run import configured_sandbox
from iterdev.execution.conversation import ask_to_finish
from iterdev.host.git import refs
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.sandbox.bubblewrap import Access, Sandbox
from iterdev.host.secrets import allowed_environment
from iterdev.host.threads import in_thread
from iterdev.host.workspaces.pool import Workspace
from iterdev.teams.contract import Analyzer


async def analyze(repository: Repository, request: Request) -> Request | str:
    """The request with the assessment of an agent, or why the agent gave no usable answer."""
    team, settings = repository.default_team, repository.settings
    analyzer, limits = team.analyzer, settings.time_limits(team.time_limits)
    if analyzer is None:
        return request
    name = request.role_agents.get(analyzer.role) or request.agent or settings.agent_for(analyzer.role)
    try:
        agent = make_usable(name, settings.agents, repository.top)
    except HostError as error:
        if repository.runs_here:
            raise
        raise HostError(f"{error.message}; it analyzes on this machine, not on a host", hint=error.hint) from error
    # Git does not track the file that describes the project, so no worktree has it.
    description = repository.top / STATE / "project-tech.json"
    about = "\n\n".join(filter(None, (request.requirement, prompts.issue_part(request.issue))))
    prompt = analyzer.prompt(about, str(description) if description.is_file() else "")
    sandbox = configured_sandbox(repository)
    pool = repository.workspaces(f"analysis-{os.getpid()}", sandbox.confine_git if sandbox else None)
    workspace, _ = await in_thread(pool.borrow, refs.head(repository.top), task=analyzer.task, number=1)
    try:
        text = repository.redact(prompt).replace(prompts.RESULT, str(workspace.result))
        # Long enough that it never ends the agent before it was asked to finish.
        limit = 2 * (limits.interactive + limits.finish)
        assignment = _assignment(analyzer, settings, agent, workspace, sandbox, limit)
        access = Access(write=False, network=True, files=tuple(agent.folders(assignment.environment)))
        async with Supervisor() as supervisor:
            spawn = sandbox.around(supervisor.spawn, workspace, access) if sandbox else supervisor.spawn
            async with agent.open(assignment, spawn=spawn, watch=lambda _: None) as conversation:
                reply = await ask_to_finish(conversation.send, text, limits, agent.name)
    finally:
        with anyio.CancelScope(shield=True):
            await in_thread(pool.give_back, workspace)
            await in_thread(pool.close)
    if not isinstance(reply, Answer):
        return reply.message
    try:
        assessment = msgspec.json.decode(reply.body, type=analyzer.answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)
    return msgspec.structs.replace(request, prepared=assessment)


def _assignment(
    analyzer: Analyzer, settings: Settings, agent: Agent, workspace: Workspace, sandbox: Sandbox | None, limit: float
) -> Assignment:
    return Assignment(
        task=analyzer.task,
        role="analyzer",
        attempt=1,
        session="",
        session_dir="",
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=msgspec.json.schema(analyzer.answer),
        permissions=Permissions(write=False, shell=settings.allows_shell(analyzer.role)),
        limit=limit,
        environment=allowed_environment(os.environ, agent.needs) | {"TMPDIR": str(workspace.temp)},
        sandboxed=sandbox is not None and not sandbox.nests,
    )
