"""Carries out one command at a time, and records what was seen. It never decides."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from iterdev.core import ids, prompts
from iterdev.core.collaboration import external_packages
from iterdev.core.limits import providers
from iterdev.core.results import Discovery
from iterdev.core.session import conflict_tasks
from iterdev.core.session import events as session_events
from iterdev.core.session.decide import Start
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import WRITERS, Role, TaskId
from iterdev.engine import collaboration
from iterdev.engine.shared_limits import Outside
from iterdev.execution.context import Mark
from iterdev.execution.contract import Executor, Job
from iterdev.execution.kept_work import thread
from iterdev.host.git import commits, landing
from iterdev.store.session_folder.discoveries import NAME, add, read
from iterdev.store.session_folder.projector import Edited, Projector, Refused
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import critic, sprints

COALESCE = 0.3
"""Seconds within which further changes of the session folder wait for the next writing."""
REST = 20
"""How many times as long as the last writing took: a great table must not keep the engine busy with its files."""


class Performer:
    def __init__(
        self,
        top: Path,
        *,
        outside: Outside,
        projector: Projector,
        instructions: Mapping[Role, str],
        mark: Mark,
        now: Callable[[], float],
        show: Callable[[State], None],
    ) -> None:
        self._top, self._outside, self._projector = top, outside, projector
        self._mark, self._now, self._show = mark, now, show
        self._instructions = instructions
        self._rests_until = 0.0
        self._projected_seq = 0
        self._changed: tuple[str, tuple[str, ...]] = ("", ())
        self.is_behind = False
        """Something was recorded that the session folder does not show yet."""

    async def catch_up(self, log: SessionLog) -> State:
        """Folds what others wrote, and takes over what is news outside and what a person changed in tasks.csv."""
        log.refresh()
        if news := self._outside.exchange(log.state):
            self.append(log, *news)
        changed = self._read_table(log, strict=not log.state.running)
        await self.project(log, urgent=changed)
        return log.state

    def _read_table(self, log: SessionLog, *, strict: bool) -> bool:
        """Takes over what was changed in tasks.csv, unless it may be an agent's word; True if something happened."""
        look = self._projector.edits_beside_agents if log.state.running else self._projector.edits
        match look(log.state, strict=strict):
            case Refused() as refused:
                events: list[session_events.Event] = [session_events.Warned(_refusal(log.state, refused))]
            case Edited(rows=rows, missing=missing):
                events = [session_events.TableEdited(rows)] if rows else []
                events += [session_events.Warned(_restored(missing))] if missing else []
        if events:
            self.append(log, *events)
        return bool(events)

    async def record(self, log: SessionLog, events: Sequence[session_events.Event]) -> None:
        self.append(log, *events)
        urgent = (
            session_events.WaveStarted,
            session_events.WaveMerged,
            session_events.GateOpened,
            session_events.TasksAdded,
            session_events.Finished,
            session_events.ConvergenceForced,
        )
        judged = [
            event
            for event in events
            if isinstance(
                event, session_events.RoundStarted | session_events.ConvergenceForced | session_events.ReviewPassed
            )
        ]
        # A round has one decision on the board, the first: one that another round follows has not converged.
        for event in sorted(judged, key=lambda event: isinstance(event, session_events.ReviewPassed)):
            await self._note_round(log.state, event)
        await self.project(log, urgent=any(isinstance(event, urgent) for event in events))

    async def start(self, log: SessionLog, executor: Executor, command: Start) -> None:
        task = log.state.tasks[command.task]
        checkpoint = self._restored(log, task)
        state = log.state
        job = await self._job(state, task, command, checkpoint)
        self.append(log, session_events.AttemptStarted(task.id, command.number, command.agent, state.tip))
        self.is_behind = True
        await executor.submit(job)

    def _restored(self, log: SessionLog, task: Task) -> str:
        """What the task laid down when it was last at work; one that cannot be read is told of, and begins afresh."""
        if task.id not in log.state.checkpoints:
            return ""
        found = collaboration.kept(log.state, self._top / log.state.session.folder, task.id)
        if isinstance(found, collaboration.NothingRestored):
            self.append(log, session_events.Warned(f"{task.id} begins afresh: {found.why}"))
            return ""
        self.append(log, collaboration.restoring(found, task.id))
        return json.dumps(found.data, ensure_ascii=False)

    async def ended(self, log: SessionLog, ended: session_events.AttemptEnded) -> None:
        # The last moment at which an edit may be the agent's.
        self._read_table(log, strict=True)
        self.append(log, ended)
        if isinstance(ended.outcome, session_events.Done):
            await self._add_discoveries(log.state, ended.task, ended.outcome.discoveries)

    def tell(self, log: SessionLog, message: session_events.MessageSent) -> None:
        """Puts a message on the bus; its file is extended when the engine next looks up."""
        self.append(log, message)
        self.is_behind = True

    def changed(self, log: SessionLog) -> None:
        """An agent's tool wrote to the log; the engine looks up and follows."""
        self.is_behind = True
        self._show(log.state)

    async def land(self, log: SessionLog, task: TaskId) -> None:
        state = log.state
        row, progress = state.tasks[task], state.progress[task]
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
        self._mark(f"landing wanted {task}")
        branch = ids.branch(state.session.id)
        move = partial(landing.land, self._top, branch, progress.commit, label, worked_on=progress.base, tip=state.tip)
        landed = await thread(move)
        self._mark(f"landed {task}")
        if landed.conflicts:
            self.append(log, session_events.LandingRefused(task, landed.conflicts, landed.tip))
        else:
            self.append(log, session_events.Landed(task, landed.tip))

    def append(self, log: SessionLog, *events: session_events.Event) -> None:
        kinds = " ".join(type(event).__name__ for event in events)
        self._mark(f"before {kinds}")
        log.record(*events)
        self._mark(f"after {kinds}")
        self._show(log.state)

    async def project(self, log: SessionLog, *, urgent: bool) -> None:
        """Brings the session folder up to date, at once or when some time has passed."""
        state, now = log.state, self._now()
        if state.seq == self._projected_seq:
            return
        if not urgent and now < self._rests_until:
            self.is_behind = True
            return
        self.is_behind = False
        self._mark("folder wanted")
        await thread(partial(self._projector.write, state))
        self._mark("folder written")
        written = self._now()
        self._rests_until = written + max(COALESCE, REST * (written - now))
        self._projected_seq = state.seq

    async def _job(self, state: State, task: Task, command: Start, checkpoint: str) -> Job:
        session = state.session
        folder = self._top / session.folder
        changed = await self._changed_files(session.base, state.tip)
        discoveries = await thread(partial(read, folder / NAME))
        around = prompts.Surroundings(
            session_dir=str(folder),
            board_path=str(folder / NAME),
            discoveries=tuple(f"- {line.worker} {line.type}: {_as_json(line.data)}" for line in discoveries),
            changed=changed,
            tools=True,
            instructions=self._instructions.get(task.role, ""),
            checkpoint=checkpoint,
        )
        needs = external_packages.needed(state.dependencies, state.ancestors(task.id)) if task.role in WRITERS else ()
        return Job(
            session=session.id,
            session_dir=str(folder),
            task=task,
            number=command.number,
            agent=command.agent,
            replaceable=bool(providers.others(state, task.id, command.agent)),
            base=state.tip,
            prompt=prompts.render(state, task, around),
            limit=command.limit,
            session_base=session.base,
            changed=changed,
            merging=conflict_tasks.merging(state, task.id),
            planned=sprints.planned_files(state, task),
            baseline=state.baseline,
            needs=needs,
            news_of=tuple(one for one in needs if state.dependencies.latest(one) is None),
            overridden=tuple(state.dependencies.overridden),
        )

    async def _changed_files(self, base: str, tip: str) -> tuple[str, ...]:
        """What the session has changed so far; asked of git once for each landing."""
        if self._changed[0] != tip:
            self._changed = (tip, await thread(partial(commits.changed_files, self._top, base, tip)))
        return self._changed[1]

    async def _note_round(
        self,
        state: State,
        event: session_events.RoundStarted | session_events.ConvergenceForced | session_events.ReviewPassed,
    ) -> None:
        """What was decided after a round, for everybody to read; round 0 is the first work."""
        task = event.task if isinstance(event, session_events.ReviewPassed) else event.raised_by[0]
        review = state.reviews.get(task)
        data: dict[str, object] = {
            "sprint": state.tasks[task].sprint,
            "round": state.tasks[task].round,
            "signal": "REVISION" if isinstance(event, session_events.RoundStarted) else "CONVERGE",
            "critical_count": critic.critical_count(review) if review else 0,
            "score": state.progress[task].score,
        }
        await self._add_discoveries(state, task, [Discovery("gc_decision", data)])

    async def _add_discoveries(self, state: State, task: TaskId, discoveries: Sequence[Discovery]) -> None:
        if discoveries:
            path = self._top / state.session.folder / NAME
            await thread(partial(add, path, discoveries, worker=task, ts=ids.moment(self._now())))


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
