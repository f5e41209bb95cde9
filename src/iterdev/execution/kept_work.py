"""The work of an attempt in its workspace: merged, committed, kept under a ref, and looked at."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import anyio.to_thread
import msgspec

from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import Success
from iterdev.core.session.conflicts import MergeInProgress
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.host.git import assisted_merge, landing, worktrees
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Workspace

S = TypeVar("S")
T = TypeVar("T")
Unsuccessful = Failed | Limited | Interrupted | Unmet


async def in_thread(function: Callable[[], T]) -> T:
    """Git and files are blocking calls; they run beside the event loop."""
    return await anyio.to_thread.run_sync(function)


def _side_by_side(one: Callable[[], S], other: Callable[[], T]) -> tuple[S, T]:
    with ThreadPoolExecutor(1) as helper:
        found = helper.submit(other)
        return one(), found.result()


def label(job: Job) -> landing.Label:
    task = job.task
    return landing.Label(
        session=job.session, task=task.id, number=job.number, role=task.role, agent=job.agent, title=task.title
    )


async def begin_merge(job: Job, context: AttemptContext, workspace: Workspace, merge: MergeInProgress) -> None:
    with context.effect("begin merge", task=job.task.id):
        await in_thread(partial(assisted_merge.begin, workspace.tree, job.base, merge.commit, label(job)))


async def keep(job: Job, context: AttemptContext, workspace: Workspace, *, merges: str = "") -> str | None:
    """Commits what an attempt left; for a role that must not write, only if it did."""
    await in_thread(partial(git_objects.adopt, workspace, job.base))
    if not job.role.writes and await in_thread(partial(worktrees.is_untouched, workspace.tree, job.base)):
        return None
    with context.effect("commit", task=job.task.id):
        return await in_thread(partial(landing.keep, context.top, workspace.tree, job.base, label(job), brings=merges))


async def with_kept_work(
    job: Job, context: AttemptContext, workspace: Workspace, outcome: Unsuccessful
) -> Unsuccessful:
    """An attempt that did not succeed may still have written something worth keeping."""
    if outcome.commit:
        return outcome
    if job.merge is not None and await in_thread(partial(assisted_merge.is_as_begun, context.top, workspace.tree)):
        return outcome
    return msgspec.structs.replace(outcome, commit=await keep(job, context, workspace))


async def observed(job: Job, context: AttemptContext, workspace: Workspace, success: Success) -> Success:
    """Adds notes on what the attempt did that its role should not have done, as far as it can be seen."""
    notes, task = list(success.notes), job.task.id
    untouched, touched = await in_thread(
        partial(_side_by_side, partial(_is_settled, workspace, job, success), partial(_checkout_news, context))
    )
    if untouched:
        context.pool.vouch(workspace, success.commit or job.base)
    elif not job.role.writes:
        await keep(job, context, workspace)
        notes.append(f"{task}: the {job.task.role} changed files; that was set aside as {label(job).ref}")
    elif job.role.procedure is Procedure.change and success.commit:
        ref = await in_thread(partial(landing.keep_late, context.top, workspace.tree, success.commit, label(job)))
        notes.append(f"{task}: files changed after the work was handed in; that was set aside as {ref}")
    if strays := workspace.strays():
        notes.append(f"{task}: {job.agent} wrote outside its workspace: {', '.join(strays)}")
    if touched:
        notes.append(f"{task}: your checkout changed meanwhile: {', '.join(touched)}")
    return msgspec.structs.replace(success, notes=tuple(notes))


def _checkout_news(context: AttemptContext) -> list[str]:
    return context.checkout.news() if context.checkout else []


def _is_settled(workspace: Workspace, job: Job, success: Success) -> bool:
    """Whether the workspace holds what was handed in, and nothing else."""
    git_objects.adopt(workspace, job.base)
    if success.commit:
        worktrees.settle(workspace.tree, success.commit)
    return worktrees.is_untouched(workspace.tree, success.commit or job.base)
