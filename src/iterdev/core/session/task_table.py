"""The task table as it is now: the plan, what became of each task, and what follows for those that depend on it."""

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import Draft, OwnMap, without
from iterdev.core.limits.clock_changes import ClockChanged, moved_end, moved_start
from iterdev.core.limits.providers import AgentReplaced, ProviderPaused
from iterdev.core.results import NO_USAGE, Usage
from iterdev.core.session import events, graph
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.tasks import Task
from iterdev.core.types import FINAL, UNSUCCESSFUL, Mode, Role, Status, TaskId, TaskKind

EVENTS = (
    *get_args(events.PlanEvent | events.TaskEvent | events.WaveEvent | events.AttemptEvent),
    *(events.EngineStarted, events.GateAnswered, events.RollbackStarted, events.UpdateStarted),
    *(events.AttemptPlaced, LandingTakenOut, AgentReplaced, ProviderPaused, ClockChanged),
)


NO_AGENT = "iterdev"
"""In place of an agent's name, where iterdev itself does the work."""


class Progress(Struct, frozen=True, kw_only=True, gc=False):
    status: Status = Status.pending
    left_out: bool = False
    """A person skipped it; tasks that depend on it run without it."""
    findings: str = ""
    error: str = ""
    requests: int = 0
    """How often an agent was asked to do it."""
    number: int = 0
    """The last number that an attempt or a repeated request had; the next attempt has this number plus one."""
    attempt: int = 0
    """The number of the last attempt."""
    agent: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    base: str = ""
    """The commit that the last attempt worked on."""
    commit: str | None = None
    unmerged_commits: tuple[str, ...] = ()
    """Commits of earlier attempts that did not succeed; kept, and shown to the next one."""
    failure: str = ""
    """Why the last of them failed; shown to the next one."""
    rolled_back: tuple[tuple[str | None, str], ...] = ()
    """Commits that a rollback undid, with the reason for it."""
    changed: tuple[str, ...] = ()
    usage: Usage = Usage()
    resolved_debt: tuple[str, ...] = ()
    """Ids of debt that is resolved when the task is completed."""
    syntax_clean: bool = True
    """Whether every file that the last attempt changed could be read by its kind."""
    replaced_agents: tuple[str, ...] = ()
    """Agents that cannot do this task."""
    denied: tuple[str, ...] = ()
    """What agents asked permission for and did not get."""

    @property
    def is_met(self) -> bool:
        """Whether what depends on the task can start."""
        return self.status is Status.completed or self.left_out

    @property
    def is_lost(self) -> bool:
        """Whether what depends on the task can never start."""
        return self.status in UNSUCCESSFUL and not self.left_out


class Queue(Struct, frozen=True):
    """What matters for the start of a task: tasks that are equal in it start in the order of the table."""

    wave: int
    role: Role
    kind: TaskKind
    mode: Mode
    fields: object
    """What the team says of its fields (`TaskFields.for_start`)."""


def queue_of(task: Task) -> Queue:
    return Queue(task.wave, task.role, task.kind, task.mode, task.fields.for_start())


class TaskTable(Struct, frozen=True, kw_only=True):
    order: Mapping[TaskId, int] = {}
    """Every task and its place in the table."""
    plan: Mapping[TaskId, Task] = {}
    progress: Mapping[TaskId, Progress] = {}
    removed: Mapping[TaskId, Progress] = {}
    """The progress of tasks that a rollback removed."""
    blockers: Mapping[TaskId, int] = {}
    """How many dependencies a pending task still waits for."""
    dependants: Mapping[TaskId, tuple[TaskId, ...]] = {}
    ready: Mapping[TaskId, None] = {}
    queues: Mapping[Queue, Sequence[TaskId]] = {}
    """The ready tasks again, each queue in the order of the table; a table of any width has few."""
    blocked_by_failure: Mapping[TaskId, None] = {}
    """Pending tasks with a dependency that failed, or was skipped and not left out by a person."""
    open_in_wave: Mapping[int, int] = {}
    """How many tasks of each wave are not final; a wave without any is not there."""
    lowest_wave: int = 0
    """The first of these waves, or 0 if every task is final."""
    wave: int = 0
    """The wave that is under way, or 0 between waves."""
    wave_started_at: float = 0
    unplaced: Mapping[TaskId, None] = {}
    """Tasks whose attempts wait for a host."""
    unplaced_since: float = 0
    """When the first of them began to wait."""
    completed: int = 0
    """How many tasks are completed."""
    paused_until: float = 0
    """The end of the longest pause of a provider; that time is not taken from a wave."""

    def wave_clock(self, now: float) -> float:
        """The time by which a wave is measured: it stands still while an attempt waits for a host."""
        return min(now, max(self.unplaced_since, self.wave_started_at)) if self.unplaced else now

    def rows(self) -> Iterator[tuple[Task, Progress]]:
        """The table, in its order."""
        return zip(map(self.plan.__getitem__, self.order), map(self.progress.__getitem__, self.order), strict=True)

    def in_order(self, queues: Iterable[Queue]) -> Iterator[TaskId]:
        """The ready tasks of some queues, in the order of the table; only as many are examined as are taken."""
        return heapq.merge(*(self.queues[queue] for queue in queues), key=self.order.__getitem__)

    def count(self, status: Status) -> int:
        return sum(progress.status is status for progress in self.progress.values())

    def of_role(self, role: Role) -> list[Task]:
        return [task for task, _ in self.rows() if task.role == role]

    def status(self, task: TaskId) -> Status:
        return self.progress[task].status

    def unmet(self, task: TaskId) -> list[TaskId]:
        """The dependencies that a task still waits for."""
        return [dep for dep in self.plan[task].deps if not self.progress[dep].is_met]

    def ancestors(self, task: TaskId) -> list[TaskId]:
        """All tasks that a task depends on, directly or not, in the order of the table."""
        seen: set[TaskId] = set()
        queue = list(self.plan[task].deps)
        while queue:
            if (link := queue.pop()) not in seen:
                seen.add(link)
                queue += self.plan[link].deps
        return sorted(seen, key=self.order.__getitem__)


def with_queues(table: TaskTable) -> TaskTable:
    """The table with its queues recomputed from the tasks that are ready."""
    queues: dict[Queue, list[TaskId]] = {}
    for task in sorted(table.ready, key=table.order.__getitem__):
        queues.setdefault(queue_of(table.plan[task]), []).append(task)
    return replace(table, queues=queues)


class TaskTableDraft(Draft[TaskTable]):
    _order = OwnMap[TaskId, int]()
    _plan = OwnMap[TaskId, Task]()
    _progress = OwnMap[TaskId, Progress]()
    _removed = OwnMap[TaskId, Progress]()
    _blockers = OwnMap[TaskId, int]()
    _dependants = OwnMap[TaskId, tuple[TaskId, ...]]()
    _ready = OwnMap[TaskId, None]()
    _queues = OwnMap[Queue, Sequence[TaskId]]()
    _blocked_by_failure = OwnMap[TaskId, None]()
    _open_in_wave = OwnMap[int, int]()

    def __init__(self, part: TaskTable) -> None:
        super().__init__(part)
        self._own_queues: dict[Queue, list[TaskId]] = {}
        """Those that this draft has copied, and may change."""

    def apply(self, event: object, at: float, _: int) -> None:
        match event:
            # First, because a long journal is made of them.
            case events.AttemptStarted():
                self._start(event, at)
            case events.AttemptEnded():
                self._end(event, at)
            case events.Landed() | events.LandingRefused() | events.ConflictResolved():
                if event.status:
                    self._close(event.task, event.status, at, error=event.error)
            case events.TaskCompleted(task, findings) | events.TaskReported(task=task, findings=findings):
                self._close(task, Status.completed, at, findings=findings, error="")
            case events.TaskFailed(task, error):
                self._close(task, Status.failed, at, error=error)
            case events.TaskSkipped(task, error):
                self._close(task, Status.skipped, at, error=error)
            case LandingTakenOut():
                self._take_out(event, at)
            case events.AttemptPlaced(task):
                self._stop_waiting(at, task)
            case AgentReplaced(task=task, agent=agent):
                self._update(task, replaced_agents=(*self._progress[task].replaced_agents, agent))
            case _:
                self._change_plan_or_wave(event, at)

    def _change_plan_or_wave(self, event: object, at: float) -> None:
        match event:
            case events.TasksAdded(tasks):
                self._add(tasks)
            case events.TasksReplanned(tasks):
                self._plan.update({task.id: task for task in tasks})
                self._index_again()
            case events.TableEdited(rows):
                self._edit(rows)
            case events.TasksRemoved(tasks):
                self._remove(tasks)
                self._index_again()
            case events.TasksReset(tasks):
                self._start_over(tasks)
            case events.RollbackStarted():
                self._stop_waiting(at, *event.undone)
                self._go_back(event)
            case events.UpdateStarted(task, commit):
                self._take(task)
                self._update(task, status=Status.landing, commit=commit, agent=NO_AGENT, started_at=at, ended_at=at)
            # The time in which an engine is down, a person decides or a provider is paused is not taken from a wave.
            case events.WaveStarted(wave):
                self.set(wave=wave, wave_started_at=max(at, self.part.paused_until))
            case events.WaveMerged():
                self.set(wave=0)
            case events.EngineStarted():
                self.set(wave_started_at=max(at, self.part.paused_until))
            case events.GateAnswered():
                self.set(wave_started_at=at)
            case ProviderPaused(_, until):
                latest = max(self.part.wave_started_at, until)
                self.set(wave_started_at=latest, paused_until=max(self.part.paused_until, until))
            case ClockChanged():
                paused = moved_end(self.part.paused_until, event)
                started = moved_start(self.part.wave_started_at, event, at)
                since = moved_start(self.part.unplaced_since, event, at)
                self.set(wave_started_at=max(started, paused), paused_until=paused, unplaced_since=since)
            case _:
                raise TypeError(event)

    def _start(self, event: events.AttemptStarted, at: float) -> None:
        self._take(event.task)
        self._update(
            event.task,
            status=Status.in_progress,
            attempt=event.number,
            agent=event.agent,
            base=event.base,
            started_at=at,
            ended_at=None,
        )
        if event.where:
            since = self.part.unplaced_since if self.part.unplaced else at
            self.set(unplaced={**self.part.unplaced, event.task: None}, unplaced_since=since)

    def _stop_waiting(self, at: float, *tasks: TaskId) -> None:
        """Attempts have a host, or are over; the time in which any of them waited is not taken from the wave."""
        waiting = self.part.unplaced
        if waiting and not waiting.keys().isdisjoint(tasks):
            left = without(waiting, *tasks)
            stood_still = 0 if left else at - self.part.wave_clock(at)
            self.set(unplaced=left, wave_started_at=self.part.wave_started_at + stood_still)

    def _end(self, event: events.AttemptEnded, at: float) -> None:
        task, outcome, before = event.task, event.outcome, self._progress[event.task]
        self._stop_waiting(at, task)
        fields: dict[str, object] = {"requests": before.requests + event.requests, "number": _last_number(event)}
        if event.denied:
            fields["denied"] = tuple(dict.fromkeys((*before.denied, *event.denied)))
        if outcome.usage != NO_USAGE:
            fields["usage"] = before.usage + outcome.usage
        if isinstance(outcome, events.Done):
            fields |= {
                "findings": outcome.findings,
                "commit": outcome.commit,
                "changed": outcome.changed,
                "resolved_debt": outcome.resolved_debt,
                "syntax_clean": outcome.syntax_clean,
                "ended_at": at,
                "error": "",
            }
        elif outcome.commit:
            fields["unmerged_commits"] = (*before.unmerged_commits, outcome.commit)
        if isinstance(outcome, events.Done | events.Failed):
            fields["failure"] = outcome.error if isinstance(outcome, events.Failed) else ""
        if event.status in FINAL:
            self._update(task, **fields)
            self._close(task, event.status, at, error=event.error)
            return
        self._update(task, status=event.status, **fields)
        if event.status is Status.pending:
            self._queue(self.part.plan[task])

    def _take_out(self, event: LandingTakenOut, at: float) -> None:
        """The commit is kept as one that did not succeed, and shown to the next attempt with the failing tests."""
        task = event.task
        kept = (*self._progress[task].unmerged_commits, event.commit)
        failure = f"{event.error}\n{event.output}" if event.output else event.error
        self._update(task, unmerged_commits=kept, commit=None, failure=failure)
        if event.status in FINAL:
            self._close(task, event.status, at, error=event.error)
            return
        self._update(task, status=event.status, ended_at=None)
        self._queue(self.part.plan[task])
        # The time that its tests took in the queue is not taken from the wave.
        self.set(wave_started_at=max(at, self.part.paused_until))

    def _close(self, task: TaskId, status: Status, at: float, **fields: object) -> None:
        """A task reaches its final status, and its dependants become ready or blocked."""
        was = self._progress[task]
        if was.status in FINAL:
            return
        self._stop_waiting(at, task)
        # Looked up first, because the first change copies a map, and most tasks that end are in neither.
        self._take(task)
        if task in self.part.blocked_by_failure:
            del self._blocked_by_failure[task]
        self._update(task, status=status, ended_at=was.ended_at or at, **fields)
        self._close_in_wave(self.part.plan[task].wave)
        if status is Status.completed:
            self.set(completed=self.part.completed + 1)
        for other in self.part.dependants.get(task, ()):
            self._dependency_closed(other, status)

    def _close_in_wave(self, wave: int) -> None:
        left = self._open_in_wave.pop(wave, 1) - 1
        if left:
            self._open_in_wave[wave] = left
        elif wave == self.part.lowest_wave:
            # Mostly it is the next one, also in a table with thousands of them.
            following = wave + 1 if wave + 1 in self._open_in_wave else min(self._open_in_wave, default=0)
            self.set(lowest_wave=following)

    def _dependency_closed(self, task: TaskId, status: Status) -> None:
        pending = self._progress[task].status is Status.pending
        if status is Status.completed:
            self._blockers[task] -= 1
            if not self._blockers[task] and pending:
                self._make_ready(task)
        elif pending:
            self._blocked_by_failure[task] = None

    def _make_ready(self, task: TaskId) -> None:
        if task not in self.part.ready:
            self._ready[task] = None
            insort(self._queue_of(task), task, key=self.part.order.__getitem__)

    def _take(self, task: TaskId) -> None:
        """The task is not ready any more."""
        if task not in self.part.ready:
            return
        del self._ready[task]
        queue, order = self._queue_of(task), self.part.order
        del queue[bisect_left(queue, order[task], key=order.__getitem__)]
        if not queue:
            del self._queues[queue_of(self.part.plan[task])]
            del self._own_queues[queue_of(self.part.plan[task])]

    def _queue_of(self, task: TaskId) -> list[TaskId]:
        key = queue_of(self.part.plan[task])
        if key not in self._own_queues:
            self._queues[key] = self._own_queues[key] = list(self.part.queues.get(key, ()))
        return self._own_queues[key]

    def _update(self, task: TaskId, **fields: object) -> None:
        self._progress[task] = replace(self._progress[task], **fields)

    def _add(self, tasks: Collection[Task]) -> None:
        added = {task.id: task for task in tasks}
        self._order.update(zip(added, count(len(self._order))))
        self._plan.update(added)
        self._progress.update({task: self._from_scratch(task) for task in added})
        self._index(tasks)

    def _from_scratch(self, task: TaskId) -> Progress:
        """Resets the progress but keeps what was spent; no two attempts at a task have the same number."""
        return _restarted(self.part.removed.get(task, Progress()))

    def _index(self, tasks: Collection[Task]) -> None:
        waiting: dict[TaskId, list[TaskId]] = {}
        for task in tasks:
            is_open = self._progress[task.id].status not in FINAL
            if is_open:
                self._open_in_wave[task.wave] = self._open_in_wave.get(task.wave, 0) + 1
                self.set(lowest_wave=min(self.part.lowest_wave or task.wave, task.wave))
            self._queue(task)
            for dep in task.deps:
                waiting.setdefault(dep, []).append(task.id)
        for dep, others in waiting.items():
            self._dependants[dep] = (*self._dependants.get(dep, ()), *others)

    def _queue(self, task: Task) -> None:
        """A pending task is ready, or blocked by a failure, or waits."""
        awaited = [self._progress[dep] for dep in task.deps]
        self._blockers[task.id] = sum(not progress.is_met for progress in awaited)
        if self._progress[task.id].status is not Status.pending:
            return
        if not self._blockers[task.id]:
            self._make_ready(task.id)
        elif any(progress.is_lost for progress in awaited):
            self._blocked_by_failure[task.id] = None

    def _edit(self, rows: Iterable[events.RowEdit]) -> None:
        for row in rows:
            task = row.task.id
            self._order.setdefault(task, len(self._order))
            self._plan[task] = row.task
            before = self._progress.get(task) or self._from_scratch(task)
            under_way = before.status in {Status.in_progress, Status.landing}
            status = before.status if under_way else row.status
            left_out = status is Status.skipped and (row.left_out or before.left_out)
            self._progress[task] = replace(
                before, status=status, findings=row.findings, error=row.error, left_out=left_out
            )
        self._index_again()
        self.set(wave=0)

    def _index_again(self) -> None:
        """Recomputes every derived map, after a change that may have affected any row."""
        derived = (self._blockers, self._dependants, self._ready, self._queues, self._own_queues)
        for index in (*derived, self._blocked_by_failure, self._open_in_wave):
            index.clear()
        self.set(lowest_wave=0)
        depth = graph.depths({task.id: task.deps for task in self._plan.values()})
        for name, task in self._plan.items():
            self._plan[name] = replace(task, wave=depth[name])
        self._index(self._plan.values())
        self.set(completed=self.part.count(Status.completed))

    def _start_over(self, tasks: Iterable[TaskId]) -> None:
        for name in tasks:
            before = self._progress[name]
            kept = (*before.unmerged_commits, before.commit) if before.commit else before.unmerged_commits
            failure = before.failure or (before.error if before.status is Status.failed else "")
            self._progress[name] = replace(_restarted(before), unmerged_commits=kept, failure=failure)
        self._index_again()
        self.set(wave=0)

    def _go_back(self, event: events.RollbackStarted) -> None:
        """Drops the progress of tasks since then; what they cost, and what was undone and why, is kept."""
        self._remove(event.removed)
        self._plan.update({row.id: row for row in event.rows})
        for row in event.rows:
            before = self._progress[row.id]
            if before.attempt:
                undone = (*before.rolled_back, (before.commit, event.reason))
                self._progress[row.id] = replace(before, rolled_back=undone, commit=None)
        self._start_over(row.id for row in event.rows)

    def _remove(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            self._removed[task] = self._progress[task]
            for owned in (self._order, self._plan, self._progress):
                owned.pop(task, None)


def _restarted(before: Progress) -> Progress:
    return Progress(requests=before.requests, number=before.number, usage=before.usage, rolled_back=before.rolled_back)


def _last_number(ended: events.AttemptEnded) -> int:
    """The first request has the attempt's own number; an attempt that ended before anything began has none."""
    return ended.number - 1 if isinstance(ended.outcome, events.Unmet) else ended.number + max(ended.requests - 1, 0)
