"""Runs the engine of one session: takes the lease, builds the objects, and drives the loop to its end."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache, partial

import anyio
from msgspec import Struct

from iterdev.agents.contract import AgentEvent, Said
from iterdev.agents.registry import make_present
from iterdev.core import ids
from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.core.limits import budget
from iterdev.core.request import rules
from iterdev.core.session.events import (
    AttemptEnded,
    EngineStarted,
    Event,
    Paused,
    PolicyChanged,
    WorkerEnded,
    WorkerStarted,
)
from iterdev.core.session.state import State
from iterdev.core.types import Ending, SessionId
from iterdev.core.views.progress import progress_lines
from iterdev.core.views.session import GateView, SessionView, gate_view, session_view
from iterdev.engine.assembly import check_agents, sandboxed
from iterdev.engine.loop import Loop
from iterdev.engine.perform import Performer
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import follow
from iterdev.engine.run_scope import Pace, ToTheEnd
from iterdev.engine.shared_limits import Outside
from iterdev.engine.team_tools import TeamTools
from iterdev.engine.tool_server.server import ToolDesk
from iterdev.execution.attempt import attempt
from iterdev.execution.context import Kit, Mark
from iterdev.execution.contract import Job
from iterdev.execution.kept_work import thread
from iterdev.execution.local import LocalExecutor
from iterdev.host import clock, paths, session_lease
from iterdev.host.git import landing
from iterdev.host.git.checkout_watch import Checkout
from iterdev.host.processes.identity import identity
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.provider_pauses import Pauses
from iterdev.host.workspaces.pool import Pool
from iterdev.host.workspaces.ports import Ports
from iterdev.store.daily_spending import Daybook
from iterdev.store.journal import Holder
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog


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


def _shown_to(observer: RunObserver) -> Callable[[State], None]:
    """What shows the observer each new state."""
    last: State | None = None

    def show(state: State) -> None:
        nonlocal last
        if observer.report:
            for line in progress_lines(last, state):
                observer.report(line)
        last = state
        observer.show(lambda room: session_view(state, room=room))

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
    pace: Pace | None = None,
    mark: Mark = lambda _: None,
) -> Ending:
    """Takes the session's lease and runs its engine until it is over, has to ask, or is interrupted."""
    log = SessionLog(repository.journal, session, now=clock.now)
    folder = repository.folder(log.state)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with session_lease.lease(folder, wait=partial(_holder_is_dead, repository, log.state)) as descriptor:
            _take(repository, session)
            try:
                return await _run(repository, log, observer, descriptor, pace=pace or ToTheEnd(), mark=mark)
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
    return holder is None or not repository.engine_alive(state)


def _take(repository: Repository, session: SessionId) -> None:
    me = identity(os.getpid())
    if me:
        repository.journal.take(session, Holder(pid=me.pid, started=str(me.started), boot=me.boot))


async def _run(
    repository: Repository, log: SessionLog, observer: RunObserver, descriptor: int, *, pace: Pace, mark: Mark
) -> Ending:
    log.refresh()
    follow(repository, log, mark=mark)
    exposed = not repository.settings.run.sandbox
    projector = Projector(repository.folder(log.state), repository.journal, exposed=exposed)
    projector.prepare()
    performer = Performer(
        repository.top,
        outside=Outside(pauses=Pauses(paths.state_root()), daybook=Daybook(repository.journal), now=clock.now),
        projector=projector,
        instructions=repository.instructions(),
        mark=mark,
        now=clock.now,
        show=_shown_to(observer),
    )
    agent = cache(partial(make_present, configured=repository.settings.agents, root=repository.top, tell=observer.say))
    check_agents(repository, log.state, agent)
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / log.session, paths.temps())
    changed = partial(performer.changed, log)
    tools = TeamTools(log, repository.folder(log.state), redact=repository.redact, changed=changed)
    ports = Ports(repository.settings.project.ports)
    async with ports, Supervisor(lease_fds=(descriptor,)) as supervisor:
        kit = Kit(
            top=repository.top,
            settings=repository.settings,
            agent=agent,
            pool=pool,
            checkout=Checkout(repository.top),
            ports=ports,
            spawn=supervisor.spawn,
            sandbox=sandboxed(repository),
            redact=repository.redact,
            mark=mark,
            watch=_heard_by(observer),
            tools=ToolDesk(tools),
            objection=lambda task, spent: budget.objection(log.state, task, spent),
        )
        await thread(partial(recover, log, repository.top, pool, mark))
        mark("branch wanted")
        tip = landing.open_branch(repository.top, ids.branch(log.session), log.state.session.base)
        mark("branch opened")
        worker = [WorkerStarted(pace.worker)] if pace.worker else []
        performer.append(log, *_new_rules(repository, log.state), EngineStarted(os.getpid(), tip), *worker)
        try:
            async with kit.tools.opened():
                ending = await _loop(log, kit, performer, observer, pace)
        except ExceptionGroup as group:
            raise _cause(group, log, performer) from group
    mark("pool wanted")
    await anyio.to_thread.run_sync(pool.close)
    mark("pool closed")
    if pace.worker:
        performer.append(log, WorkerEnded(pace.worker, tuple(pace.taken)))
    if ending is not Ending.over:
        performer.append(log, Paused(_reason(log.state, ending)))
    await performer.project(log, urgent=True)
    return ending


def _new_rules(repository: Repository, state: State) -> list[Event]:
    """The limits and budgets of the configuration, where they changed since the last engine."""
    current = rules(repository.settings, auto=state.policy.auto, concurrency=state.policy.concurrency)
    return [] if current == state.policy else [PolicyChanged(current)]


def _cause(group: ExceptionGroup[Exception], log: SessionLog, performer: Performer) -> Exception:
    """The one error inside a group; the journal says why the run stopped, if the machine still can write it."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, IterdevError):
        with suppress(HostError):
            performer.append(log, Paused(error.message))
    return error


def _reason(state: State, ending: Ending) -> str:
    return f"{ending}: {', '.join(state.gates)}" if ending is Ending.waiting else ending.value


async def _loop(log: SessionLog, kit: Kit, performer: Performer, observer: RunObserver, pace: Pace) -> Ending:
    stop = anyio.Event()
    async with _stopping(stop, observer.say), anyio.create_task_group() as group:
        executor = LocalExecutor(partial(_attempt, kit), group)
        loop = Loop(
            log=log,
            executor=executor,
            performer=performer,
            stop=stop,
            now=clock.now,
            ask=lambda gate: observer.ask(gate_view(gate)),
            pace=pace,
        )
        try:
            ending = await loop.run()
        finally:
            executor.close()
            group.cancel_scope.cancel()
    return ending


async def _attempt(kit: Kit, job: Job, scope: anyio.CancelScope) -> AttemptEnded:
    return await attempt(job, kit, scope)


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
