"""The work of an attempt in its workspace: committed, kept under a ref, and inspected."""

import errno
from pathlib import Path

import msgspec

from iterdev.core.errors import HostError
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.execution.context import Attempt
from iterdev.host.git import commits, confinement, full_disk, landing, merge, pinned_settings, refs, worktrees
from iterdev.host.git.command import GitFailed
from iterdev.host.threads import in_thread
from iterdev.host.workspaces.pool import Workspace

Unsuccessful = Failed | Limited | Interrupted | Unmet
DAMAGE = (GitFailed, OSError, UnicodeError)
"""What goes wrong in a workspace that an agent has damaged, and also on a machine that fails."""
MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
"""Errors that no agent brings about in its workspace alone."""


def restore(attempt: Attempt) -> None:
    """Undoes what an agent did to its workspace rather than in it: a tree renamed, a link or git's folder damaged."""
    _restore(attempt.context.top, attempt.workspace, attempt.job.base)


def _restore(top: Path, workspace: Workspace, base: str) -> None:
    workspace.restore_name()
    if workspace.tree.is_dir():
        worktrees.relink(top, workspace.tree, base)
        worktrees.adopt(workspace.tree, base)


def keep_left(top: Path, workspace: Workspace, base: str, label: landing.Label) -> None:
    """Keeps what an attempt left in a workspace, whose engine or host was killed."""
    _restore(top, workspace, base)
    landing.keep_interrupted(top, workspace.tree, base, label)


def is_intact(attempt: Attempt) -> bool:
    """Whether there is nothing to undo, as far as a few stamps of files say; in the sandbox they do not say enough."""
    tree = attempt.workspace.tree
    return tree.is_dir() and worktrees.is_linked(attempt.context.top, tree) and not confinement.is_confined(tree)


async def damaged(attempt: Attempt, error: Exception) -> str:
    """Says what is wrong with the workspace; raises the error if the repository or the machine fails too."""
    of_host = isinstance(error, HostError) and not isinstance(error, GitFailed)
    of_machine = full_disk.is_reason(str(error).encode()) or (isinstance(error, OSError) and error.errno in MACHINE)
    if of_host or of_machine or not await in_thread(refs.can_be_written, attempt.context.top):
        raise error
    return f"the workspace was damaged during the attempt ({error})"


def keep(attempt: Attempt, *, merged: str = "") -> str | None:
    """Commits what an attempt left; for a role that must not write, only if it did."""
    job, tree = attempt.job, attempt.workspace.tree
    restore(attempt)
    if not job.role.writes and tree.is_dir() and worktrees.is_untouched(tree, job.base):
        return None
    with attempt.effect("commit"):
        return landing.keep(attempt.context.top, tree, job.base, attempt.label, merged=merged)


def hand_in(attempt: Attempt) -> tuple[str, tuple[str, ...]] | Failed | None:
    """Commits a change, and lists its files; nothing if there is none, a failure if it is not based on the session."""
    job, top, tree = attempt.job, attempt.context.top, attempt.workspace.tree
    restore(attempt)
    if not tree.is_dir():
        return Failed(error=f"{job.agent} said it was done")
    if landing.left_history(top, tree, job.base):
        return Failed(error=f"{job.agent} left the history it was given ({job.base[:12]})")
    commit = keep(attempt, merged=job.merge.commit if job.merge else "")
    return (commit, commits.changed_files(top, job.base, commit)) if commit else None


async def with_kept_work(attempt: Attempt, outcome: Unsuccessful) -> Unsuccessful:
    """An attempt that did not succeed may still have written something worth keeping.

    A workspace from which it cannot be taken is set aside as it is.
    """
    try:
        return await _with_kept_work(attempt, outcome)
    except DAMAGE as error:
        why = await damaged(attempt, error)
        place = await in_thread(attempt.context.pool.set_aside, attempt.workspace)
        text = f"{why} and is kept as it is in {place}"
        return Failed(error=f"{text}: {outcome.error}" if isinstance(outcome, Failed) else text)


async def _with_kept_work(attempt: Attempt, outcome: Unsuccessful) -> Unsuccessful:
    job, top, tree = attempt.job, attempt.context.top, attempt.workspace.tree
    await in_thread(attempt.workspace.restore_name)
    if not tree.is_dir() and isinstance(outcome, Failed):
        outcome = msgspec.structs.replace(outcome, error=f"{deleted(attempt)}: {outcome.error}", kind=None)
    if outcome.commit or (job.merge is not None and await in_thread(merge.is_as_begun, top, tree, job.base)):
        return outcome
    return msgspec.structs.replace(outcome, commit=await in_thread(keep, attempt))


def deleted(attempt: Attempt) -> str:
    return f"the workspace {attempt.workspace.tree} was deleted during the attempt, with what was not committed in it"


async def with_notes(attempt: Attempt, success: Success) -> Success:
    """Adds notes on what the attempt did that its role should not have done, as far as it can be seen."""
    job, workspace, context = attempt.job, attempt.workspace, attempt.context
    notes, task = list(success.notes), job.task.id
    if not workspace.tree.is_dir():
        return msgspec.structs.replace(success, notes=(*notes, f"{task}: {deleted(attempt)}"))
    untouched, touched, changed = await in_thread(_inspect, attempt, success)
    if changed:
        notes.append(f"{task}: {pinned_settings.told(changed)}")
    if untouched:
        context.pool.mark_clean(workspace, success.commit or job.base)
    elif not job.role.writes:
        if await in_thread(keep, attempt):
            place = attempt.label.ref_of_session
            notes.append(f"{task}: the {job.task.role} changed files; that was set aside as {place}")
    elif job.role.procedure is Procedure.change and success.commit:
        late = await in_thread(landing.keep_late, context.top, workspace.tree, success.commit, attempt.label)
        notes += [f"{task}: files changed after the work was handed in; that was set aside as {late}"] if late else []
    if unexpected := workspace.unexpected_entries():
        notes.append(f"{task}: {job.agent} wrote outside its workspace: {', '.join(unexpected)}")
    if touched:
        notes.append(f"{task}: your checkout changed meanwhile: {', '.join(touched)}")
    return msgspec.structs.replace(success, notes=tuple(notes))


def _inspect(attempt: Attempt, success: Success) -> tuple[bool, list[str], list[str]]:
    """Whether the workspace holds exactly what was handed in; what changed in the user's checkout, and of its settings.

    Seldom does one of them have to wait for git.
    """
    context, tree, expected = attempt.context, attempt.workspace.tree, success.commit or attempt.job.base
    touched = context.checkout.changes() if context.checkout else []
    restore(attempt)
    if success.commit:
        worktrees.set_head(context.top, tree, success.commit)
    return (
        worktrees.is_untouched(tree, expected),
        touched,
        context.git_settings.changes() if context.git_settings else [],
    )
