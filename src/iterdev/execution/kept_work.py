"""What an attempt did to its workspace and its surroundings: kept, and looked at."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import anyio.to_thread
import msgspec

from iterdev.core.session.conflicts import Merging
from iterdev.core.session.events import Done, Outcome
from iterdev.core.types import WRITERS, Role
from iterdev.execution.context import Kit
from iterdev.execution.contract import Job
from iterdev.host.git import assisted_merge, landing, worktrees
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Workspace

S = TypeVar("S")
T = TypeVar("T")


async def thread(function: Callable[[], T]) -> T:
    """Git and files are plain calls; they run beside the loop so that agents are never kept waiting."""
    return await anyio.to_thread.run_sync(function)


def side_by_side(one: Callable[[], S], other: Callable[[], T]) -> tuple[S, T]:
    with ThreadPoolExecutor(1) as helper:
        found = helper.submit(other)
        return one(), found.result()


def label(job: Job) -> landing.Label:
    task = job.task
    return landing.Label(
        session=job.session, task=task.id, number=job.number, role=task.role, agent=job.agent, title=task.title
    )


async def begin_merge(job: Job, kit: Kit, workspace: Workspace, merging: Merging) -> None:
    kit.mark(f"merge wanted {job.task.id}")
    await thread(partial(assisted_merge.begin, workspace.tree, job.base, merging.commit, label(job)))
    kit.mark(f"merge begun {job.task.id}")


async def keep(job: Job, kit: Kit, workspace: Workspace, *, brings: str = "") -> str | None:
    """Commits what an attempt left; for a role that should not have written, first a look whether it did."""
    await thread(partial(git_objects.adopt, workspace, job.base))
    if job.task.role not in WRITERS and await thread(partial(worktrees.is_untouched, workspace.tree, job.base)):
        return None
    kit.mark(f"commit wanted {job.task.id}")
    commit = await thread(partial(landing.keep, kit.top, workspace.tree, job.base, label(job), brings=brings))
    kit.mark(f"commit kept {job.task.id}")
    return commit


async def with_kept_work(job: Job, kit: Kit, workspace: Workspace, outcome: Outcome) -> Outcome:
    """An attempt that did not succeed may still have written something worth having."""
    if outcome.commit:
        return outcome
    if job.merging is not None and await thread(partial(assisted_merge.is_as_begun, kit.top, workspace.tree)):
        return outcome
    return msgspec.structs.replace(outcome, commit=await keep(job, kit, workspace))


async def observed(job: Job, kit: Kit, workspace: Workspace, done: Done) -> Done:
    """Adds what the attempt did that its role should not have done, as far as it can be seen."""
    notes = list(done.notes)
    untouched, touched = await thread(
        partial(side_by_side, partial(_is_settled, workspace, job, done), kit.checkout.news)
    )
    if untouched:
        kit.pool.vouch(workspace, done.commit or job.base)
    elif job.task.role not in WRITERS:
        await keep(job, kit, workspace)
        notes.append(f"{job.task.id}: the {job.task.role} changed files; that was set aside as {label(job).ref}")
    elif job.task.role is Role.developer and done.commit:
        ref = await thread(partial(landing.keep_late, kit.top, workspace.tree, done.commit, label(job)))
        notes.append(f"{job.task.id}: files changed after the work was handed in; that was set aside as {ref}")
    if strays := workspace.strays():
        notes.append(f"{job.task.id}: {job.agent} wrote outside its workspace: {', '.join(strays)}")
    if touched:
        notes.append(f"{job.task.id}: your checkout changed meanwhile: {', '.join(touched)}")
    return msgspec.structs.replace(done, notes=tuple(notes))


def _is_settled(workspace: Workspace, job: Job, done: Done) -> bool:
    """Whether the workspace holds what was handed in, and nothing else."""
    git_objects.adopt(workspace, job.base)
    if done.commit:
        worktrees.settle(workspace.tree, done.commit)
    return worktrees.is_untouched(workspace.tree, done.commit or job.base)
