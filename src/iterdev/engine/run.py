"""Runs the engine of one session: takes the lease, builds the objects, and drives the loop to its end."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache, partial

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from iterdev.agents.contract import AgentEvent, Said
from iterdev.agents.registry import make_present
from iterdev.core import ids
from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.core.request import policy
from iterdev.core.session.events import EngineStarted, Event, Paused, PolicyChanged, WorkerEnded, WorkerStarted
from iterdev.core.session.state import State
from iterdev.core.types import Ending, SessionId
from iterdev.core.views.progress import progress_lines
from iterdev.core.views.session import GateView, SessionView, gate_view, session_view
from iterdev.engine.assembly import check_agents, configured_sandbox
from iterdev.engine.effects import EffectLog, Effects, Observer, tracing
from iterdev.engine.loop import Loop
from iterdev.engine.perform import Performer, RepositoryFacts
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import follow
from iterdev.engine.run_scope import RunScope, WholeSession
from iterdev.engine.session_link import LocalLink
from iterdev.engine.shared_limits import SharedLimits
from iterdev.engine.team_tools import TeamTools
from iterdev.engine.tool_server.server import ToolDesk
from iterdev.execution.attempt import run_attempt
from iterdev.execution.context import AttemptContext, in_thread
from iterdev.execution.contract import Effect, Executor
from iterdev.execution.local import LocalExecutor
from iterdev.host import clock, paths, session_lease
from iterdev.host.git import landing
from iterdev.host.git.checkout import CheckoutWatch
from iterdev.host.processes.identity import identity
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.provider_pauses import Pauses
from iterdev.host.workspaces.pool import Pool
from iterdev.host.workspaces.ports import Ports
from iterdev.store.daily_spending import DailySpending
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog
from iterdev.teams.contract import Team


async def no_answer(_: GateView) -> str | None:
    """Leaves a question open, because there is no user to ask."""
    return None


class RunObserver(Struct, frozen=True, kw_only=True):
    """What a surface does while an engine runs. Everything is called in the thread of the engine."""

    ask: Callable[[GateView], Awaitable[str | None]] = no_answer
    show: Callable[[Callable[[int], SessionView]], None] = lambda _: None
    """Called after every change with a function from the room for tasks to the view, which is not made in vain."""
    report: Callable[[str], None] | None = None
    """Called with a line of text for every change that is worth one."""
    hear: Callable[[str, str], None] = lambda _task, _text: None
    """Called with the task for every line that its agent says."""
    say: Callable[[str], None] = lambda _: None
    """Called with what the user should read at once."""


MakeExecutor = Callable[[AttemptContext, TaskGroup], AbstractAsyncContextManager[Executor]]


@asynccontextmanager
async def local_executor(context: AttemptContext, group: TaskGroup) -> AsyncIterator[Executor]:
    """Runs attempts on this machine."""
    executor = LocalExecutor(lambda job, scope: run_attempt(job, context, scope), group)
    try:
        yield executor
    finally:
        executor.close()


def _shown_to(observer: RunObserver, team: Team) -> Callable[[State], None]:
    """What shows the observer each new state."""
    last: State | None = None

    def show(state: State) -> None:
        nonlocal last
        if observer.report:
            for line in progress_lines(last, state, team):
                observer.report(line)
        last = state
        observer.show(lambda room: session_view(state, team, room=room))

    return show


def _heard_by(observer: RunObserver) -> Callable[[str, AgentEvent], None]:
    def hear(task: str, event: AgentEvent) -> None:
        if isinstance(event, Said) and event.text.strip():
            observer.hear(task, event.text.strip())

    return hear


async def drive(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    scope: RunScope | None = None,
    executor: MakeExecutor = local_executor,
    observers: tuple[Observer, ...] = (),
) -> Ending:
    """Takes the session's lease and runs its engine until it is over, has to ask, or is interrupted."""
    log = repository.log(session)
    folder = repository.folder(log.state)
    folder.mkdir(parents=True, exist_ok=True)
    effect = Effects(EffectLog(folder, clock.now, repository.redact), *tracing(), *observers)
    run = _Run(repository, log, observer, effect, scope or WholeSession(), executor)
    try:
        with session_lease.lease(folder, wait=partial(_holder_is_dead, repository, log.state)) as descriptor:
            _take(repository, session)
            try:
                return await run.run(descriptor)
            finally:
                repository.journal.release(session)
    except session_lease.Held:
        raise held(repository, session) from None


def held(repository: Repository, session: SessionId) -> UserError:
    holder = repository.journal.holder(session)
    return UserError(
        f'The session "{session}" is already being run by process {holder.pid if holder else "unknown"}',
        hint=f"watch it with `iterdev status {session}`, or stop that process first",
    )


def _holder_is_dead(repository: Repository, state: State) -> bool:
    """A dead engine's processes are being ended; a living engine is not waited for."""
    holder = repository.journal.holder(state.session.id)
    return holder is None or not repository.engine_alive(state.session)


def _take(repository: Repository, session: SessionId) -> None:
    if me := identity(os.getpid()):
        repository.journal.take(session, me)


class _Run:
    """The objects of one run."""

    def __init__(
        self,
        repository: Repository,
        log: SessionLog,
        observer: RunObserver,
        effect: Effect,
        scope: RunScope,
        executor: MakeExecutor,
    ) -> None:
        self._repository, self._log, self._observer = repository, log, observer
        self._effect, self._scope, self._executor = effect, scope, executor
        self._pool = Pool(repository.top, paths.workspaces_of(repository.top) / log.session, paths.temps())
        self._agent = cache(
            partial(make_present, configured=repository.settings.agents, root=repository.top, notify=observer.say)
        )

    async def run(self, descriptor: int) -> Ending:
        repository, log, scope = self._repository, self._log, self._scope
        log.refresh()
        follow(repository, log, self._effect)
        performer = self._performer()
        check_agents(repository, log.state, log.team, self._agent)
        ports = Ports(repository.settings.project.ports)
        async with ports, Supervisor(lease_fds=(descriptor,)) as supervisor:
            await in_thread(recover, log, repository.top, self._pool, self._effect)
            self._start(performer)
            folder = repository.folder(log.state)
            desk = ToolDesk(TeamTools(log, folder, redact=repository.redact, changed=performer.changed))
            context = AttemptContext(
                top=repository.top,
                agent=self._agent,
                pool=self._pool,
                checkout=CheckoutWatch(repository.top),
                ports=ports,
                spawn=supervisor.spawn,
                sandbox=configured_sandbox(repository),
                redact=repository.redact,
                effect=self._effect,
                link=LocalLink(log, folder, desk, _heard_by(self._observer)),
            )
            try:
                async with desk.opened():
                    ending = await self._loop(context, performer)
            except ExceptionGroup as group:
                raise _cause(group, performer) from group
        with self._effect("close workspaces"):
            await in_thread(self._pool.close)
        if scope.worker:
            performer.append(WorkerEnded(scope.worker, tuple(scope.taken)))
        if ending is not Ending.over:
            performer.append(Paused(ending.value))
        await performer.project(urgent=True)
        return ending

    def _performer(self) -> Performer:
        repository, log = self._repository, self._log
        exposed = not repository.settings.run.sandbox
        projector = Projector(repository.folder(log.state), repository.journal, log.team, exposed=exposed)
        projector.prepare()
        limits = SharedLimits(
            pauses=Pauses(paths.state_root()), spending=DailySpending(repository.journal), now=clock.now
        )
        return Performer(
            RepositoryFacts(top=repository.top, settings=repository.settings, instructions=repository.instructions()),
            log,
            limits=limits,
            projector=projector,
            effect=self._effect,
            show=_shown_to(self._observer, log.team),
        )

    def _start(self, performer: Performer) -> None:
        """Opens the session's branch, and records that an engine has taken the session up."""
        repository, state = self._repository, self._log.state
        with self._effect("open branch"):
            tip = landing.open_branch(repository.top, ids.branch(self._log.session), state.session.base)
        # Work that is about to land may be on the branch already, and has not been recorded.
        started = EngineStarted(os.getpid(), state.branch.tip if state.attempts.landing else tip)
        worker = [WorkerStarted(self._scope.worker)] if self._scope.worker else []
        performer.append(*self._new_limits(state), started, *worker)

    def _new_limits(self, state: State) -> list[Event]:
        """The limits and budgets of the configuration, where they changed since the last engine."""
        settings, team = self._repository.settings, self._log.team
        current = policy(settings, team.workers, auto=state.policy.auto, concurrency=state.policy.concurrency)
        changed: list[Event] = [] if current == state.policy else [PolicyChanged(current)]
        return [*changed, *team.settings_changed(state, settings)]

    async def _loop(self, context: AttemptContext, performer: Performer) -> Ending:
        stop, observer, team = anyio.Event(), self._observer, self._log.team
        async with (
            _stopping(stop, observer.say),
            anyio.create_task_group() as group,
            self._executor(context, group) as executor,
        ):
            loop = Loop(
                log=self._log,
                executor=executor,
                performer=performer,
                stop=stop,
                now=clock.now,
                ask=lambda gate: observer.ask(gate_view(gate, team)),
                scope=self._scope,
            )
            try:
                ending = await loop.run()
            finally:
                group.cancel_scope.cancel()
        return ending


def _cause(group: ExceptionGroup[Exception], performer: Performer) -> Exception:
    """The one error inside a group; the journal says why the run stopped, if the machine still can write it."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, IterdevError):
        with suppress(HostError):
            performer.append(Paused(error.message))
    return error


@asynccontextmanager
async def _stopping(stop: anyio.Event, say: Callable[[str], None]) -> AsyncIterator[None]:
    """The first signal ends the run in an orderly way; a second one ends it at once, and nothing is lost either way."""
    async with anyio.create_task_group() as group:

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
                async for _ in signals:
                    if stop.is_set():
                        os._exit(130)
                    say("stopping: the agents are ended and their work is kept; once more to stop at once")
                    stop.set()

        group.start_soon(listen)
        yield
        group.cancel_scope.cancel()
