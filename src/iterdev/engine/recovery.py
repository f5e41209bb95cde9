"""Recovers a session whose engine died: the work of attempts that never ended is kept, then they are ended."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from iterdev.core import ids
from iterdev.core.rules import outcomes
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import AttemptReport
from iterdev.core.session.events import Event, Interrupted
from iterdev.core.session.state import State
from iterdev.execution.contract import Effect
from iterdev.host.git import landing, refs
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Borrower, Pool, Workspace
from iterdev.store.session_log import SessionLog


def recover(log: SessionLog, top: Path, pool: Pool, effect: Effect) -> None:
    """Afterwards no attempt is open and no workspace is lent out."""
    for workspace, borrower in list(pool.leftovers()):
        with effect("keep leftover work", task=borrower.task):
            _keep(log, top, workspace, borrower)
            pool.give_back(workspace)
    for task, started in list(log.state.attempts.running.items()):
        commit = refs.resolve(top, ids.kept_ref(log.session, task, started.number))
        # The count of requests is lost. There was one, except where iterdev runs the tests before an agent is asked.
        role = log.team.roles[log.state.tasks.plan[task].role]
        requests = 0 if role.procedure is Procedure.verify else 1
        report = AttemptReport(task=task, number=started.number, requests=requests, outcome=Interrupted(commit=commit))
        with effect("record", events="AttemptEnded"):
            log.transact(partial(_ended, log, report))


def _ended(log: SessionLog, report: AttemptReport, state: State, at: float) -> Sequence[Event]:
    return outcomes.attempt_ended(state, log.team, report, at)


def _keep(log: SessionLog, top: Path, workspace: Workspace, borrower: Borrower) -> None:
    tasks = log.state.tasks
    known = {str(task): (value, tasks.progress[task]) for task, value in tasks.plan.items()}
    task, progress = known.get(borrower.task, (None, None))
    label = landing.Label(
        session=log.session,
        task=borrower.task,
        number=borrower.number,
        role=task.role if task else "unknown",
        agent=progress.agent if progress else "unknown",
        title=f"{task.title if task else borrower.task} (interrupted)",
    )
    git_objects.adopt(workspace, borrower.base)
    landing.keep_interrupted(top, workspace.tree, borrower.base, label)
