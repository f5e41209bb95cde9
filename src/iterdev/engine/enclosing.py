"""How programs are started for a workspace: as they are, or in the sandbox if the user wants one."""

from collections.abc import Mapping
from pathlib import Path

from iterdev.agents.contract import Agent
from iterdev.core.words import Role
from iterdev.engine.jobs import Job
from iterdev.engine.kit import Kit
from iterdev.host.processes import Spawn
from iterdev.host.sandbox import Access
from iterdev.host.workspaces import Workspace
from iterdev.store import board


def for_agent(kit: Kit, workspace: Workspace, job: Job, agent: Agent, environment: Mapping[str, str]) -> Spawn:
    """An agent keeps the network, without which it reaches neither its model nor the team's tools."""
    files = (*agent.folders(environment), str(Path(job.session_dir, board.NAME)))
    access = Access(write=kit.permissions(job.task.role).write, network=True, files=files)
    return kit.sandbox.around(kit.spawn, workspace, access) if kit.sandbox else kit.spawn


def for_setup(kit: Kit, workspace: Workspace) -> Spawn:
    return kit.sandbox.around(kit.spawn, workspace, Access(write=True, network=True)) if kit.sandbox else kit.spawn


def for_tests(kit: Kit, workspace: Workspace) -> Spawn:
    access = Access(write=True, network=kit.permissions(Role.tester).network)
    return kit.sandbox.around(kit.spawn, workspace, access) if kit.sandbox else kit.spawn
