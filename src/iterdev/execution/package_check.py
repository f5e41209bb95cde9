"""The look at external packages before an agent is asked, in the workspace in which it would work."""

import anyio
import msgspec

from iterdev.core.collaboration.external_packages import Checked
from iterdev.core.results import Dependency
from iterdev.execution.context import Kit
from iterdev.execution.contract import Job
from iterdev.host.workspaces.pool import Workspace


async def packages(job: Job, kit: Kit, workspace: Workspace) -> tuple[Checked, ...]:
    """What is found of each package that the task needs; all are looked for at once."""
    if not job.needs:
        return ()
    # Most sessions declare no package; those that do can wait for these modules to load.
    from iterdev.host.packages import registry  # noqa: PLC0415
    from iterdev.host.packages.shell import Shell  # noqa: PLC0415

    shell = Shell(tree=workspace.tree, temp=workspace.temp, env=kit.environment(workspace), spawn=kit.spawn)
    found: dict[int, Checked] = {}

    async def look(place: int, dependency: Dependency) -> None:
        checked = await registry.check(dependency, shell)
        if dependency in job.news_of and checked.status == "ok":
            news = await registry.update(dependency, checked.actual_version, shell)
            checked = msgspec.structs.replace(checked, newest=news)
        found[place] = msgspec.convert(kit.redact.everywhere(msgspec.to_builtins(checked)), Checked)

    async with anyio.create_task_group() as group:
        for place, dependency in enumerate(job.needs):
            group.start_soon(look, place, dependency)
    return tuple(found[place] for place in sorted(found))
