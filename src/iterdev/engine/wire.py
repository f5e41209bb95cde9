"""Builds the real objects and lets them run: the only place that knows them all."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from iterdev.agents.absent import AbsentAgent
from iterdev.agents.contract import Agent, AgentEvent
from iterdev.agents.table import make, make_present, make_usable
from iterdev.core import budget, names
from iterdev.core import events as e
from iterdev.core.analysis import TEAM_OF
from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.core.fold import replay
from iterdev.core.request import Request, new_session, rules
from iterdev.core.settings import in_turn
from iterdev.core.state import State
from iterdev.core.words import Role, SessionId, Team
from iterdev.engine import memory
from iterdev.engine.attempts import attempt
from iterdev.engine.book import Book
from iterdev.engine.executor import LocalExecutor
from iterdev.engine.jobs import Job
from iterdev.engine.kit import Checkout, Kit, Mark
from iterdev.engine.loop import Ending, Loop
from iterdev.engine.outside import Outside
from iterdev.engine.pace import Pace, ToTheEnd
from iterdev.engine.perform import Performer
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import follow
from iterdev.engine.tools import Tools
from iterdev.engine.toolserver import ToolDesk
from iterdev.engine.worksite import thread
from iterdev.host import clock, git, landing, lease, paths, sandbox
from iterdev.host.identities import identity
from iterdev.host.pauses import Pauses
from iterdev.host.ports import Ports
from iterdev.host.processes import Supervisor
from iterdev.host.sandbox import Sandbox
from iterdev.host.workspaces import Pool
from iterdev.store.daybook import Daybook
from iterdev.store.journal import Holder
from iterdev.store.projections import Projector


class Audience(Struct, frozen=True, kw_only=True):
    """Who watches a run, and can be asked."""

    show: Callable[[State], None] = lambda _: None
    hear: Callable[[str, AgentEvent], None] = lambda _task, _event: None
    ask: Callable[[e.Gate], Awaitable[str | None]]
    say: Callable[[str], None] = lambda _: None


async def nobody(_: e.Gate) -> str | None:
    """The answer when there is nobody to ask."""
    return None


def begin(repository: Repository, request: Request, rows: tuple[e.RowEdit, ...] = ()) -> SessionId:
    """Creates a session; nothing of the user's is touched."""
    base, branch = git.head(repository.top), git.current_branch(repository.top)
    request = msgspec.structs.replace(request, requirement=repository.redact(request.requirement))
    repository.instructions()
    repository.prepare()
    taken = {*repository.sessions(), *(folder.name for folder in _session_folders(repository.top))}
    session = names.session_id(Team.iterdev, request.engine, request.requirement, clock.now(), taken)
    events = new_session(request, repository.settings, session=session, base=base, branch=branch, rows=rows)
    if inherited := memory.handed_down(repository, request.requirement):
        events.append(inherited)
    planned = replay([e.Entry(number, clock.now(), event) for number, event in enumerate(events, 1)])
    if planned:
        check_agents(
            repository, planned, partial(make_present, configured=repository.settings.agents, root=repository.top)
        )
    sandboxed(repository)
    (repository.top / names.folder(request.engine, session)).mkdir(parents=True)
    repository.journal.append(session, events, at=clock.now(), after=0)
    return session


def sandboxed(repository: Repository) -> Sandbox | None:
    """The sandbox, if the user wants one; an error if it cannot be had."""
    return sandbox.build(repository.top, os.environ) if repository.settings.run.sandbox else None


def _session_folders(top: Path) -> Iterable[Path]:
    return (path for root in (".csv-wave", ".team") for path in (top / ".workflow" / root).glob("*"))


async def drive(
    repository: Repository,
    session: SessionId,
    audience: Audience,
    *,
    pace: Pace | None = None,
    mark: Mark = lambda _: None,
) -> Ending:
    """Takes the session's lease and runs its engine until it is over, has to ask, or is interrupted."""
    book = Book(repository.journal, session, now=clock.now)
    folder = repository.folder(book.state)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lease.lease(folder, wait=partial(_holder_is_dead, repository, book.state)) as descriptor:
            _take(repository, session)
            try:
                return await _run(repository, book, audience, descriptor, pace=pace or ToTheEnd(), mark=mark)
            finally:
                repository.journal.release(session)
    except lease.Held:
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
    repository: Repository, book: Book, audience: Audience, descriptor: int, *, pace: Pace, mark: Mark
) -> Ending:
    book.refresh()
    follow(repository, book, mark=mark)
    exposed = not repository.settings.run.sandbox
    projector = Projector(repository.folder(book.state), repository.journal, exposed=exposed)
    projector.prepare()
    performer = Performer(
        repository.top,
        outside=Outside(pauses=Pauses(paths.state_root()), daybook=Daybook(repository.journal), now=clock.now),
        projector=projector,
        instructions=repository.instructions(),
        mark=mark,
        now=clock.now,
        show=audience.show,
    )
    agent = cache(partial(make_present, configured=repository.settings.agents, root=repository.top, tell=audience.say))
    check_agents(repository, book.state, agent)
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / book.session, paths.temps())
    tools = Tools(
        book,
        repository.folder(book.state),
        tell=partial(performer.tell, book),
        changed=partial(performer.changed, book),
        redact=repository.redact,
        now=clock.now,
    )
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
            watch=audience.hear,
            tools=ToolDesk(tools),
            objection=lambda task, spent: budget.objection(book.state, task, spent),
        )
        await thread(partial(recover, book, repository.top, pool, mark))
        mark("branch wanted")
        tip = landing.open_branch(repository.top, names.branch(book.session), book.state.session.base)
        mark("branch opened")
        worker = [e.WorkerStarted(pace.worker)] if pace.worker else []
        performer.append(book, *_new_rules(repository, book.state), e.EngineStarted(os.getpid(), tip), *worker)
        try:
            async with kit.tools.opened():
                ending = await _loop(book, kit, performer, audience, pace)
        except ExceptionGroup as group:
            raise _cause(group, book, performer) from group
    mark("pool wanted")
    await anyio.to_thread.run_sync(pool.close)
    mark("pool closed")
    if pace.worker:
        performer.append(book, e.WorkerEnded(pace.worker, tuple(pace.taken)))
    if ending is not Ending.over:
        performer.append(book, e.Paused(_reason(book.state, ending)))
    await performer.project(book, urgent=True)
    return ending


def _new_rules(repository: Repository, state: State) -> list[e.Event]:
    """The limits and budgets of the configuration, where they changed since the last engine."""
    current = rules(repository.settings, auto=state.policy.auto, concurrency=state.policy.concurrency)
    return [] if current == state.policy else [e.PolicyChanged(current)]


def _cause(group: ExceptionGroup[Exception], book: Book, performer: Performer) -> Exception:
    """The one error inside a group; the journal says why the run stopped, if the machine still can write it."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, IterdevError):
        with suppress(HostError):
            performer.append(book, e.Paused(error.message))
    return error


def _reason(state: State, ending: Ending) -> str:
    return f"{ending}: {', '.join(state.gates)}" if ending is Ending.waiting else ending.value


async def _loop(book: Book, kit: Kit, performer: Performer, audience: Audience, pace: Pace) -> Ending:
    stop = anyio.Event()
    async with _stopping(stop, audience.say), anyio.create_task_group() as group:
        executor = LocalExecutor(partial(_attempt, kit), group)
        loop = Loop(
            book=book,
            executor=executor,
            performer=performer,
            stop=stop,
            now=clock.now,
            ask=audience.ask,
            pace=pace,
        )
        try:
            ending = await loop.run()
        finally:
            executor.close()
            group.cancel_scope.cancel()
    return ending


async def _attempt(kit: Kit, job: Job, scope: anyio.CancelScope) -> e.AttemptEnded:
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


def check_agents(repository: Repository, state: State, agent: Callable[[str], Agent]) -> None:
    """Fails unless each agent that the session needs can be used, or one that takes over from it."""
    configured, top = repository.settings.agents, repository.top
    for wanted in wanted_agents(repository, state):
        names_in_turn = in_turn(wanted, repository.settings.fallbacks)
        for name in names_in_turn:
            make(name, configured, top)
        if all(isinstance(agent(name), AbsentAgent) for name in names_in_turn):
            make_usable(wanted, configured, top)


def wanted_agents(repository: Repository, state: State) -> list[str]:
    """The agents that the session will need, as far as can be told now."""
    if state.tasks:
        roles = {task.role for task in state.tasks.values()} - {Role.gc_controller}
    else:
        roles = set(TEAM_OF[state.pipeline or state.session.analysis.pipeline])
    return sorted({state.session.agents.get(role) or repository.settings.agent_for(role) for role in roles})
