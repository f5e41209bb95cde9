"""Recovers a session whose engine died: completes a rollback that was begun, and ends attempts that never ended."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.core.rules import outcomes
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import AttemptReport
from iterdev.core.session.events import Entry, Event, Interrupted, RollbackCompleted, RollbackFailed, RollbackStarted
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.host.git import landing, refs
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Borrower, Pool, Workspace
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog
from iterdev.teams.contract import Team


def complete_rollback(repository: Repository, log: SessionLog, effect: Effect) -> None:
    """Brings the branch and the session folder to where a rollback in the journal goes, if they are not there yet."""
    rewind, tip = log.state.branch.rewind, log.state.branch.tip
    if not rewind:
        return
    kept = f"refs/iterdev/{log.session}/rolled-back/{rewind}"
    projector = Projector(repository.folder(log.state), repository.journal, log.team)
    try:
        with effect("move branch back"):
            landing.rewind(repository.top, ids.branch(log.session), tip, kept)
    except HostError as error:
        log.record(RollbackFailed(rewind, error.message))
        raise
    entries = repository.journal.read(log.session)
    if before := replay(entries[: last_rollback(entries)[0]], log.team):
        projector.withdraw(before, log.state)
    with effect("record", events="RollbackCompleted"):
        log.record(RollbackCompleted(rewind))
    with effect("write folder"):
        projector.write(log.state)


def last_rollback(entries: Sequence[Entry]) -> tuple[int, RollbackStarted]:
    (*_, last) = (
        (place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, RollbackStarted)
    )
    return last


def end_attempts(log: SessionLog, top: Path, pool: Pool, effect: Effect) -> None:
    """Keeps the work of open attempts and ends them. Afterwards no workspace is lent out."""
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
            log.transact(partial(_ended, log.team, report))


def _ended(team: Team, report: AttemptReport, state: State, at: float) -> Sequence[Event]:
    return outcomes.attempt_ended(state, team, report, at)


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
