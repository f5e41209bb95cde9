"""The tools of an attempt on this machine, gathered once by `wire`."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from msgspec import Struct

from iterdev.agents.contract import Agent, AgentEvent, Permissions
from iterdev.core.results import Usage
from iterdev.core.settings import Settings
from iterdev.core.words import WRITERS, Role, TaskId
from iterdev.engine.toolserver import ToolDesk
from iterdev.host import belongings, git
from iterdev.host.ports import Ports
from iterdev.host.processes import Spawn
from iterdev.host.sandbox import Sandbox
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.workspaces import Pool, Workspace

Mark = Callable[[str], None]
"""Called before and after every effect and every entry of the journal; the crash matrix kills the engine there."""

Watch = Callable[[str, AgentEvent], None]
"""Hears what the agent of a task says."""


class Checkout:
    """The user's own checkout: looked at, never touched."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._lock = Lock()
        self._stamp: tuple[object, ...] = ()
        self._branches: list[str] = []
        self._seen = self._look()

    def news(self) -> list[str]:
        """Files and branches that changed since the last look; agents have no business there."""
        with self._lock:
            before, self._seen = self._seen, self._look()
        return sorted(entry[3:] for entry in self._seen - before)

    def _look(self) -> frozenset[str]:
        files = (entry for entry in git.status(self._top).split("\0") if entry)
        stamp = git.branches_stamp(self._top)
        if stamp != self._stamp:
            self._stamp, self._branches = stamp, git.branches(self._top)
        return frozenset((*files, *(f"   branch {branch}" for branch in self._branches)))


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
        return allowed | own | (belongings.overlooking(workspace.tree) if agent else {})

    def _named_variables(self, agent: str) -> tuple[str, ...]:
        """Those that the agent needs to find its provider, and those that the configuration adds."""
        configured = self.settings.agents.get(agent)
        return (*self.agent(agent).needs, *(configured.env if configured else ()))
