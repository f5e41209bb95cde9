"""Prepares a workspace before the agent is asked: untracked files, the project's setup, the packages of the task."""

from collections.abc import Mapping, Sequence

import anyio
import msgspec

from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.core.results import Dependency
from iterdev.execution.context import Attempt
from iterdev.host import paths
from iterdev.host.environments import environment
from iterdev.host.environments.environment import Environment
from iterdev.host.processes.spawn import ProgramResult, run
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files

PAUSE = 0.5
"""Seconds between two checks whether a workspace is ready."""


async def set_up(attempt: Attempt, *, fresh: bool) -> None:
    """Prepares a new workspace completely; in one that was used before, only the environment may have to be another."""
    if attempt.job.base != attempt.job.session_base:
        attempt.workspace.mark_used()
    if fresh:
        await _set_up_files(attempt)
    await _provide_environment(attempt)
    if fresh:
        await _until_ready(attempt)


async def set_up_completely(attempt: Attempt) -> None:
    """Prepares a new workspace at the session's base for any attempt."""
    await _set_up_files(attempt)
    await update_environment(attempt, attempt.job.session_base)
    await _until_ready(attempt)


async def _provide_environment(attempt: Attempt) -> None:
    """Who only reads, while nothing is changed yet, has no use for an environment that has to be made first."""
    job, start = attempt.job, attempt.context.start_environment
    if start is None or job.role.writes or job.base != job.session_base:
        await update_environment(attempt, job.base)
    elif (await update_environment(attempt, job.base, may_install=False)).pending:
        start(attempt)


async def _set_up_files(attempt: Attempt) -> None:
    project, limits = attempt.job.settings.project, attempt.job.settings.limits
    source, tree = attempt.context.belongings or attempt.context.top, attempt.workspace.tree
    await in_thread(untracked_files.bring, source, tree, copies=project.copy, links=project.link)
    if project.setup:
        with attempt.effect("set up workspace", command=project.setup), untracked_files.ignoring_new_files(tree):
            finished = await _run(attempt, project.setup, limits.setup)
        if finished.code or finished.timed_out:
            raise HostError(
                f"The setup command `{project.setup}` {_failure(attempt, finished)}",
                hint="fix `setup` under [project] in iterdev.toml",
            )
        environment.made_by_setup(attempt.workspace, attempt.outer_environment())


async def update_environment(attempt: Attempt, commit: str, *, may_install: bool = True) -> Environment:
    """Makes what the project needs as it is in a commit, unless it is there or the user's `setup` makes it."""
    job, context = attempt.job, attempt.context
    if job.settings.project.setup:
        return environment.current(attempt.workspace)

    trusted = commit == job.session_base and not attempt.workspace.was_used

    async def call(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
        return await run(attempt.spawn(registries=trusted), argv, cwd=cwd, env=env, limit=limit)

    with attempt.effect("make environment"):
        made = await environment.prepare(
            attempt.workspace,
            cache=paths.environments(),
            checkout=context.top if context.checkout else None,
            trusted=trusted,
            hard_links=context.sandbox is None,
            run=call,
            variables=attempt.outer_environment(),
            limit=job.settings.limits.setup,
            may_install=may_install,
        )
    if made.new or made.problems:
        context.link.environment_made(made.new, made.problems)
    return made


async def _until_ready(attempt: Attempt) -> None:
    command, limit = attempt.job.settings.project.ready, attempt.job.settings.limits.ready
    if not command:
        return
    deadline = anyio.current_time() + limit
    while (left := deadline - anyio.current_time()) > 0:
        finished = await _run(attempt, command, left)
        if finished.code == 0 and not finished.timed_out:
            return
        await anyio.sleep(PAUSE)
    raise HostError(
        f"A worktree was not ready within {duration(limit)}: `{command}` {_failure(attempt, finished)}",
        hint="fix `setup` or `ready` under [project] in iterdev.toml, or raise `ready` under [limits]",
    )


async def _run(attempt: Attempt, command: str, limit: float) -> ProgramResult:
    env, tree = attempt.environment(), str(attempt.workspace.tree)
    return await run(attempt.spawn(registries=True), ["sh", "-c", command], cwd=tree, env=env, limit=limit)


def _failure(attempt: Attempt, finished: ProgramResult) -> str:
    text = attempt.context.redact((finished.stderr or finished.stdout).decode("utf-8", "replace"))
    return f"failed with {finished.code}: {(text.strip().splitlines() or ['no message'])[-1]}"


async def check_packages(attempt: Attempt) -> tuple[PackageCheck, ...]:
    """What is found of each external package that the task needs; all are looked up at once."""
    job, context, workspace = attempt.job, attempt.context, attempt.workspace
    if not job.needs:
        return ()
    # Most sessions declare no package; those that do can wait for these modules to load.
    from iterdev.host.packages import registry  # noqa: PLC0415
    from iterdev.host.packages.shell import Shell  # noqa: PLC0415

    # The project's own interpreter is a program that an agent can have written.
    spawn = attempt.spawn(write=False)
    shell = Shell(tree=workspace.tree, temp=workspace.temp, env=attempt.environment(), spawn=spawn)
    found: dict[Dependency, PackageCheck] = {}

    async def look_up(dependency: Dependency) -> None:
        checked = await registry.check(dependency, shell)
        if dependency in job.news_of and checked.status is PackageStatus.ok:
            newest = await registry.update(dependency, checked.actual_version, shell)
            checked = msgspec.structs.replace(checked, newest=newest)
        found[dependency] = context.redact.struct(checked)

    async with anyio.create_task_group() as group:
        for dependency in job.needs:
            group.start_soon(look_up, dependency)
    return tuple(found[dependency] for dependency in job.needs)
