"""Carries out one command at a time, and records the result. It never decides."""

import json
from collections.abc import Callable, Sequence

import msgspec

from iterdev.core import ids
from iterdev.core.collaboration.wisdom import Written
from iterdev.core.limits import budget, providers
from iterdev.core.limits.budget import DaySpent
from iterdev.core.results import Discovery
from iterdev.core.rules import landings, outcomes
from iterdev.core.rules.schedule import Start
from iterdev.core.session import events
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Placement, Report, Success
from iterdev.core.session.events import (
    AttemptStarted,
    EnvironmentMade,
    Event,
    TableEdited,
    TasksRemoved,
    TeamEvent,
    Warned,
)
from iterdev.core.session.gates import GateKind
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskId
from iterdev.engine.issue_tracker import session_tracker
from iterdev.engine.jobs import Jobs
from iterdev.engine.landings import Landings
from iterdev.engine.repository import Repository
from iterdev.engine.team_tools import stored_checkpoint
from iterdev.execution.contract import Effect, Executor
from iterdev.host import clock, paths, provider_pauses
from iterdev.host.threads import in_thread
from iterdev.store.daily_spending import DailySpending
from iterdev.store.journal import Journal
from iterdev.store.session_folder import discoveries
from iterdev.store.session_folder.projector import Edited, Projector, Refused
from iterdev.store.session_folder.wisdom_files import WisdomReader
from iterdev.store.session_log import Rule, SessionLog

COALESCE = 0.3
"""Seconds between two writes of the session folder, except for urgent events."""
REST = 20
"""The pause after a write, as a multiple of its duration: a large table must not keep the engine busy with files."""
URGENT = (
    *(events.WaveStarted, events.WaveMerged, events.TaskSkipped, events.TasksAdded),
    *(events.GateOpened, events.Finished),
)
"""Events after which the session folder is written at once; after those of a team it is written soon."""


class SharedLimits:
    """Provider pauses of all runs on this machine, and the day's spending in the repository."""

    def __init__(self, journal: Journal) -> None:
        self._root, self._spending = paths.state_root(), DailySpending(journal)

    def exchange(self, state: State, now: float) -> list[Event]:
        """Shares provider pauses with other runs; returns the limits that are new to the session."""
        shared = provider_pauses.read(self._root, now)
        for pause in providers.unshared_pauses(state.providers, shared, now):
            provider_pauses.write(self._root, pause)
        news: list[Event] = [*providers.shared_pauses(state.providers, state.agents, state.policy, shared, now)]
        if budget.has_day_budget(state.policy):
            began = clock.midnight(now)
            spent = self._spending.spent_since(began)
            news += [] if spent == state.spending.today else [DaySpent(began, spent)]
        return news


class Performer:
    def __init__(self, repository: Repository, log: SessionLog, effect: Effect, show: Callable[[State], None]) -> None:
        self._log, self._effect, self._now, self._show = log, effect, log.now, show
        self._limits = SharedLimits(repository.journal)
        self._folder = repository.folder(log.state)
        self.jobs = Jobs(repository, self._folder, log.team)
        self._wisdom, self._redact = WisdomReader(self._folder), repository.redact
        # An agent on a host sees only a copy of the folder.
        exposed = repository.runs_here and not repository.settings.run.sandbox
        self._projector = Projector(self._folder, repository.journal, log.team, exposed=exposed)
        self._projector.prepare()
        self._tracker = session_tracker(repository, log)
        self.landings = Landings(repository, log, effect, self._transact, self.warn)
        self._rests_until = 0.0
        self._projected_seq = 0
        self.is_behind = False
        """Events were recorded that the session folder does not show yet."""

    async def catch_up(self) -> State:
        """Folds the events of other processes, and takes over shared limits and edits of tasks.csv."""
        log = self._log
        log.refresh()
        if news := self._limits.exchange(log.state, self._now()):
            self.append(*news)
        changed = self._read_table(strict=not landings.under_way(log.state))
        await self.project(urgent=changed)
        return log.state

    def _read_table(self, *, strict: bool) -> bool:
        """Takes over edits of tasks.csv, unless an agent may have made them; True if something was recorded."""
        state, team = self._log.state, self._log.team
        edits: list[Event] = []
        removable = GateKind.plan in state.gates.open
        under_way = bool(landings.under_way(state))
        match self._projector.edits(state, strict=strict, beside_agents=under_way, removable=removable):
            case Refused() as refused:
                edits = [Warned(_refusal(state, refused))]
            case Edited(rows=rows, missing=missing):
                if rows:
                    edits = [TableEdited(tuple(row.edit for row in rows)), *team.table_edited(state, rows)]
                if missing and removable:
                    edits.append(TasksRemoved(missing))
                elif missing:
                    back = f"the rows of {', '.join(missing)} were missing in tasks.csv, and were restored"
                    edits.append(Warned(f"{back}; to leave a task out, set its status to skipped"))
        if edits:
            self.append(*edits)
        return bool(edits)

    async def record(self, decided: Sequence[Event]) -> None:
        self.append(*decided)
        for task, discovery in self._log.team.discoveries(self._log.state, decided):
            self._add_discoveries(task, [discovery])
        if any(isinstance(event, TeamEvent) for event in decided):
            self._rests_until = min(self._rests_until, self._now() + COALESCE)
        await self.project(urgent=any(isinstance(event, URGENT) for event in decided))

    async def start(self, executor: Executor, command: Start) -> None:
        task = self._log.state.tasks.plan[command.task]
        checkpoint = self._restored(task)
        self._take_over(self._wisdom.changed())
        state = self._log.state
        job = await self.jobs.make(state, task, command, checkpoint)
        self.append(AttemptStarted(task.id, command.number, command.agent, state.branch.tip, where=executor.where))
        self.is_behind = True
        await executor.submit(msgspec.structs.replace(job, fence=self._log.state.attempts.running[task.id].fence))

    def _restored(self, task: Task) -> str:
        """The checkpoint of the last attempt at the task; an unreadable one is a warning."""
        state = self._log.state
        if task.id not in state.checkpoints:
            return ""
        found = stored_checkpoint(state, self._folder, task.id)
        if isinstance(found, str):
            self.append(Warned(f"{task.id} starts over: {found}"))
            return ""
        restored, data = found
        self.append(restored)
        return json.dumps(data, ensure_ascii=False)

    async def reported(self, report: Report) -> None:
        if isinstance(report, Placement):
            self._transact("AttemptPlaced", lambda state, _: outcomes.attempt_placed(state, report))
            return
        # The last moment at which an edit may be the agent's, or that of a test which an agent wrote.
        self._read_table(strict=True)
        if isinstance(report, LandingTestReport):
            self.landings.tested(report)
            return
        self._transact("AttemptEnded", lambda state, at: outcomes.attempt_ended(state, self._log.team, report, at))
        outcomes.require_hosts(self._log.state, report)
        self._take_over(await in_thread(self._clean_board, report, complete=not self._log.state.attempts.running))

    def _clean_board(self, report: AttemptReport, *, complete: bool) -> list[Written]:
        """Removes secrets from the board, adds what the attempt discovered, and returns what was written since."""
        discoveries.redact(self._folder / discoveries.NAME, self._redact, complete=complete)
        if isinstance(report.outcome, Success):
            self._add_discoveries(report.task, report.outcome.result.discoveries)
        return self._wisdom.changed()

    def _take_over(self, written: Sequence[Written]) -> None:
        """Records what people and agents added to the wisdom files and the board since the last call."""
        if written:
            clean = [msgspec.structs.replace(entry, text=self._redact(entry.text)) for entry in written]
            if new := outcomes.taken_over(self._log.state, clean, self._now()):
                self.append(*new)

    def changed(self) -> None:
        """Called when a tool of an agent has written to the log."""
        self.is_behind = True
        self._show(self._log.state)

    def warn(self, text: str) -> None:
        """Records a warning, if there is one and it is new."""
        if text and text not in self._log.state.warnings:
            self.append(Warned(text))

    def environment_made(self, made: Sequence[str], problems: Sequence[str]) -> None:
        """Records what was installed for the programs in a workspace, and as a warning what could not be."""
        if made:
            self.append(*(EnvironmentMade(self._redact(text)) for text in made))
        for text in problems:
            self.warn(self._redact(text))
        self.is_behind = True

    def append(self, *facts: Event) -> None:
        kinds = " ".join(dict.fromkeys(type(event).__name__ for event in facts))
        with self._effect("record", events=kinds):
            self._log.record(*facts)
        self._show(self._log.state)

    def _transact(self, kinds: str, rule: Rule) -> None:
        with self._effect("record", events=kinds):
            self._log.transact(rule)
        self._show(self._log.state)

    async def project(self, *, urgent: bool) -> None:
        """Brings the session folder up to date, at once or when some time has passed."""
        state, now = self._log.state, self._now()
        if state.seq == self._projected_seq:
            return
        if not urgent and now < self._rests_until:
            self.is_behind = True
            return
        self.is_behind = False
        with self._effect("write folder"):
            await in_thread(self._projector.write, state)
        if self._tracker:
            with self._effect("update tracker"):
                await in_thread(self._tracker.catch_up)
        written = self._now()
        self._rests_until = written + max(COALESCE, REST * (written - now))
        self._projected_seq = state.seq

    def _add_discoveries(self, task: TaskId, found: Sequence[Discovery]) -> None:
        if found:
            discoveries.add(self._folder / discoveries.NAME, found, worker=task, ts=ids.moment(self._now()))


def _refusal(state: State, refused: Refused) -> str:
    how = f"stop with Ctrl-C, edit tasks.csv, and continue with `iterdev resume {state.session.id}`"
    return (
        f"an edit of tasks.csv while agents were at work was rejected ({refused.why}) "
        f"and is saved as {refused.kept}; to make it, {how}"
    )
