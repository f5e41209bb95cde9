"""Runs the engine of one session: takes the lease, builds the objects, and runs the loop to its end."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from iterdev.agents import registry
from iterdev.agents.contract import Agent, UnavailableAgent
from iterdev.core.errors import HostError, IterdevError
from iterdev.core.request import policy
from iterdev.core.session.events import EngineStarted, Event, Paused, PolicyChanged, WorkerEnded, WorkerStarted
from iterdev.core.session.gates import GateKind, PlanChoice
from iterdev.core.session.state import State
from iterdev.core.settings import fallback_chain
from iterdev.core.types import Ending, SessionId
from iterdev.core.views.gates import GateView
from iterdev.core.views.progress import progress_lines
from iterdev.core.views.session import SessionView, session_view
from iterdev.engine import notifier
from iterdev.engine.effects import EffectLog, Effects, Observer, tracing
from iterdev.engine.loop import Loop, RunScope
from iterdev.engine.perform import Performer
from iterdev.engine.recovery import complete_rollback, end_attempt, end_attempts
from iterdev.engine.repository import Repository
from iterdev.engine.session_link import LocalLink
from iterdev.engine.team_tools import TeamTools
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor
from iterdev.execution.local import LocalExecutor
from iterdev.execution.tool_server.server import TeamToolServer
from iterdev.host import clock
from iterdev.host.git import command, pinned_settings, session_branch
from iterdev.host.git.checkout import CheckoutWatch
from iterdev.host.git.pinned_settings import PinnedSettings
from iterdev.host.git.session_branch import Position
from iterdev.host.notifications.channel import Channel, Misconfigured, channels
from iterdev.host.processes import loop_signals
from iterdev.host.processes.identity import identity
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.sandbox import bubblewrap
from iterdev.host.threads import in_thread, prepare_threads
from iterdev.host.workspaces.ports import Ports
from iterdev.store.session_log import SessionLog
from iterdev.teams.contract import Team


async def no_answer(_: GateView) -> str | None:
    """Leaves a question open, because there is no user to ask."""
    return None


class RunObserver(Struct, frozen=True, kw_only=True):
    """What a surface does while an engine runs. Everything is called in the thread of the engine."""

    ask: Callable[[GateView], Awaitable[str | None]] = no_answer
    show: Callable[[Callable[[int], SessionView]], None] = lambda _: None
    """Called after every change with a function that makes the view, given how many tasks there is room for."""
    progress: Callable[[str], None] | None = None
    """Called with a line of text for every notable change."""
    agent_output: Callable[[str, str], None] = lambda _task, _text: None
    """Called with the task and the text for every line of an agent."""
    notify: Callable[[str], None] = lambda _: None
    """Called with text that the user should read at once."""
    alert: Callable[[str], object] = lambda _: None
    """Called with a message for the terminal's own notifications, if they are configured."""
    detached: bool = False
    """The engine runs in the background, where `ask` only waits."""


MakeExecutor = Callable[[AttemptContext, TaskGroup], AbstractAsyncContextManager[Executor]]


def configured_sandbox(repository: Repository) -> bubblewrap.Sandbox | None:
    """The sandbox, if the configuration asks for one; an error if it cannot be used."""
    return bubblewrap.build(repository.top, os.environ) if repository.settings.run.sandbox else None


def check_agents(repository: Repository, state: State, team: Team, agent: Callable[[str], Agent]) -> None:
    """Fails unless each agent that the session needs, or one that takes over from it, can be used on this machine."""
    for chain in _agents_needed(repository, state, team):
        if all(isinstance(agent(name), UnavailableAgent) for name in chain):
            registry.make_usable(chain[0], repository.settings.agents, repository.top)


def _agents_needed(repository: Repository, state: State, team: Team) -> list[tuple[str, ...]]:
    """Each agent that the session needs, with those that take over from it; a name that means nothing is an error."""
    if state.gates.answer(GateKind.plan) == PlanChoice.reject:
        # All that is left is to end it.
        return []
    settings = repository.settings
    needed = {state.session.agents.get(role) or settings.agent_for(role) for role in team.roles_needed(state)}
    chains = [tuple(fallback_chain(name, settings.fallbacks)) for name in sorted(needed | team.agents_needed(state))]
    for name in (name for chain in chains for name in chain):
        registry.make(name, settings.agents, repository.top)
    return chains


def _show_states(observer: RunObserver, team: Team) -> Callable[[State], None]:
    """Shows each new state to the observer."""
    last: State | None = None

    def show(state: State) -> None:
        nonlocal last
        if observer.progress:
            for line in progress_lines(last, state, team, clock.LOCAL):
                observer.progress(line)
        last = state
        observer.show(lambda room: session_view(state, team, room=room, zone=clock.LOCAL))

    return show


async def drive(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    scope: RunScope | None = None,
    executor: MakeExecutor = LocalExecutor,
    observers: tuple[Observer, ...] = (),
) -> Ending:
    """Takes the session's lease and runs its engine until it is over, has to ask, or is interrupted."""
    log = repository.log(session)
    # A session that was rebuilt from its folder may be in a repository that excludes nothing yet.
    repository.prepare()
    with repository.lease(log) as descriptor:
        log_effect = EffectLog(repository.folder(log.state), clock.now, repository.redact)
        effect = Effects(log_effect, *tracing(), *observers)
        incomplete = repository.journal.holder(session) is not None or bool(log.state.attempts.of_engine)
        if me := identity(os.getpid()):
            repository.journal.take(session, me)
        run = _Run(repository, log, observer, effect, scope or RunScope(), executor, adopts=not incomplete)
        try:
            ending = await run.run(descriptor)
        except BaseException:
            run.stop()
            raise
        log.save_snapshot()
        with effect("release session"):
            repository.journal.release(session)
        return ending


class _Run(Struct, frozen=True):
    repository: Repository
    log: SessionLog
    observer: RunObserver
    effect: Effects
    scope: RunScope
    executor: MakeExecutor
    adopts: bool
    """Whether commits on top of what has landed are the user's: no agent can have made them since the last engine."""

    def stop(self) -> None:
        """After an error or an interrupt.

        A session with open attempts is not released: the next engine keeps their work first. Neither is one that is
        over: the next command does what is left.
        """
        log, attempts = self.log, self.log.state.attempts
        with suppress(IterdevError, OSError):
            session_branch.position(self.repository.top, log.session, log.state.branch.tip)
            if not attempts.of_engine and not attempts.landing and not log.state.lifecycle.is_over:
                self.repository.journal.release(log.session)

    async def run(self, descriptor: int) -> Ending:
        stop = _Stop(self.observer.notify, here=self.runs_here)
        with loop_signals.received(stop.receive):
            return await self._run(descriptor, stop)

    @property
    def runs_here(self) -> bool:
        """Whether attempts run on this machine."""
        return self.executor is LocalExecutor

    async def _run(self, descriptor: int, stop: "_Stop") -> Ending:
        repository, log, scope, effect = self.repository, self.log, self.scope, self.effect
        settings, top, notify = repository.settings, repository.top, self.observer.notify
        prepare_threads()
        agent = cache(partial(registry.make_present, configured=settings.agents, root=top, notify=notify))
        sandbox = configured_sandbox(repository) if self.runs_here else None
        pool = repository.workspaces(log.session, sandbox.confine_git if sandbox else None)
        complete_rollback(repository, log, effect)
        performer = Performer(repository, log, effect, _show_states(self.observer, log.team))
        async with (
            Ports(settings.project.ports) as ports,
            Supervisor(lease_fds=(descriptor,)) as supervisor,
            _pinned(top, performer) as git_settings,
        ):
            await in_thread(end_attempts, log, top, pool, effect)
            folder, checkout = repository.folder(log.state), CheckoutWatch(top)
            tools = TeamTools(log, folder, redact=repository.redact, changed=performer.changed)
            server = TeamToolServer(tools)
            context = AttemptContext(
                top=top,
                agent=agent,
                pool=pool,
                checkout=checkout,
                git_settings=git_settings,
                ports=ports,
                spawn=supervisor.spawn,
                sandbox=sandbox,
                redact=repository.redact,
                effect=effect,
                link=LocalLink(log, folder, tools, server, self.observer.agent_output, performer.environment_made),
            )
            try:
                async with server.opened(), self._notifications(context, performer):
                    ending = await self._loop(context, performer, stop)
                if changed := await in_thread(checkout.changes, last=True):
                    performer.warn(f"your checkout changed meanwhile: {', '.join(changed)}")
            except ExceptionGroup as group:
                raise _cause(group, performer) from group
        with effect("close workspaces"):
            await in_thread(pool.close)
            # It may have been checked out in one of them while work landed.
            found = await in_thread(session_branch.position, top, log.session, log.state.branch.tip)
        performer.warn(found.note)
        if scope.worker:
            performer.append(WorkerEnded(scope.worker, scope.taken))
        if ending is not Ending.over:
            performer.append(Paused(ending.value))
        await performer.project(urgent=True)
        return ending

    @asynccontextmanager
    async def _notifications(self, context: AttemptContext, performer: Performer) -> AsyncIterator[None]:
        """Nothing, if none are configured. A program of the repository is that of the session's base, as for agents."""
        settings, state = self.repository.settings.notify, self.log.state
        if not settings.is_used:
            yield
            return
        folder = context.pool.base_files(state.session.base, settings.command) if settings.command else None
        usable: list[Channel] = []
        for one in channels(settings, context.spawn, folder or context.top, self.observer.alert):
            if isinstance(one, Misconfigured):
                performer.warn(f"no notifications are sent by {one.name}: {one.problem}")
            else:
                usable.append(one)
        journal = notifier.Journal(record=performer.append, warn=performer.warn, redact=self.repository.redact)
        async with notifier.Notifier(self.log, usable, settings.on, journal, self.effect).opened():
            yield

    def _start(self, performer: Performer) -> None:
        """Opens the session's branch, and records that an engine drives the session."""
        state, top, session = self.log.state, self.repository.top, self.log.session
        with self.effect("open branch"):
            base, branch = state.session.base, state.branch
            known = branch.tip if branch.opened else session_branch.last_known(top, session, base)
            # Work that is about to land may be on the branch already, and has not been recorded.
            landing = bool(state.attempts.landing)
            found = Position(known) if landing else session_branch.position(top, session, known, adopt=self.adopts)
        started = EngineStarted(os.getpid(), found.tip, self.observer.detached)
        worker = [WorkerStarted(self.scope.worker)] if self.scope.worker else []
        performer.append(*self._new_limits(state), started, *worker)
        performer.warn(found.note)

    def _new_limits(self, state: State) -> list[Event]:
        """The limits and budgets of the configuration, where they changed since the last engine."""
        settings, team = self.repository.settings, self.log.team
        current = policy(
            settings,
            team.workers,
            team.time_limits,
            auto=state.policy.auto,
            concurrency=state.policy.concurrency,
        )
        changed: list[Event] = [] if current == state.policy else [PolicyChanged(current)]
        return [*changed, *team.settings_changed(state, settings)]

    async def _loop(self, context: AttemptContext, performer: Performer, stop: "_Stop") -> Ending:
        async with anyio.create_task_group() as group, self.executor(context, group) as executor:
            loop = Loop(
                log=self.log,
                executor=executor,
                performer=performer,
                stop=stop.event,
                leaves=lambda: stop.leaves,
                ask=self.observer.ask,
                scope=self.scope,
                clock=clock.ClockWatch(self.log.now),
            )
            try:
                await self._check_agents(executor)
                self._start(performer)
                await self._take_up_attempts(executor, performer)
                ending = await loop.run()
            finally:
                group.cancel_scope.cancel()
        return ending

    async def _check_agents(self, executor: Executor) -> None:
        """Fails unless each agent that the session needs, or one that takes over from it, is where attempts run."""
        chains = _agents_needed(self.repository, self.log.state, self.log.team)
        lacking = await executor.lacking({name for chain in chains for name in chain})
        for chain in chains:
            if all(name in lacking for name in chain):
                if not executor.where:
                    registry.make_usable(chain[0], self.repository.settings.agents, self.repository.top)
                raise HostError(
                    f'No host offers the agent "{chain[0]}": {lacking[chain[0]]}',
                    hint="offer it on a host, or name another agent under [run] in iterdev.toml",
                )

    async def _take_up_attempts(self, executor: Executor, performer: Performer) -> None:
        """Submits the attempts that outlived the last engine again; those that are out of reach count no longer."""
        for started in self.log.state.attempts.running.values():
            if started.where == executor.where:
                await executor.submit(await performer.jobs.make_again(self.log.state, started), again=True)
                continue
            attempt = f"{started.task}: attempt {started.number}, which was begun with {started.where}"
            performer.warn(f"{attempt}, is given up; what it still reports is not used")
            await in_thread(end_attempt, self.log, self.repository.top, started, self.effect)


@asynccontextmanager
async def _pinned(top: Path, performer: Performer) -> AsyncIterator[PinnedSettings]:
    """The git settings of the repository; changes that agents made to them are reported at the end."""
    with pinned_settings.pinned(top) as settings, command.serving(top):
        yield settings
        if changed := await in_thread(settings.changes):
            performer.warn(pinned_settings.told(changed))


def _cause(group: ExceptionGroup[Exception], performer: Performer) -> Exception:
    """The first error of a group; the journal says why the run stopped, if it can still be written."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, IterdevError):
        with suppress(HostError):
            performer.append(Paused(error.message))
    return error


class _Stop:
    """The first signal stops the run in order, a second one at once; nothing is lost either way.

    Agents on other hosts are ended if a person interrupts the run, and continue if this machine or its terminal ends
    it.
    """

    def __init__(self, notify: Callable[[str], None], *, here: bool) -> None:
        self._notify, self._here = notify, here
        self.event, self.leaves = anyio.Event(), False

    def receive(self, number: int) -> None:
        if self.event.is_set():
            os._exit(130)
        self.leaves = number != signal.SIGINT and not self._here
        what = "the agents go on, and are found again" if self.leaves else "the agents are ended and their work is kept"
        self._notify(f"stopping: {what}; interrupt again to stop at once")
        self.event.set()
