"""The engine: decide, carry out, record, until nothing is left to do or the user has to be asked."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import TypeVar

import anyio
from msgspec import Struct

from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.rules import landings, worker_callbacks
from iterdev.core.rules.decide import decide
from iterdev.core.rules.schedule import Cancel, Command, Land, Record, RunLandingTest, Start, Wait
from iterdev.core.session.attempts import Report
from iterdev.core.session.events import Gate, GateAnswered
from iterdev.core.types import Ending, Engine, Role, Status, TaskId
from iterdev.core.views.gates import GateView, gate_view
from iterdev.engine.perform import Performer
from iterdev.execution.contract import Executor
from iterdev.host.clock import ClockWatch
from iterdev.store.session_log import SessionLog

T = TypeVar("T")

POLL = 0.25
"""Seconds between two reads of what other processes wrote."""
ERRORS = 3
"""Tasks of a worker that may fail before it stops."""


class RunScope:
    """How far an engine goes: through the whole session. What is ready is decided elsewhere."""

    may_stop = False
    """Whether the engine may end although there is something left to start."""
    worker: Role | None = None
    """The role of the one worker that the engine is, if it is not the whole team."""
    taken: tuple[TaskId, ...] = ()
    """The tasks that the worker has taken."""

    def admit(self, _: SessionLog, starts: Sequence[Start]) -> Sequence[Start]:
        """The part of the decided starts that this engine carries out."""
        return starts


class OneStep(RunScope):
    """One batch of tasks."""

    def admit(self, _: SessionLog, starts: Sequence[Start]) -> Sequence[Start]:
        if self.may_stop:
            return ()
        self.may_stop = bool(starts)
        return starts


class BeforeStarts(RunScope):
    """Everything before the next batch of tasks, which another engine starts."""

    may_stop = True
    ready: tuple[TaskId, ...] = ()
    """The tasks that are to be started."""

    def admit(self, _: SessionLog, starts: Sequence[Start]) -> Sequence[Start]:
        self.ready = tuple(start.task for start in starts)
        return ()


class OneWorker(RunScope):
    """One task of a role at a time; a role that loops then does further ones."""

    may_stop = True

    def __init__(self, role: Role) -> None:
        self.worker: Role = role

    def admit(self, log: SessionLog, starts: Sequence[Start]) -> Sequence[Start]:
        state = log.state
        mine = [start for start in starts if state.tasks.plan[start.task].role == self.worker]
        failed = sum(state.tasks.status(task) is Status.failed for task in self.taken)
        goes_on = not self.taken or (log.team.roles[self.worker].loops and failed < ERRORS)
        if state.attempts.running or not mine or not goes_on:
            return ()
        self.taken += (mine[0].task,)
        return mine[:1]


class Loop(Struct, frozen=True, kw_only=True):
    log: SessionLog
    executor: Executor
    performer: Performer
    stop: anyio.Event
    ask: Callable[[GateView], Awaitable[str | None]]
    scope: RunScope
    clock: ClockWatch
    patience: float = 10
    """Seconds to wait, after an interrupt, for attempts that continue without the engine."""
    leaves: Callable[[], bool] = lambda: False
    """Whether the engine is to end without those attempts: the next one takes them up."""

    async def run(self) -> Ending:
        while True:
            if self.stop.is_set():
                return await self._interrupt()
            state = await self.performer.catch_up()
            # Of the same moment, so that no decision is made with a clock that has just moved.
            now = self.log.now()
            if seconds := self.clock.change(now):
                await self.performer.record([ClockChanged(seconds)])
                continue
            commands = self._admitted(decide(state, self.log.team, now))
            if await self._carry_out(commands):
                continue
            if ending := await self._idle(commands):
                return ending

    def _admitted(self, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        starts = [command for command in commands if isinstance(command, Start)]
        others = (command for command in commands if not isinstance(command, Start))
        return *others, *self._without_output(self.scope.admit(self.log, starts))

    def _without_output(self, starts: Sequence[Start]) -> Iterator[Command]:
        """A worker first checks whether its output exists. In a wave the table alone says what is to be done."""
        state = self.log.state
        checks = self.scope.worker or state.session.engine is Engine.beat
        tasks = (start.task for start in starts)
        done = worker_callbacks.reported(state, self.log.team, tasks) if checks else ()
        if done:
            yield Record(done)
        yield from (start for start in starts if start.task not in {event.task for event in done})

    async def _carry_out(self, commands: tuple[Command, ...]) -> bool:
        """True when something was done that may change what to do next."""
        acted = False
        for command in commands:
            match command:
                case Record(events):
                    await self.performer.record(events)
                    acted = True
                case Start():
                    await self.performer.start(self.executor, command)
                case Land(task):
                    await self.performer.landings.land(task)
                    acted = True
                case RunLandingTest(tasks):
                    await self.performer.landings.test(self.executor, tasks)
                    acted = True
                case Cancel(task):
                    await self.executor.cancel(task)
                case Wait():
                    pass
        return acted

    async def _idle(self, commands: tuple[Command, ...]) -> Ending | None:
        """Nothing can be decided now: wait for something to happen, or end."""
        state = self.log.state
        timers = [partial(self._until, command.until) for command in commands if isinstance(command, Wait)]
        if landings.under_way(state):
            report: Report | None = await self._race(self.executor.report, self._written, *timers)
            if report:
                await self.performer.reported(report)
        elif state.gates.open:
            return await self._question(next(iter(state.gates.open.values())))
        elif timers:
            await self._race(self._written, *timers)
        elif state.lifecycle.is_over:
            return Ending.over
        elif self.scope.may_stop:
            return Ending.stepped
        else:
            raise AssertionError(f"nothing to do, nothing running, and not over: {state.lifecycle.phase}")
        return None

    async def _question(self, gate: Gate) -> Ending | None:
        """Asks the user; another process may answer first."""
        view = gate_view(gate, self.log.team, self.log.state)
        choice = await self._race(partial(self.ask, view), partial(self._answered, gate.id))
        if self.stop.is_set() or gate.id not in self.log.state.gates.open:
            return None
        if choice is None:
            return Ending.waiting
        if choice not in gate.choices:
            return None  # Something was done first, such as editing the plan; the question is asked again.
        await self.performer.record([GateAnswered(gate.id, choice)])
        return None

    async def _until(self, time: float) -> None:
        await anyio.sleep(max(0.0, time - self.log.now()))

    async def _race(self, *others: Callable[[], Awaitable[T | None]]) -> T | None:
        """Waits until one of these ends, or the user stops the run; returns the value that was waited for, if any."""
        value: T | None = None
        async with anyio.create_task_group() as group:

            async def race(one: Callable[[], Awaitable[T | None]]) -> None:
                nonlocal value
                # Another one may have ended at the same moment, and its value must not be lost.
                value = await one() or value
                group.cancel_scope.cancel()

            for one in (self.stop.wait, *others):
                group.start_soon(race, one)
        return value

    async def _answered(self, gate: str) -> None:
        """Waits until another process answers. Other events do not interrupt a person who is being asked."""
        while gate in self.log.state.gates.open:
            await anyio.sleep(POLL)
            self.log.refresh()

    async def _written(self) -> None:
        """Waits until another process wrote to the journal, the clock moved, or the session folder can be written."""
        while True:
            await anyio.sleep(POLL)
            behind = self.performer.is_behind and landings.under_way(self.log.state)
            if self.log.has_news() or self.clock.has_changed() or behind:
                return

    async def _interrupt(self) -> Ending:
        if self.executor.where and self.leaves():
            return Ending.interrupted
        for task in landings.under_way(self.log.state):
            await self.executor.cancel(task)
        deadline = anyio.current_time() + (self.patience if self.executor.where else inf)
        while left := landings.under_way(self.log.state):
            report: Report | None = None
            with anyio.CancelScope(deadline=deadline):
                report = await self.executor.report()
            if report is None:
                resume = f"`iterdev resume {self.log.session}`"
                self.performer.warn(f"{', '.join(left)}: no host has said that it ended; {resume} waits for it")
                break
            await self.performer.reported(report)
        return Ending.interrupted
