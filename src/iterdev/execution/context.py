"""What an attempt on this machine works with, and how it starts programs in a workspace."""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.agents.contract import Agent, AgentEvent, Permissions
from iterdev.core.results import Usage
from iterdev.core.settings import Settings
from iterdev.core.types import WRITERS, Role, TaskId
from iterdev.engine.tool_server.server import ToolDesk
from iterdev.execution.contract import Job
from iterdev.host.git.checkout_watch import Checkout
from iterdev.host.processes.spawn import Spawn
from iterdev.host.sandbox.bubblewrap import Access, Sandbox
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.host.workspaces.ports import Ports
from iterdev.store.session_folder import discoveries

Mark = Callable[[str], None]
"""Called before and after every effect and every entry of the journal; the crash matrix kills the engine there."""

Watch = Callable[[str, AgentEvent], None]
"""Hears what the agent of a task says."""


class Kit(Struct, frozen=True, kw_only=True):
    top: Path
    settings: Settings
    agent: Callable[[str], Agent]
    """An agent by its name, looked at before its first use."""
    pool: Pool
    checkout: Checkout
    ports: Ports
    spawn: Spawn
    sandbox: Sandbox | None
    redact: Redactor
    mark: Mark
    watch: Watch
    tools: ToolDesk
    objection: Callable[[TaskId, Usage], str]
    """Why an attempt at the task, which has spent this much, may not ask its agent again."""

    def permissions(self, role: Role) -> Permissions:
        return Permissions(
            write=role in WRITERS,
            shell=self.settings.allows_shell(role),
            network=self.settings.allows_network(role),
        )

    def environment(self, workspace: Workspace, agent: str | None = None) -> dict[str, str]:
        """What a program in the workspace may see, with a temp dir, ports and containers of its own."""
        allowed = allowed_environment(os.environ, self._named_variables(agent) if agent else ())
        own = {
            "TMPDIR": str(workspace.temp),
            "COMPOSE_PROJECT_NAME": f"iterdev-{hashlib.sha256(str(workspace.slot).encode()).hexdigest()[:12]}",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
        }
        if ports := self.ports.of(workspace.slot):
            own |= {"ITERDEV_PORT": str(ports[0]), "ITERDEV_PORTS": str(len(ports))}
        # Tests may use git in repositories of their own, where nothing of ours is to be ignored.
        return allowed | own | (untracked_files.overlooking(workspace.tree) if agent else {})

    def _named_variables(self, agent: str) -> tuple[str, ...]:
        """Those that the agent needs to find its provider, and those that the configuration adds."""
        configured = self.settings.agents.get(agent)
        return (*self.agent(agent).needs, *(configured.env if configured else ()))


def for_agent(kit: Kit, workspace: Workspace, job: Job, agent: Agent, environment: Mapping[str, str]) -> Spawn:
    """An agent keeps the network, without which it reaches neither its model nor the team's tools."""
    files = (*agent.folders(environment), str(Path(job.session_dir, discoveries.NAME)))
    access = Access(write=kit.permissions(job.task.role).write, network=True, files=files)
    return kit.sandbox.around(kit.spawn, workspace, access) if kit.sandbox else kit.spawn


def for_setup(kit: Kit, workspace: Workspace) -> Spawn:
    return kit.sandbox.around(kit.spawn, workspace, Access(write=True, network=True)) if kit.sandbox else kit.spawn


def for_tests(kit: Kit, workspace: Workspace) -> Spawn:
    access = Access(write=True, network=kit.permissions(Role.tester).network)
    return kit.sandbox.around(kit.spawn, workspace, access) if kit.sandbox else kit.spawn
