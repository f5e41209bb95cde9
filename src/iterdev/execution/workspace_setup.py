"""Makes a new worktree ready to work in: what it needs, the project's own setup, and a wait until it answers."""

from functools import partial

import anyio

from iterdev.core.errors import HostError
from iterdev.execution.context import Kit, for_setup
from iterdev.execution.kept_work import thread
from iterdev.host.processes.spawn import Finished, run
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Workspace

PAUSE = 0.5
"""Seconds between two looks whether a workspace is ready."""


async def set_up(kit: Kit, workspace: Workspace) -> None:
    project = kit.settings.project
    bring = partial(untracked_files.bring, kit.top, workspace.tree, copies=project.copy, links=project.link)
    await thread(bring)
    if project.setup:
        finished = await _run(kit, workspace, project.setup, kit.settings.limits.setup)
        if finished.code or finished.timed_out:
            raise HostError(
                f"The setup command `{project.setup}` failed with {finished.code}: {_last_words(kit, finished)}",
                hint="mend `setup` under [project] in iterdev.toml",
            )
    if project.ready:
        await _until_ready(kit, workspace, project.ready)


async def _until_ready(kit: Kit, workspace: Workspace, command: str) -> None:
    limit = kit.settings.limits.ready
    deadline = anyio.current_time() + limit
    while (left := deadline - anyio.current_time()) > 0:
        finished = await _run(kit, workspace, command, left)
        if finished.code == 0 and not finished.timed_out:
            return
        await anyio.sleep(PAUSE)
    raise HostError(
        f"A worktree was not ready within {limit:g} s: `{command}` failed with {finished.code}: "
        f"{_last_words(kit, finished)}",
        hint="mend `setup` or `ready` under [project] in iterdev.toml, or raise `ready` under [limits]",
    )


async def _run(kit: Kit, workspace: Workspace, command: str, limit: float) -> Finished:
    argv = ["sh", "-c", command]
    spawn = for_setup(kit, workspace)
    return await run(spawn, argv, cwd=str(workspace.tree), env=kit.environment(workspace), limit=limit)


def _last_words(kit: Kit, finished: Finished) -> str:
    words = kit.redact((finished.stderr or finished.stdout).decode("utf-8", "replace")).strip().splitlines()
    return words[-1] if words else "no message"
