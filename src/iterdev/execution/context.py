"""What an attempt works with on the host that executes it, and how it starts programs in its workspace."""

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from iterdev.agents.contract import Agent, Permissions
from iterdev.execution.contract import Effect, Job, SessionLink
from iterdev.host.environments import environment
from iterdev.host.git import landing, scans
from iterdev.host.git.checkout import CheckoutWatch
from iterdev.host.git.pinned_settings import PinnedSettings
from iterdev.host.processes.spawn import Process, Spawn
from iterdev.host.sandbox.bubblewrap import Access, Sandbox
from iterdev.host.secrets import Redactor, allowed_environment
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Pool, Workspace
from iterdev.host.workspaces.ports import Ports


class AttemptContext(Struct, frozen=True, kw_only=True):
    top: Path
    """The repository, or a clone of it."""
    agent: Callable[[str], Agent]
    """An agent by its name, probed before its first use."""
    pool: Pool
    belongings: Path | None = None
    """Where the untracked files are that a workspace needs, if not in the repository."""
    checkout: CheckoutWatch | None
    """The user's checkout, where it is on this host."""
    ports: Ports
    spawn: Spawn
    sandbox: Sandbox | None
    redact: Redactor
    effect: Effect
    link: SessionLink
    is_mirror: bool = False
    """Whether `top` is the mirror of a host, which has the refs of sessions of several engines."""
    git_settings: PinnedSettings | None = None
    """The git settings of the user's repository, where it is on this host."""
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Those of this process, read once."""
    start_environment: Callable[["Attempt"], None] | None = None
    """Makes the environment of the session's base beside the attempts, where this host can do that."""


class Attempt(Struct, frozen=True):
    job: Job
    context: AttemptContext
    workspace: Workspace

    @property
    def label(self) -> landing.Label:
        job, task = self.job, self.job.task
        return landing.Label(
            session=job.session,
            task=task.id,
            number=job.number,
            role=task.role,
            agent=job.agent,
            title=task.title,
            body=job.commit_body,
            shared_name=job.shared_name if self.context.is_mirror else "",
        )

    @property
    def permissions(self) -> Permissions:
        role, settings = self.job.role, self.job.settings
        return Permissions(
            write=role.writes, shell=settings.allows_shell(role.name), network=settings.allows_network(role.name)
        )

    def effect(self, name: str, **fields: str | int) -> AbstractContextManager[None]:
        together = self.job.together
        subject = {"landing": ", ".join(together)} if together else {"task": str(self.job.task.id)}
        return self.context.effect(name, **subject, **fields)

    def environment(self, *, for_agent: bool = False) -> dict[str, str]:
        """What a program in the workspace may see, with the environment of its project."""
        return self.outer_environment(for_agent=for_agent) | dict(environment.current(self.workspace).variables)

    def outer_environment(self, *, for_agent: bool = False) -> dict[str, str]:
        """The same without the environment of the project, but with a temp dir, ports and containers of its own."""
        slot = self.workspace.slot
        own = {
            "TMPDIR": str(self.workspace.temp),
            "COMPOSE_PROJECT_NAME": f"iterdev-{hashlib.sha256(str(slot).encode()).hexdigest()[:12]}",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
        }
        if ports := self.context.ports.of(slot):
            own |= {"ITERDEV_PORT": str(ports[0]), "ITERDEV_PORTS": str(len(ports))}
        if not for_agent:
            # Tests may use git in repositories of their own, where nothing of ours is to be ignored.
            return allowed_environment(self.context.variables) | own
        configured = self.job.settings.agents.get(self.job.agent)
        named = (*self.context.agent(self.job.agent).needs, *(configured.env if configured else ()))
        return (
            allowed_environment(self.context.variables, named)
            | own
            | untracked_files.git_variables(self.workspace.tree)
        )

    async def programs(self) -> Path | None:
        """Where the files are that the command of the agent names, if they belong to the repository."""
        configured, pool, base = self.job.settings.agents.get(self.job.agent), self.context.pool, self.job.session_base
        words = (*configured.command, *configured.acp) if configured else ()
        if not words or pool.has_looked_for(base, words):
            return pool.base_files(base, words) if words else None
        return await in_thread(pool.base_files, base, words)

    def spawn(
        self,
        *,
        write: bool = True,
        network: bool = True,
        files: tuple[str, ...] = (),
        documents: Path | None = None,
        programs: Path | None = None,
        scratch: bool = False,
        registries: bool = False,
    ) -> Spawn:
        """Starts programs in the workspace, inside the sandbox if there is one; `scratch` lets them write there too.

        Where nobody was at work yet, `registries` lets them read what the user has set for package managers.
        """
        context, shown = self.context, environment.current(self.workspace).folders
        readable = (*shown, *(str(place) for place in (documents, programs) if place))
        folders = (self.workspace.scratch,) if scratch else ()
        trusted = registries and not self.workspace.was_used
        access = Access(
            write=write, network=network, files=files, readable=readable, folders=folders, registries=trusted
        )
        spawn = context.sandbox.around(context.spawn, self.workspace, access) if context.sandbox else context.spawn
        return _occupying(self.workspace.tree, spawn)


def _occupying(tree: Path, spawn: Spawn) -> Spawn:
    """Starts programs that may change the tree."""

    @asynccontextmanager
    async def started(
        argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AsyncIterator[Process]:
        with scans.occupied(tree):
            async with spawn(argv, cwd=cwd, env=env, limit=limit) as process:
                yield process

    return started
