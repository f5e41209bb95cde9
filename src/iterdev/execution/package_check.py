"""Checks the external packages that a task needs, in the workspace in which its agent would work."""

import anyio
import msgspec

from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.results import Dependency
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.host.workspaces.pool import Workspace


async def check_packages(job: Job, context: AttemptContext, workspace: Workspace) -> tuple[PackageCheck, ...]:
    """What is found of each package that the task needs; all are looked up at once."""
    if not job.needs:
        return ()
    # Most sessions declare no package; those that do can wait for these modules to load.
    from iterdev.host.packages import registry  # noqa: PLC0415
    from iterdev.host.packages.shell import Shell  # noqa: PLC0415

    env = context.environment(job, workspace)
    shell = Shell(tree=workspace.tree, temp=workspace.temp, env=env, spawn=context.spawn)
    found: dict[int, PackageCheck] = {}

    async def look_up(place: int, dependency: Dependency) -> None:
        checked = await registry.check(dependency, shell)
        if dependency in job.news_of and checked.status is PackageStatus.ok:
            newest = await registry.update(dependency, checked.actual_version, shell)
            checked = msgspec.structs.replace(checked, newest=newest)
        found[place] = msgspec.convert(context.redact.everywhere(msgspec.to_builtins(checked)), PackageCheck)

    async with anyio.create_task_group() as group:
        for place, dependency in enumerate(job.needs):
            group.start_soon(look_up, place, dependency)
    return tuple(found[place] for place in sorted(found))
