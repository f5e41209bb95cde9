"""The engine: decide, carry out, record, until nothing is left to do or somebody has to be asked."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial

import anyio
from msgspec import Struct

from iterdev.core.session import worker_callbacks
from iterdev.core.session.decide import Cancel, Command, Land, Record, Start, Wait, decide
from iterdev.core.session.events import AttemptEnded, Gate, GateAnswered
from iterdev.core.types import Engine
from iterdev.engine.perform import Performer
from iterdev.engine.run_scope import Pace
from iterdev.execution.contract import Executor
from iterdev.store.session_log import SessionLog

POLL = 0.25
"""Seconds between looks at what other processes wrote."""


class Ending(StrEnum):
    over = "over"
    waiting = "waiting for an answer"
    interrupted = "interrupted"
    stepped = "one step done"


class Loop(Struct, frozen=True, kw_only=True):
    log: SessionLog
    executor: Executor
    performer: Performer
    stop: anyio.Event
    now: Callable[[], float]
    ask: Callable[[Gate], Awaitable[str | None]]
    """Asks the user, if there is one to ask."""
    pace: Pace

    async def run(self) -> Ending:
        while True:
            if self.stop.is_set():
                return await self._interrupt()
            commands = self._admitted(decide(await self.performer.catch_up(self.log), self.now()))
            if await self._carry_out(commands):
                continue
            if ending := await self._idle(commands):
                return ending

    def _admitted(self, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        starts = [command for command in commands if isinstance(command, Start)]
        others = (command for command in commands if not isinstance(command, Start))
        return *others, *self._claimed(self.pace.admit(self.log.state, starts))

    def _claimed(self, starts: Sequence[Start]) -> Iterator[Command]:
        """A worker looks first whether its work is there. In a wave the table alone says what is to be done."""
        state = self.log.state
        looks = self.pace.worker or state.session.engine is Engine.beat
        done = worker_callbacks.reported(state, (start.task for start in starts)) if looks else ()
        if done:
            yield Record(done)
        yield from (start for start in starts if start.task not in {event.task for event in done})

    async def _carry_out(self, commands: tuple[Command, ...]) -> bool:
        """True when something was done that may change what to do next."""
        acted = False
        for command in commands:
            match command:
                case Record(events):
                    await self.performer.record(self.log, events)
                    acted = True
                case Start():
                    await self.performer.start(self.log, self.executor, command)
                case Land(task):
                    await self.performer.land(self.log, task)
                    acted = True
                case Cancel(task):
                    await self.executor.cancel(task)
                case Wait():
                    pass
        return acted

    async def _idle(self, commands: tuple[Command, ...]) -> Ending | None:
        """Nothing can be decided now: wait for something to happen, or end."""
        state = self.log.state
        waits = [command.until for command in commands if isinstance(command, Wait)]
        if state.running:
            await self._next_outcome(*(partial(self._until, time) for time in waits))
        elif state.gates:
            return await self._question(next(iter(state.gates.values())))
        elif waits:
            await self._first(*(partial(self._until, time) for time in waits))
        elif state.is_over:
            return Ending.over
        elif self.pace.may_rest:
            return Ending.stepped
        else:
            raise AssertionError(f"nothing to do, nothing running, and not over: {state.phase}")
        return None

    async def _question(self, gate: Gate) -> Ending | None:
        """Asks whoever can be asked; somebody else may answer first."""
        choice: str | None = None

        async def ask() -> None:
            nonlocal choice
            choice = await self.ask(gate)

        await self._race(ask, partial(self._answered, gate.id))
        if self.stop.is_set() or gate.id not in self.log.state.gates:
            return None
        if choice is None:
            return Ending.waiting
        await self.performer.record(self.log, [GateAnswered(gate.id, choice)])
        return None

    async def _until(self, time: float) -> None:
        await anyio.sleep(max(0.0, time - self.now()))

    async def _next_outcome(self, *others: Callable[[], Awaitable[None]]) -> None:
        ended: AttemptEnded | None = None

        async def receive() -> None:
            nonlocal ended
            ended = await self.executor.outcome()

        await self._first(receive, *others)
        if ended:
            await self.performer.ended(self.log, ended)

    async def _first(self, *others: Callable[[], Awaitable[None]]) -> None:
        """Waits until one of these ends, the user stops us, or the journal has news for us or for the folder."""
        await self._race(self._written, *others)

    async def _race(self, *others: Callable[[], Awaitable[None]]) -> None:
        async with anyio.create_task_group() as group:

            async def race(one: Callable[[], Awaitable[None]]) -> None:
                await one()
                group.cancel_scope.cancel()

            for one in (self.stop.wait, *others):
                group.start_soon(race, one)

    async def _answered(self, gate: str) -> None:
        """Other news can wait: a person who is being asked something is not interrupted for it."""
        while gate in self.log.state.gates:
            await anyio.sleep(POLL)
            self.log.refresh()

    async def _written(self) -> None:
        while True:
            await anyio.sleep(POLL)
            if self.log.has_news() or (self.performer.is_behind and self.log.state.running):
                return

    async def _interrupt(self) -> Ending:
        for task in list(self.log.state.running):
            await self.executor.cancel(task)
        while self.log.state.running:
            await self.performer.ended(self.log, await self.executor.outcome())
        return Ending.interrupted
