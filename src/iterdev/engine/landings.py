"""Lands the work of tasks on the session's branch, and has work that waits to land tested as one tree."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from iterdev.core import ids
from iterdev.core.rules import branch_updates, landings, outcomes
from iterdev.core.session.attempts import LandingTestReport
from iterdev.core.session.landing_events import LandingTestStarted
from iterdev.core.session.state import State
from iterdev.core.session.task_table import NO_AGENT
from iterdev.core.types import TaskId
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect, Executor, Job
from iterdev.host.git import commits, landing
from iterdev.host.threads import in_thread
from iterdev.store.session_log import Rule, SessionLog


class Landings:
    def __init__(
        self,
        repository: Repository,
        log: SessionLog,
        effect: Effect,
        transact: Callable[[str, Rule], None],
        warn: Callable[[str], None],
    ) -> None:
        self._settings, self._top, self._log = repository.settings, repository.top, log
        self._effect, self._transact, self._warn = effect, transact, warn

    async def land(self, task: TaskId) -> None:
        state = self._log.state
        commit, label = _work(state, task)
        worked_on, tip = state.tasks.progress[task].base, state.branch.tip
        move = partial(landing.land, self._top, commit, label, worked_on=worked_on, tip=tip)
        with self._effect("land", task=task):
            landed = await in_thread(move)
        if landed.conflicts:
            self._refuse(task, landed.conflicts, landed.tip)
        else:
            self._transact("Landed", lambda state, _: outcomes.landed(state, self._log.team, task, landed.tip))
        self._warn(landed.note)

    async def test(self, executor: Executor, tasks: tuple[TaskId, ...]) -> None:
        """Has the work tested as far as git can merge it; the first work that does not merge is in conflict."""
        state = self._log.state
        works, tip = [_work(state, task) for task in tasks], state.branch.tip
        with self._effect("merge landings", landing=", ".join(tasks)):
            merged = await in_thread(landing.merge_in_order, self._top, tip, works)
        if not merged.count:
            self._refuse(tasks[0], merged.conflicts, tip)
            return
        together = tasks[: merged.count]
        job = await self._job(state, together, merged.commit)
        started = LandingTestStarted(tasks=together, tip=tip, commit=merged.commit)
        self._transact("LandingTestStarted", lambda _state, _at: (started,))
        await executor.submit(replace(job, fence=self._log.state.seq))

    def tested(self, report: LandingTestReport) -> None:
        self._transact("LandingTestEnded", lambda state, _: landings.tested(state, self._log.team, report))

    def _refuse(self, task: TaskId, files: tuple[str, ...], tip: str) -> None:
        refused = partial(outcomes.landing_refused, team=self._log.team, task=task, files=files, tip=tip)
        self._transact("LandingRefused", lambda state, _: refused(state))

    async def _job(self, state: State, tasks: tuple[TaskId, ...], commit: str) -> Job:
        # An update is compared with the user's branch as it brings it in: what fails there is not its fault.
        updates = filter(None, (branch_updates.brought_in(state, task) for task in reversed(tasks)))
        team, base = self._log.team, next(updates, state.branch.base)
        row, progress = state.tasks.plan[tasks[0]], state.tasks.progress[tasks[0]]
        return Job(
            session=state.session.id,
            shared_name=ids.shared_name(state.session.id, state.session.suffix),
            task=row,
            role=team.roles[row.role],
            number=progress.number,
            agent=NO_AGENT,
            settings=self._settings,
            base=commit,
            session_base=base,
            prompt="",
            schema={},
            limit=state.policy.attempt_limit,
            changed=await in_thread(commits.changed_files, self._top, base, commit),
            baseline=team.baseline(state) if base == state.branch.base else (),
            pass_rate=team.pass_rate(state),
            together=tasks,
        )


def _work(state: State, task: TaskId) -> tuple[str, landing.Label]:
    """The commit of a task that waits to land, and what its merge is called."""
    row, progress = state.tasks.plan[task], state.tasks.progress[task]
    if progress.commit is None:
        raise AssertionError(f"{task} has nothing to land")
    label = landing.Label(
        session=state.session.id,
        task=task,
        number=progress.number,
        role=row.role,
        agent=progress.agent,
        title=row.title,
    )
    return progress.commit, label
