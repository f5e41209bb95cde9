"""What is found when a session is taken up: the work of attempts that never ended is kept, then they end."""

from pathlib import Path

from iterdev.core.session.events import AttemptEnded, Interrupted
from iterdev.core.types import Role
from iterdev.execution.context import Mark
from iterdev.host.git import landing, refs
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Leftover, Pool
from iterdev.store.session_log import SessionLog


def recover(log: SessionLog, top: Path, pool: Pool, mark: Mark) -> None:
    """Afterwards no attempt is open and no workspace is lent out."""
    for leftover in list(pool.leftovers()):
        mark(f"rescue wanted {leftover.task}")
        _rescue(log, top, pool, leftover)
        mark(f"rescued {leftover.task}")
    for task, started in list(log.state.running.items()):
        ref = f"refs/iterdev/{log.session}/{task}/{started.number}"
        commit = refs.resolve(top, ref)
        mark(f"interruption noted {task}")
        # Nobody is left who counted the requests. There was one, but for a tester, whom nobody may have had to ask.
        requests = 0 if log.state.tasks[task].role is Role.tester else 1
        log.record(AttemptEnded(task, started.number, requests, Interrupted(commit=commit)))


def _rescue(log: SessionLog, top: Path, pool: Pool, leftover: Leftover) -> None:
    known = {str(task): (value, log.state.progress[task]) for task, value in log.state.tasks.items()}
    task, progress = known.get(leftover.task, (None, None))
    label = landing.Label(
        session=log.session,
        task=leftover.task,
        number=leftover.number,
        role=task.role if task else "developer",
        agent=progress.agent if progress else "unknown",
        title=f"{task.title if task else leftover.task} (interrupted)",
    )
    git_objects.adopt(leftover.workspace, leftover.base)
    landing.rescue(top, leftover.workspace.tree, leftover.base, label)
    pool.give_back(leftover.workspace)
