"""A host: takes attempts from a Temporal server, carries them out, and reports, whatever happens to it meanwhile."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import PollerBehaviorSimpleMaximum, Worker

from iterdev import __version__
from iterdev.agents.contract import Agent, UnavailableAgent
from iterdev.agents.registry import make_present
from iterdev.core.errors import HostError, IterdevError
from iterdev.core.host_settings import HostSettings
from iterdev.core.processes import ProcessIdentity
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session.attempts import AttemptReport, LandingTestReport
from iterdev.core.session.events import Interrupted
from iterdev.execution.attempt import run_attempt
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Effect, Job
from iterdev.execution.landing_test import run_landing_test
from iterdev.execution.lease import LeaseTerms
from iterdev.execution.temporal.connection import attempt_handle
from iterdev.execution.temporal.held_lease import HeldLease, MakeLease
from iterdev.execution.temporal.host_link import HostLink
from iterdev.execution.temporal.hosted_repository import HostedRepository, UnknownRepository
from iterdev.execution.temporal.names import ATTEMPT, agent_queue, tests_queue
from iterdev.execution.temporal.noted_orders import NotedOrder, NotedOrders
from iterdev.execution.temporal.patience import until_answered, until_done
from iterdev.execution.temporal.probe import answer_probe
from iterdev.execution.wire_format import (
    LARGEST,
    LARGEST_DECODED,
    HostReport,
    Order,
    decode,
    encode,
    host_report_of,
    report_of,
)
from iterdev.host import clock, paths, session_lease
from iterdev.host.processes.identity import alive, identity
from iterdev.host.processes.spawn import Spawn, Supervisor
from iterdev.host.threads import in_thread, prepare_threads
from iterdev.host.workspaces.ports import Ports

GRACE = 2.0
"""Seconds from asking an agent to end until it is killed."""
RPC = timedelta(seconds=10)
REST = 60.0
"""Seconds until a host that had trouble of its own is looked at again."""
LEAST_SPACE = 200_000_000
"""Bytes on the disk without which no attempt is begun."""
FETCHING = 120.0
"""Seconds for which a git remote may be away before an attempt is given back."""
CLOSING = 20.0
"""Seconds that the last reports are waited for; the next host sends those that are left."""
TIDYING = 60.0
FOREVER = timedelta(days=365)

AnyReport = AttemptReport | LandingTestReport


@contextmanager
def no_effect(name: str, **_: str | int) -> Iterator[None]:  # noqa: ARG001 - as it is called
    yield


class Stopping:
    """How a host is asked to end."""

    def __init__(self) -> None:
        self.drain, self.stop = anyio.Event(), anyio.Event()
        """Nothing new is taken; and what runs is ended, too."""

    async def wait(self) -> None:
        async with anyio.create_task_group() as group:
            for event in (self.drain, self.stop):
                group.start_soon(_then, event.wait, group.cancel_scope.cancel)


async def serve(  # noqa: PLR0913 - what differs in tests has a name each
    client: Client,
    settings: HostSettings,
    *,
    name: str,
    home: Path,
    stopping: Stopping,
    say: Callable[[str], None] = lambda _: None,
    effect: Effect = no_effect,
    make_lease: MakeLease = HeldLease,
) -> None:
    """Carries out attempts until it is asked to stop. `home` is the host's own folder, which no other one may use."""
    prepare_threads()
    async with _alone(home, say) as descriptor, Supervisor(lease_fds=(descriptor,), grace=GRACE) as supervisor:
        machine = Machine(name=name, home=home, spawn=supervisor.spawn, effect=effect, say=say, make_lease=make_lease)
        async with anyio.create_task_group() as group:
            host = Host(client, settings, machine, group)
            await host.rescue()
            group.start_soon(host.tidy)
            group.start_soon(host.rest)
            await host.offer(stopping)
            await host.finish()
            group.cancel_scope.cancel()
        await host.close()


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    home: Path
    spawn: Spawn
    effect: Effect
    say: Callable[[str], None]
    make_lease: MakeLease


class _Running(msgspec.Struct):
    """An attempt on this host."""

    noted: NotedOrder
    order: Order
    link: HostLink
    preparing: anyio.CancelScope
    scope: anyio.CancelScope

    def end(self) -> None:
        self.preparing.cancel()
        self.scope.cancel()


class NotOffered(HostError):
    def __init__(self, host: str, agent: str) -> None:
        super().__init__(
            f'The host "{host}" does not offer the agent "{agent}"', hint=f"iterdev worker --agent {agent}=1"
        )


class Host:
    def __init__(self, client: Client, settings: HostSettings, machine: Machine, group: TaskGroup) -> None:
        self._client, self._settings, self._machine, self._group = client, settings, machine, group
        self._name, self._home, self._say = machine.name, machine.home, machine.say
        self._notes = NotedOrders(machine.home / "orders")
        self._repositories: dict[str, HostedRepository] = {}
        self._ports: dict[int, Ports] = {}
        self._running: dict[str, _Running] = {}
        self._delivering, self._ends = 0, False
        self._closing, self._rests, self._changed = anyio.Event(), anyio.Event(), anyio.Event()

    async def offer(self, stopping: Stopping) -> None:
        """Offers the agents that are here, until the host is to end and nothing runs any more."""
        here = {name: one for name, one in self._settings.agents.items() if self._is_here(name)}
        slots = {agent_queue(name): one.slots for name, one in here.items()}
        if slots:
            slots[tests_queue()] = max(slots.values())
        async with anyio.create_task_group() as offers:
            for queue, count in slots.items():
                offers.start_soon(self._offer, queue, count)
            await stopping.wait()
            self._closing.set()
            offers.start_soon(_then, stopping.stop.wait, self._end_all)
            await self._until(lambda: not self._running)
            offers.cancel_scope.cancel()

    def _is_here(self, name: str) -> bool:
        agent = make_present(name, self._settings.agents, self._home, self._say)
        if isinstance(agent, UnavailableAgent):
            self._say(f"{name} is not offered: {agent.problem}")
        return not isinstance(agent, UnavailableAgent)

    def _end_all(self) -> None:
        self._ends = True
        for one in self._running.values():
            one.end()

    async def _offer(self, queue: str, slots: int) -> None:
        """A queue has slots of its own: one worker over several queues lets some of them starve."""
        while True:
            worker = Worker(
                self._client,
                task_queue=queue,
                activities=[self.attempt, answer_probe],
                max_concurrent_activities=slots,
                activity_task_poller_behavior=PollerBehaviorSimpleMaximum(2),
                graceful_shutdown_timeout=FOREVER,
                build_id=__version__,
            )
            serving = asyncio.ensure_future(worker.run())
            try:
                async with anyio.create_task_group() as group:
                    for ended in (self._closing.wait, self._rests.wait, partial(asyncio.wait, [serving])):
                        group.start_soon(_then, ended, group.cancel_scope.cancel)
                if serving.done():
                    self._say(f"{queue} cannot be served, and is tried again: {serving.exception()}")
                    await anyio.sleep(REST)
                    continue
                # It ends when its attempts have; meanwhile it takes no others.
                await asyncio.shield(worker.shutdown())
            finally:
                with anyio.move_on_after(CLOSING, shield=True):
                    await worker.shutdown()
                serving.cancel()
            await self._until(lambda: not self._closing.is_set() and not self._rests.is_set())

    async def rest(self) -> None:
        """After trouble of this machine nothing is taken for a while, and then only if it can be used again."""
        while True:
            await self._rests.wait()
            problem = "its last attempt could not be carried out"
            while problem:
                self._say(f"this host rests: {problem}")
                await anyio.sleep(REST)
                problem = await in_thread(self._problem)
            self._rests = anyio.Event()
            self._notify()

    def _problem(self) -> str:
        """What keeps this machine from carrying out any attempt."""
        try:
            (self._home / "check").write_bytes(b"")
            free = shutil.disk_usage(self._home).free
        except OSError as error:
            return f'"{self._home}" cannot be written: {error.strerror}'
        return f'"{self._home}" has {free:,} bytes of space left' if free < LEAST_SPACE else ""

    @activity.defn(name=ATTEMPT)
    async def attempt(self, data: bytes) -> bytes:
        """Carries out an order. The report is sent by calls of our own, which are repeated until they are answered."""
        info = activity.info()
        noted = NotedOrder(activity=info.activity_id, task_token=info.task_token, order=data)
        try:
            running = self._begun(noted)
        except HostError as error:
            # It is sent as it is: it must not have anything of the order in it.
            raise ApplicationError(f"{self._name}: {error.message}", non_retryable=True) from None
        work = asyncio.create_task(self._hold(running))
        while not work.done():
            try:
                await asyncio.shield(asyncio.wait([work]))
            except asyncio.CancelledError:
                # The SDK cancels when its worker ends; the work comes to an orderly end in any case.
                running.end()
        if defect := work.exception():
            self._say(f"{info.activity_id}: {type(defect).__name__}: {defect}")
            raise ApplicationError(f"{self._name}: a defect of iterdev ({type(defect).__name__})") from None
        activity.raise_complete_async()

    def _begun(self, noted: NotedOrder) -> _Running:
        order = decode(noted.order, Order)
        own = replace(order.job, settings=replace(order.job.settings, agents=self._settings.agents))
        order = replace(order, job=own)
        link = HostLink(self._client, own, order.documents, self._home / "documents")
        return _Running(noted, order, link, anyio.CancelScope(), anyio.CancelScope())

    async def _hold(self, running: _Running) -> None:
        """Carries out the attempt as long as its lease lasts, and reports on it."""
        noted, order, progress = running.noted, running.order, running.link.progress
        terms = LeaseTerms(heartbeat_timeout=order.heartbeat_timeout, grace=GRACE)
        handle = attempt_handle(self._client, noted.task_token, noted.activity)
        lease = self._machine.make_lease(handle, terms, lambda: encode(progress.heartbeat(self._name)), running.end)
        with self._machine.effect("note order", task=order.job.task.id):
            self._notes.add(noted)
        with self._machine.effect("begin lease", task=order.job.task.id):
            has_begun = await lease.begin()
        if not has_begun:
            self._notes.remove(noted.activity)
            return
        self._running[noted.activity] = running
        if self._ends:
            # It was on its way here when the host was asked to stop.
            running.end()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(lease.hold)
                report = await self._carried_out(running)
                delivered = anyio.Event()
                self._group.start_soon(self._deliver, noted, order.job, self._message(report, running.link), delivered)
                async with anyio.create_task_group() as waiting:
                    for event in (delivered, lease.lost):
                        waiting.start_soon(_then, event.wait, waiting.cancel_scope.cancel)
                group.cancel_scope.cancel()
        finally:
            del self._running[noted.activity]
            self._notify()

    async def _carried_out(self, running: _Running) -> AnyReport:
        """The report on the attempt; trouble of this machine is one too."""
        job, repository = running.order.job, None
        try:
            self._require_offered(job)
            repository = self._repository(running.order.repository)
            running.link.redact = await in_thread(repository.redactor, job)
            with running.preparing, self._machine.effect("fetch commits", task=job.task.id):
                fetch = partial(repository.remote.fetch_published, job.shared_name, running.order.needs)
                with anyio.fail_after(FETCHING):
                    await until_done(fetch, self._say)
            if running.preparing.cancelled_caught:
                return _interrupted(job, Interrupted())
            return await self._run(running, repository)
        except TimeoutError:
            return _interrupted(job, Interrupted(problem=f"{self._name} could not fetch the commits in time"))
        except IterdevError as error:
            problem = running.link.redact(error.message)
            self._say(f"{running.noted.activity}: {problem}")
            commit = None
            if not isinstance(error, UnknownRepository | NotOffered):
                self._rests.set()
            if repository and not job.together:
                with suppress(IterdevError, OSError):
                    commit = await in_thread(repository.keep_left, job)
            progress = running.link.progress
            outcome = Interrupted(problem=f"{self._name}: {problem}", commit=commit, usage=progress.usage)
            return _interrupted(job, outcome, progress.requests)

    async def _run(self, running: _Running, repository: HostedRepository) -> AnyReport:
        job, link = running.order.job, running.link
        link.mirror = repository.mirror
        sandbox = await in_thread(lambda: repository.sandbox) if job.settings.run.sandbox else None
        context = AttemptContext(
            top=repository.mirror,
            is_mirror=True,
            agent=cache(partial(self._agent, repository)),
            pool=repository.pool(job),
            belongings=repository.belongings,
            checkout=None,
            ports=self._ports.setdefault(job.settings.project.ports, Ports(job.settings.project.ports)),
            spawn=self._machine.spawn,
            sandbox=sandbox,
            redact=link.redact,
            effect=self._machine.effect,
            link=link,
        )
        repository.use(job, 1)
        try:
            if job.together:
                return await run_landing_test(job, context, running.scope)
            return await run_attempt(job, context, running.scope)
        finally:
            repository.use(job, -1)

    def _agent(self, repository: HostedRepository, name: str) -> Agent:
        return make_present(name, self._settings.agents, repository.mirror)

    def _require_offered(self, job: Job) -> None:
        """The queue of an order says nothing about what is in it."""
        if not job.together and job.agent not in self._settings.agents:
            raise NotOffered(self._name, job.agent)

    def _repository(self, url: str) -> HostedRepository:
        """What an order names is looked up in the host's own list, and never used as it comes."""
        if url not in self._settings.repositories:
            raise UnknownRepository(self._name, url)
        if url not in self._repositories:
            belongings = self._settings.repositories[url].belongings
            self._repositories[url] = HostedRepository(self._home, url, belongings)
        return self._repositories[url]

    def _message(self, report: AnyReport, link: HostLink) -> HostReport:
        return replace(
            host_report_of(report, host=self._name, now=clock.now()),
            made=tuple(link.redact(text) for text in link.made),
            problems=tuple(link.redact(text) for text in link.problems),
            discoveries=link.discoveries,
            log=link.progress.log,
        )

    async def _deliver(
        self, noted: NotedOrder, job: Job, message: HostReport, delivered: anyio.Event | None = None
    ) -> None:
        """Sends the report on an attempt; what cannot be sent is left for the next host of this folder."""
        self._delivering += 1
        try:
            await self._send(noted, job, message)
        except (IterdevError, OSError, ValueError) as error:
            # One that is damaged must not end the others; the server gives its attempt away.
            self._say(f"the report on {noted.activity} could not be sent: {error}")
        finally:
            self._delivering -= 1
            if delivered:
                delivered.set()
            self._notify()

    async def _send(self, noted: NotedOrder, job: Job, message: HostReport) -> None:
        """Pushes what was kept of an attempt with its report, then reports; both however long it takes."""
        with suppress(UnknownRepository):
            if not job.together:
                repository = self._repository(decode(noted.order, Order).repository)
                keep = partial(in_thread, repository.keep_report, job, message)
                with self._machine.effect("keep report", task=job.task.id):
                    refs, kept = await until_done(keep, self._say)
                with self._machine.effect("push work", task=job.task.id):
                    await until_done(partial(repository.remote.push, refs), self._say)
                message = replace(message, refs=tuple(refs), kept=kept)
        with self._machine.effect("report", task=job.task.id):
            await self._complete(noted, replace(message, log=""))
        with self._machine.effect("forget order", task=job.task.id):
            self._notes.remove(noted.activity)

    async def _complete(self, noted: NotedOrder, message: HostReport) -> None:
        """A refusal is no error: the attempt was given away, or an earlier try had arrived."""
        data = encode(message, most=LARGEST_DECODED)
        if len(data) > LARGEST:
            # The engine reads it from git.
            data = encode(replace(message, report=msgspec.Raw(b"null"), made=(), problems=(), discoveries=()))
        handle = attempt_handle(self._client, noted.task_token, noted.activity)
        with suppress(RPCError):
            await until_answered(partial(handle.complete, data, rpc_timeout=RPC))

    async def rescue(self) -> None:
        """Keeps what attempts of a killed predecessor left, and reports on them, so that nobody waits for a lease."""
        for noted in list(self._notes):
            try:
                job = self._begun(noted).order.job
                with self._machine.effect("keep leftover work", task=job.task.id):
                    message = await in_thread(self._rescued, noted, job)
            except (IterdevError, OSError) as error:
                self._say(f"what is left of {noted.activity} could not be kept: {error}")
                continue
            self._say(f"{noted.activity} was interrupted; what is left of it is reported")
            self._group.start_soon(self._deliver, noted, job, message)
        for url in self._settings.repositories:
            with suppress(IterdevError, OSError):
                await in_thread(self._repository(url).close_left)

    def _rescued(self, noted: NotedOrder, job: Job) -> HostReport:
        if job.together:
            died = LandingTestReport(tasks=job.together, host_died=True)
            return host_report_of(died, host=self._name, now=clock.now())
        repository = self._repository(decode(noted.order, Order).repository)
        for message in repository.kept_reports(job):
            # It had ended, and was not delivered.
            report = report_of(message, job, now=clock.now())
            if isinstance(report, AttemptReport) and report.fence == job.fence:
                return message
        commit = repository.keep_left(job)
        # The count of requests is lost. There was one, except where iterdev runs the tests before an agent is asked.
        requests = 0 if job.role.procedure is Procedure.verify else 1
        report = _interrupted(job, Interrupted(commit=commit, host_died=True), requests)
        return host_report_of(report, host=self._name, now=clock.now())

    async def tidy(self) -> None:
        while True:
            await anyio.sleep(TIDYING)
            for repository in self._repositories.values():
                await in_thread(repository.close_idle)

    async def finish(self) -> None:
        """Waits for the last reports."""
        with anyio.move_on_after(CLOSING):
            await self._until(lambda: not self._delivering)

    async def close(self) -> None:
        for repository in self._repositories.values():
            with suppress(IterdevError, OSError):
                await in_thread(repository.close_idle, 0)
        for ports in self._ports.values():
            await ports.__aexit__()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()


def _interrupted(job: Job, outcome: Interrupted, requests: int = 0) -> AnyReport:
    if job.together:
        return LandingTestReport(tasks=job.together, host_died=outcome.host_died)
    return AttemptReport(task=job.task.id, number=job.number, fence=job.fence, requests=requests, outcome=outcome)


async def _then(wait: Callable[[], Awaitable[object]], act: Callable[[], None]) -> None:
    await wait()
    act()


@asynccontextmanager
async def _alone(home: Path, say: Callable[[str], None]) -> AsyncIterator[int]:
    """The lock on the host's folder, when all processes of a predecessor have ended."""
    paths.make_private(home)
    file = home / "host.json"
    before: ProcessIdentity | None = None
    with suppress(OSError, ValueError):
        before = msgspec.json.decode(file.read_bytes(), type=ProcessIdentity)

    def is_dead() -> bool:
        return before is not None and not alive(before)

    def end_left() -> None:
        from iterdev.host.processes.trees import kill_left_by  # noqa: PLC0415 - slow to import, and rarely needed

        me = identity(os.getpid())
        if before and me and before.boot == me.boot and before != me and is_dead():
            say("the processes of a host that was killed are ended")
            kill_left_by(before)

    try:
        with session_lease.lease(home, wait=is_dead, free=end_left) as descriptor:
            end_left()
            if me := identity(os.getpid()):
                file.write_bytes(msgspec.json.encode(me))
            yield descriptor
            file.unlink(missing_ok=True)
    except session_lease.Held:
        raise HostError(
            f'Another host works in "{home}"', hint="end it, or set ITERDEV_HOME to another folder for this one"
        ) from None
