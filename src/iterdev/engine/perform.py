"""Carries out one command at a time, and records what was seen. It never decides."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from iterdev.core import ids, prompts
from iterdev.core.collaboration import external_packages
from iterdev.core.results import Discovery
from iterdev.core.rules import conflict_tasks, outcomes
from iterdev.core.rules.schedule import Start
from iterdev.core.session.attempts import AttemptReport, Success
from iterdev.core.session.events import (
    AttemptStarted,
    Event,
    Finished,
    GateOpened,
    TableEdited,
    TasksAdded,
    TeamEvent,
    Warned,
    WaveMerged,
    WaveStarted,
)
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import Settings
from iterdev.core.types import Role, TaskId
from iterdev.engine.shared_limits import SharedLimits
from iterdev.engine.team_tools import NoCheckpoint, restored_event, stored_checkpoint
from iterdev.execution.context import in_thread
from iterdev.execution.contract import Effect, Executor, Job
from iterdev.host.git import commits, landing
from iterdev.store.session_folder import discoveries
from iterdev.store.session_folder.projector import Edited, Projector, Refused
from iterdev.store.session_log import Rule, SessionLog

COALESCE = 0.3
"""Seconds within which further changes of the session folder wait for the next writing."""
REST = 20
"""How many times as long as the last writing took: a large table must not keep the engine busy with its files."""
URGENT = (WaveStarted, WaveMerged, GateOpened, TasksAdded, Finished, TeamEvent)
"""Events after which the session folder is written at once."""


class RepositoryFacts(Struct, frozen=True, kw_only=True):
    top: Path
    settings: Settings
    instructions: Mapping[Role, str]
    """What the user wrote for each role."""


class Performer:
    def __init__(
        self,
        repository: RepositoryFacts,
        log: SessionLog,
        *,
        limits: SharedLimits,
        projector: Projector,
        effect: Effect,
        show: Callable[[State], None],
    ) -> None:
        self._repository, self._top, self._log = repository, repository.top, log
        self._limits, self._projector = limits, projector
        self._effect, self._now, self._show = effect, log.now, show
        self._rests_until = 0.0
        self._projected_seq = 0
        self._changed: tuple[str, tuple[str, ...]] = ("", ())
        self.is_behind = False
        """Something was recorded that the session folder does not show yet."""

    async def catch_up(self) -> State:
        """Folds what others wrote, and takes over shared limits and what a person changed in tasks.csv."""
        log = self._log
        log.refresh()
        if news := self._limits.exchange(log.state):
            self.append(*news)
        changed = self._read_table(strict=not log.state.attempts.running)
        await self.project(urgent=changed)
        return log.state

    def _read_table(self, *, strict: bool) -> bool:
        """Takes over what was changed in tasks.csv, unless an agent may have written it; True if something happened."""
        state, team = self._log.state, self._log.team
        events: list[Event] = []
        match self._projector.edits(state, strict=strict, beside_agents=bool(state.attempts.running)):
            case Refused() as refused:
                events = [Warned(_refusal(state, refused))]
            case Edited(rows=rows, missing=missing):
                if rows:
                    events = [TableEdited(tuple(row.edit for row in rows)), *team.table_edited(state, rows)]
                events += [Warned(_restored(missing))] if missing else []
        if events:
            self.append(*events)
        return bool(events)

    async def record(self, events: Sequence[Event]) -> None:
        self.append(*events)
        found = self._log.team.discoveries(self._log.state, events)
        for task, discovery in found:
            await self._add_discoveries(task, [discovery])
        await self.project(urgent=any(isinstance(event, URGENT) for event in events))

    async def start(self, executor: Executor, command: Start) -> None:
        task = self._log.state.tasks.plan[command.task]
        checkpoint = self._restored(task)
        state = self._log.state
        job = await self._job(state, task, command, checkpoint)
        self.append(AttemptStarted(task.id, command.number, command.agent, state.branch.tip))
        self.is_behind = True
        await executor.submit(job)

    def _restored(self, task: Task) -> str:
        """What the last attempt at the task saved; an unreadable checkpoint is a warning."""
        state = self._log.state
        if task.id not in state.checkpoints:
            return ""
        found = stored_checkpoint(state, self._top / state.session.folder, task.id)
        if isinstance(found, NoCheckpoint):
            self.append(Warned(f"{task.id} begins afresh: {found.why}"))
            return ""
        self.append(restored_event(found, task.id))
        return json.dumps(found.data, ensure_ascii=False)

    async def ended(self, report: AttemptReport) -> None:
        # The last moment at which an edit may be the agent's.
        self._read_table(strict=True)
        self._transact("AttemptEnded", lambda state, at: outcomes.attempt_ended(state, self._log.team, report, at))
        if isinstance(report.outcome, Success):
            await self._add_discoveries(report.task, report.outcome.result.discoveries)

    def changed(self) -> None:
        """A tool of an agent wrote to the log; the loop looks up and follows."""
        self.is_behind = True
        self._show(self._log.state)

    async def land(self, task: TaskId) -> None:
        state, team = self._log.state, self._log.team
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
        branch, tip = ids.branch(state.session.id), state.branch.tip
        move = partial(landing.land, self._top, branch, progress.commit, label, worked_on=progress.base, tip=tip)
        with self._effect("land", task=task):
            landed = await in_thread(move)
        if files := landed.conflicts:
            refused = partial(outcomes.landing_refused, task=task, files=files, tip=landed.tip)
            self._transact("LandingRefused", lambda state, _: refused(state, team))
        else:
            self._transact("Landed", lambda state, _: outcomes.landed(state, team, task, landed.tip))

    def append(self, *events: Event) -> None:
        kinds = " ".join(dict.fromkeys(type(event).__name__ for event in events))
        self._transact(kinds, lambda _state, _at: events)

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
        written = self._now()
        self._rests_until = written + max(COALESCE, REST * (written - now))
        self._projected_seq = state.seq

    async def _job(self, state: State, task: Task, command: Start, checkpoint: str) -> Job:
        session, team = state.session, self._log.team
        role, schema = team.roles[task.role], team.result_schema(task.role)
        changed = await self._changed_files(session.base, state.branch.tip)
        found = await in_thread(discoveries.read, self._top / session.folder / discoveries.NAME)
        context = prompts.PromptContext(
            board=discoveries.NAME,
            discoveries=tuple(f"- {line.worker} {line.type}: {_as_json(line.data)}" for line in found),
            changed=changed,
            instructions=self._repository.instructions.get(task.role, ""),
            checkpoint=checkpoint,
        )
        needs = external_packages.needed(state.packages, state.tasks.ancestors(task.id)) if role.writes else ()
        return Job(
            session=session.id,
            task=task,
            role=role,
            number=command.number,
            agent=command.agent,
            settings=self._repository.settings,
            base=state.branch.tip,
            session_base=session.base,
            prompt=prompts.render(state, task, role, context, team.prompt_parts(state, task, context), schema),
            schema=schema,
            limit=command.limit,
            changed=changed,
            merge=conflict_tasks.merge_of(state, task.id),
            planned=team.planned_files(state, task),
            baseline=team.baseline(state),
            pass_rate=team.pass_rate(state),
            replaceable=bool(outcomes.other_agents(state, task.id, command.agent)),
            needs=needs,
            news_of=tuple(one for one in needs if state.packages.latest(one) is None),
            overridden=tuple(state.packages.overridden),
        )

    async def _changed_files(self, base: str, tip: str) -> tuple[str, ...]:
        """What the session has changed so far; asked of git once for each landing."""
        if self._changed[0] != tip:
            self._changed = (tip, await in_thread(commits.changed_files, self._top, base, tip))
        return self._changed[1]

    async def _add_discoveries(self, task: TaskId, found: Sequence[Discovery]) -> None:
        if found:
            path = self._top / self._log.state.session.folder / discoveries.NAME
            await in_thread(discoveries.add, path, found, worker=task, ts=ids.moment(self._now()))


def _restored(missing: Sequence[TaskId]) -> str:
    return f"tasks.csv had lost {', '.join(missing)}, put back; to leave a task out, set its status to skipped"


def _refusal(state: State, refused: Refused) -> str:
    how = f"stop with Ctrl-C, edit tasks.csv, and go on with `iterdev resume {state.session.id}`"
    return (
        f"a change of tasks.csv while agents were at work was not taken over ({refused.why}) "
        f"and is kept as {refused.kept}; to make it, {how}"
    )


def _as_json(data: Mapping[str, object]) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)
