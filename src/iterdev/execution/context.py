"""What an attempt works with on the host that executes it, and how it starts programs in a workspace."""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.agents.contract import Agent, Permissions
from iterdev.execution.contract import Effect, Job, SessionLink
from iterdev.host.git.checkout_watch import CheckoutWatch
from iterdev.host.processes.spawn import Spawn
from iterdev.host.sandbox.bubblewrap import Access, Sandbox
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.host.workspaces.ports import Ports


class AttemptContext(Struct, frozen=True, kw_only=True):
    top: Path
    """The repository, or a clone of it."""
    agent: Callable[[str], Agent]
    """An agent by its name, probed before its first use."""
    pool: Pool
    checkout: CheckoutWatch | None
    """The user's checkout, where it is on this host."""
    ports: Ports
    spawn: Spawn
    sandbox: Sandbox | None
    redact: Redactor
    effect: Effect
    link: SessionLink

    def permissions(self, job: Job) -> Permissions:
        role = job.role
        return Permissions(
            write=role.writes,
            shell=job.settings.allows_shell(role.name),
            network=job.settings.allows_network(role.name),
        )

    def environment(self, job: Job, workspace: Workspace, *, for_agent: bool = False) -> dict[str, str]:
        """What a program in the workspace may see, with a temp dir, ports and containers of its own."""
        allowed = allowed_environment(os.environ, self._named_variables(job) if for_agent else ())
        own = {
            "TMPDIR": str(workspace.temp),
            "COMPOSE_PROJECT_NAME": f"iterdev-{hashlib.sha256(str(workspace.slot).encode()).hexdigest()[:12]}",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
        }
        if ports := self.ports.of(workspace.slot):
            own |= {"ITERDEV_PORT": str(ports[0]), "ITERDEV_PORTS": str(len(ports))}
        # Tests may use git in repositories of their own, where nothing of ours is to be ignored.
        return allowed | own | (untracked_files.overlooking(workspace.tree) if for_agent else {})

    def _named_variables(self, job: Job) -> tuple[str, ...]:
        """Those that the agent needs to find its provider, and those that the configuration adds."""
        configured = job.settings.agents.get(job.agent)
        return (*self.agent(job.agent).needs, *(configured.env if configured else ()))

    def spawn_agent(
        self, job: Job, workspace: Workspace, agent: Agent, environment: Mapping[str, str], board: Path
    ) -> Spawn:
        """An agent keeps the network, without which it reaches neither its model nor the team's tools."""
        files = (*agent.folders(environment), str(board))
        return self._sandboxed(workspace, Access(write=job.role.writes, network=True, files=files))

    def spawn_setup(self, workspace: Workspace) -> Spawn:
        return self._sandboxed(workspace, Access(write=True, network=True))

    def spawn_tests(self, job: Job, workspace: Workspace) -> Spawn:
        return self._sandboxed(workspace, Access(write=True, network=self.permissions(job).network))

    def _sandboxed(self, workspace: Workspace, access: Access) -> Spawn:
        return self.sandbox.around(self.spawn, workspace, access) if self.sandbox else self.spawn
