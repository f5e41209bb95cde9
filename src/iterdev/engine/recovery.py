"""Recovers a session whose engine died: completes its rollback, its attempts, and what an engine does last."""

from pathlib import Path

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.core.rules import outcomes
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import AttemptReport
from iterdev.core.session.delivery import Accepted, AcceptUndone
from iterdev.core.session.events import (
    AttemptStarted,
    Interrupted,
    RollbackCompleted,
    RollbackFailed,
    RollbackStarted,
    Warned,
)
from iterdev.core.session.fold import replay
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.issue_tracker import session_tracker
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.execution.kept_work import keep_left
from iterdev.host.git import landing, refs, session_branch
from iterdev.host.git.session_branch import Position
from iterdev.host.git.users_branch import acceptance, interrupted_merge
from iterdev.host.workspaces.pool import Borrower, Pool, Workspace
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog


def complete_rollback(repository: Repository, log: SessionLog, effect: Effect) -> RollbackStarted | None:
    """Brings the branch and the session folder to where a rollback in the journal goes; None if there is none open."""
    rewind, tip = log.state.branch.rewind, log.state.branch.tip
    if not rewind:
        return None
    kept = f"refs/iterdev/{log.session}/rolled-back/{rewind}"
    projector = Projector(repository.folder(log.state), repository.journal, log.team)
    try:
        with effect("move branch back"):
            session_branch.rewind(repository.top, log.session, tip, kept)
    except HostError as error:
        log.record(RollbackFailed(rewind, error.message))
        raise
    entries = repository.journal.read(log.session)
    begun = ((place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, RollbackStarted))
    (*_, (place, last)) = begun
    projector.withdraw(replay(entries[:place], log.team), log.state)
    with effect("record", events="RollbackCompleted"):
        log.record(RollbackCompleted(rewind))
    with effect("write folder"):
        projector.write(log.state)
    return last


def complete_accept(repository: Repository, log: SessionLog) -> Accepted | AcceptUndone | None:
    """Records an accept, or its undoing, that git had completed; one that was cut off before that is undone.

    The branch that the session belongs to has to be checked out.
    """
    top, state, session = repository.top, log.state, log.session
    branch = state.session.branch or refs.current_branch(top)
    acceptance.require_branch(top, branch)
    done = interrupted_merge.completed(top, session, state.branch.tip)
    if done is None:
        interrupted_merge.undo(top, session, state.branch.tip)
        return None
    move, known = done.move, state.delivery.accepted
    event: Accepted | AcceptUndone
    if move.is_back:
        event, is_new = AcceptUndone(branch, done.commit), known is not None
    else:
        event = Accepted(
            branch, done.commit, before=move.before, work=move.work, style=move.style, own_author=move.own_author
        )
        is_new = known is None or (known.commit, known.before) != (event.commit, event.before)
    if is_new:
        log.record(event)
    interrupted_merge.forget(top, session)
    return event


def complete_run(repository: Repository, session: SessionId, effect: Effect) -> None:
    """Does what the last engine of a session had left to do when it ended early; nothing is started."""
    log = repository.log(session)
    with repository.lease(log):
        if repository.journal.holder(session) is None and not log.state.attempts.of_engine:
            return
        pool = repository.workspaces(session)
        complete_rollback(repository, log, effect)
        end_attempts(log, repository.top, pool, effect)
        with effect("close workspaces"):
            pool.close()
            # Work that is about to land may be on the branch already, and has not been recorded.
            tip, landing_ = log.state.branch.tip, bool(log.state.attempts.landing)
            found = Position(tip) if landing_ else session_branch.position(repository.top, session, tip)
        if found.note and found.note not in log.state.warnings:
            log.record(Warned(found.note))
        projector = Projector(repository.folder(log.state), repository.journal, log.team)
        projector.prepare()
        with effect("write folder"):
            projector.write(log.state)
        if tracker := session_tracker(repository, log):
            with effect("update tracker"):
                tracker.catch_up()
        with effect("release session"):
            repository.journal.release(session)


def end_attempts(log: SessionLog, top: Path, pool: Pool, effect: Effect) -> None:
    """Keeps the work of attempts that ended with their engine. Afterwards no workspace is in use."""
    pool.fetch_moved()
    for workspace, borrower in list(pool.leftovers()):
        with effect("keep leftover work", task=borrower.task):
            _keep_or_set_aside(log, top, pool, workspace, borrower)
    for task in log.state.attempts.of_engine:
        end_attempt(log, top, log.state.attempts.running[task], effect)


def _keep_or_set_aside(log: SessionLog, top: Path, pool: Pool, workspace: Workspace, borrower: Borrower) -> None:
    """One workspace that cannot be read must not keep the session from going on."""
    try:
        try:
            _keep(log, top, workspace, borrower)
        except HostError:
            # A git that was killed says nothing about the workspace.
            _keep(log, top, workspace, borrower)
    except (HostError, OSError, ValueError) as error:
        # If git or the disk fails for the repository too, there is nothing wrong with the workspace.
        if not refs.can_be_written(top):
            raise
        place = pool.set_aside(workspace)
        log.record(Warned(f"{borrower.task}: the work of an interrupted attempt is kept as it is in {place}: {error}"))
    pool.give_back(workspace)


def end_attempt(log: SessionLog, top: Path, started: AttemptStarted, effect: Effect) -> None:
    """Records that an open attempt was interrupted, with the work that was kept of it."""
    task, number = started.task, started.number
    commit = refs.resolve(top, ids.kept_ref(log.session, task, number))
    # The count of requests is lost. There was one, except where iterdev runs the tests before an agent is asked.
    role = log.team.roles[log.state.tasks.plan[task].role]
    requests = 0 if role.procedure is Procedure.verify else 1
    report = AttemptReport(
        task=task, number=number, fence=started.fence, requests=requests, outcome=Interrupted(commit=commit)
    )
    with effect("record", events="AttemptEnded"):
        log.transact(lambda state, at: outcomes.attempt_ended(state, log.team, report, at))


def _keep(log: SessionLog, top: Path, workspace: Workspace, borrower: Borrower) -> None:
    tasks, name, base = log.state.tasks, TaskId(borrower.task), _base(log, borrower)
    task, progress = tasks.plan.get(name), tasks.progress.get(name)
    label = landing.Label(
        session=log.session,
        task=borrower.task,
        number=borrower.number,
        role=task.role if task else "unknown",
        agent=progress.agent if progress else "unknown",
        title=f"{task.title if task else borrower.task} (interrupted)",
    )
    keep_left(top, workspace, base, label)
    if not workspace.tree.is_dir() and name in log.state.attempts.running:
        log.record(Warned(f"{name}: the workspace {workspace.tree} was deleted, with what was not committed in it"))


def _base(log: SessionLog, borrower: Borrower) -> str:
    """What the attempt began with, as the journal has it: an agent can write the file that names its workspace."""
    started = log.state.attempts.running.get(TaskId(borrower.task))
    return started.base if started and started.number == borrower.number else borrower.base
