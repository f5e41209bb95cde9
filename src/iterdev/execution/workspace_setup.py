"""Makes a new worktree ready to work in: untracked files, the project's own setup, and a wait until it is ready."""

from functools import partial

import anyio

from iterdev.core.errors import HostError
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.kept_work import in_thread
from iterdev.host.processes.spawn import Finished, run
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Workspace

PAUSE = 0.5
"""Seconds between two looks whether a workspace is ready."""


async def set_up(job: Job, context: AttemptContext, workspace: Workspace) -> None:
    project = job.settings.project
    bring = partial(untracked_files.bring, context.top, workspace.tree, copies=project.copy, links=project.link)
    await in_thread(bring)
    if project.setup:
        with context.effect("set up workspace", task=job.task.id, command=project.setup):
            finished = await _run(job, context, workspace, project.setup, job.settings.limits.setup)
        if finished.code or finished.timed_out:
            raise HostError(
                f"The setup command `{project.setup}` failed with {finished.code}: {_last_line(context, finished)}",
                hint="fix `setup` under [project] in iterdev.toml",
            )
    if project.ready:
        await _until_ready(job, context, workspace, project.ready)


async def _until_ready(job: Job, context: AttemptContext, workspace: Workspace, command: str) -> None:
    limit = job.settings.limits.ready
    deadline = anyio.current_time() + limit
    while (left := deadline - anyio.current_time()) > 0:
        finished = await _run(job, context, workspace, command, left)
        if finished.code == 0 and not finished.timed_out:
            return
        await anyio.sleep(PAUSE)
    raise HostError(
        f"A worktree was not ready within {limit:g} s: `{command}` failed with {finished.code}: "
        f"{_last_line(context, finished)}",
        hint="fix `setup` or `ready` under [project] in iterdev.toml, or raise `ready` under [limits]",
    )


async def _run(job: Job, context: AttemptContext, workspace: Workspace, command: str, limit: float) -> Finished:
    env = context.environment(job, workspace)
    spawn = context.spawn_setup(workspace)
    return await run(spawn, ["sh", "-c", command], cwd=str(workspace.tree), env=env, limit=limit)


def _last_line(context: AttemptContext, finished: Finished) -> str:
    lines = context.redact((finished.stderr or finished.stdout).decode("utf-8", "replace")).strip().splitlines()
    return lines[-1] if lines else "no message"
