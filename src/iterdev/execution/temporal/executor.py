"""Has attempts carried out by other hosts: each is one activity of a Temporal server, begun at most once.

Commits go through a git remote; orders, reports and questions through the server. While one of them is away, what needs
it waits. An attempt is found again by its name, so submitting it a second time is submitting it once.
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace
from temporalio.client import ActivityFailureError, ActivityHandle, Client
from temporalio.common import ActivityIDConflictPolicy, ActivityIDReusePolicy, RetryPolicy
from temporalio.exceptions import ActivityAlreadyStartedError, ApplicationError, CancelledError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError
from temporalio.service import RPCError

from iterdev.agents.contract import Said
from iterdev.core import ids
from iterdev.core.errors import HostError, IterdevError
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Placement, Report
from iterdev.core.session.events import Failed, Interrupted
from iterdev.core.types import TaskId
from iterdev.execution import wire_format
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.temporal.names import ATTEMPT, activity_id, agent_queue, session_queue, tests_queue
from iterdev.execution.temporal.offers import lacking
from iterdev.execution.temporal.patience import is_unknown, result_of, until_answered, until_done
from iterdev.execution.temporal.session_calls import SessionCalls
from iterdev.execution.wire_format import Heartbeat, HostReport
from iterdev.host import clock
from iterdev.host.git import mirrors, refs
from iterdev.host.git.commits import commit_documents
from iterdev.host.git.mirrors import GitRemote
from iterdev.host.threads import in_thread
from iterdev.store import atomic_files
from iterdev.store.session_folder import discoveries

DOCUMENTS = frozenset({".md", ".json", ".jsonl", ".ndjson", ".csv"})
LARGEST_DOCUMENT = 1_000_000
LOGS = "logs"
BESIDE = 600.0
"""Seconds that a host has for what is not the attempt itself: fetching, and pushing."""
RPC = timedelta(seconds=10)
LOOK, LEAST = 2.0, 0.1
"""Seconds until each attempt is looked at again, and at least between two looks."""
UNOFFERED = 600.0
"""Seconds after which an attempt that no host offers the agent for has failed."""


class _Submitted:
    """An attempt, or a test of work that waits to land, that has not ended."""

    def __init__(self, job: Job, now: float) -> None:
        self.job, self.since = job, now
        self.handle: ActivityHandle[bytes] | None = None
        self.cancelled, self.preparing = anyio.Event(), anyio.CancelScope()
        self.host, self.said = "", 0
        self.unoffered = ""
        """Why no host takes it, when it was given up for that."""


class TemporalExecutor(AbstractAsyncContextManager["TemporalExecutor"]):
    def __init__(
        self,
        client: Client,
        context: AttemptContext,
        group: TaskGroup,
        *,
        address: str,
        repository: str,
        heartbeat_timeout: float,
    ) -> None:
        """`address` is that of the git remote, `repository` what hosts call it."""
        self.where = f"temporal/{client.namespace}"
        self._client, self._context, self._group, self._repository = client, context, group, repository
        self._heartbeat_timeout = heartbeat_timeout
        self._remote = GitRemote(context.top, address)
        self._open: dict[TaskId, _Submitted] = {}
        self._documents = ("", "")
        """The last ones that were sent: what is in them, and their commit."""
        self._calls: SessionCalls | None = None
        self._send, self._receive = anyio.create_memory_object_stream[Report](1_000_000)

    async def __aenter__(self) -> Self:
        self._group.start_soon(self._watch)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._calls:
            await self._calls.close()
        self._send.close()
        self._receive.close()

    async def lacking(self, agents: Collection[str]) -> Mapping[str, str]:
        return await until_answered(partial(lacking, self._client, agents))

    async def submit(self, job: Job, *, again: bool = False) -> None:
        if self._calls is None:
            self._calls = SessionCalls(self._client, session_queue(job.shared_name), self._context.link, self._open_job)
        one = self._open[job.task.id] = _Submitted(job, anyio.current_time())
        self._group.start_soon(self._carry_out, one, again)

    async def report(self) -> Report:
        return await self._receive.receive()

    async def cancel(self, task: TaskId) -> None:
        if one := self._open.get(task):
            one.cancelled.set()
            one.preparing.cancel()

    def _open_job(self, task: TaskId, fence: int) -> Job | None:
        one = self._open.get(task)
        return one.job if one and one.job.fence == fence else None

    async def _carry_out(self, one: _Submitted, again: bool) -> None:  # noqa: FBT001 - called by the task group
        report = await self._outcome(one, again=again)
        if self._open.get(one.job.task.id) is one:
            del self._open[one.job.task.id]
        self._send.send_nowait(report)

    async def _outcome(self, one: _Submitted, *, again: bool) -> AttemptReport | LandingTestReport:
        job = one.job
        try:
            known = await self._kept(job) if again else None
            found = known or await self._executed(one)
            if not isinstance(found, Interrupted):
                # A short attempt ends before anybody has looked at it.
                self._note_host(one, found.host)
            if isinstance(found, HostReport):
                return await self._taken_over(job, found)
        except IterdevError as error:
            found = Interrupted(problem=error.message)
        return await self._without_report(one, found)

    async def _executed(self, one: _Submitted) -> HostReport | Interrupted | Heartbeat:
        """What the host says; of one that was lost, its last heartbeat."""
        with one.preparing, self._context.effect("publish", task=one.job.task.id):
            order = wire_format.encode(await self._order(one.job))
        if one.preparing.cancelled_caught or one.cancelled.is_set():
            return Interrupted()
        waiting = anyio.CancelScope()
        try:
            with self._context.effect("submit", task=one.job.task.id):
                one.handle = await until_answered(partial(self._started, one.job, order))
            self._group.start_soon(self._pass_on_cancel, one, one.handle, waiting)
            return wire_format.decode(await result_of(one.handle), HostReport)
        except (ActivityFailureError, RPCError) as error:
            return await self._failed(one.job, error)
        finally:
            waiting.cancel()

    async def _order(self, job: Job) -> wire_format.Order:
        """The order, when hosts can fetch all that it names."""
        documents = "" if job.together else await self._published_documents(job)
        # Git may have removed what was undone long ago.
        known = [one for one in job.earlier if await in_thread(refs.resolve, self._context.top, one)]
        job = replace(job, earlier=tuple(known))
        order = wire_format.order_of(
            job, self._repository, heartbeat_timeout=self._heartbeat_timeout, documents=documents
        )
        await until_done(partial(self._remote.publish, job.shared_name, order.needs), self._tell)
        return order

    async def _published_documents(self, job: Job) -> str:
        async with self._context.link.documents(job) as folder:
            files = await in_thread(_documents, folder)
        digest = sha256(repr(files).encode()).hexdigest()
        if self._documents[0] != digest:
            top, (_, last) = self._context.top, self._documents
            commit = await in_thread(commit_documents, top, files, known=job.base, parent=last)
            self._documents = digest, commit
        return self._documents[1]

    async def _started(self, job: Job, order: bytes) -> ActivityHandle[bytes]:
        name = activity_id(job.shared_name, job.task.id, job.fence)
        limits = job.settings.limits
        seconds = job.limit + limits.setup + limits.ready + limits.test + BESIDE
        try:
            return await self._client.start_activity(
                ATTEMPT,
                order,
                id=name,
                task_queue=tests_queue() if job.together else agent_queue(job.agent),
                result_type=bytes,
                start_to_close_timeout=timedelta(seconds=seconds),
                heartbeat_timeout=timedelta(seconds=self._heartbeat_timeout),
                id_reuse_policy=ActivityIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=ActivityIDConflictPolicy.USE_EXISTING,
                retry_policy=RetryPolicy(maximum_attempts=1),
                rpc_timeout=RPC,
            )
        except ActivityAlreadyStartedError:
            return self._client.get_activity_handle(name, result_type=bytes)

    async def _pass_on_cancel(self, one: _Submitted, handle: ActivityHandle[bytes], waiting: anyio.CancelScope) -> None:
        # It may have ended meanwhile.
        with waiting, suppress(RPCError):
            await one.cancelled.wait()
            await until_answered(partial(handle.cancel, rpc_timeout=RPC))

    async def _failed(self, job: Job, error: Exception) -> HostReport | Interrupted | Heartbeat:
        """What is known of an attempt that has ended without a report of its host."""
        if isinstance(error, RPCError):
            if not is_unknown(error):
                return Interrupted(problem=f"the Temporal server refused it: {error.message}")
            # The server has forgotten it, and git has not.
            return await self._kept(job) or Interrupted()
        match error.__cause__:
            case ActivityTimeoutError() as lost:
                # Its host may have come as far as git, and then been cut off.
                if kept := await self._kept(job):
                    return kept
                # An order may have been lost on its way, before there was a heartbeat.
                with suppress(HostError, IndexError):
                    return wire_format.decode(lost.last_heartbeat_details[0], Heartbeat)
                return Interrupted()
            case CancelledError():
                return Interrupted()
            case ApplicationError() as refused:
                # The SDK puts its own words before what a host says.
                cause: BaseException = refused
                while cause.__cause__:
                    cause = cause.__cause__
                return Interrupted(problem=getattr(cause, "message", "") or str(cause))
            case other:
                return Interrupted(problem=str(other or error))

    async def _kept(self, job: Job) -> HostReport | None:
        """The report that its host has left in git, if it came so far."""
        if job.together:
            return None
        ref = ids.kept_ref(job.shared_name, job.task.id, job.number)
        for blob in await until_done(partial(self._remote.report_ids, ref), self._tell):
            await self._fetch(job)
            with suppress(HostError):
                message = await self._read(blob)
                report = wire_format.report_of(message, job, now=clock.now())
                if isinstance(report, AttemptReport) and report.fence == job.fence:
                    return message
        return None

    async def _taken_over(self, job: Job, message: HostReport) -> AttemptReport | LandingTestReport:
        """The report, when all that it names is here."""
        if message.kept:
            # What is there is more than what the server was sent.
            await self._fetch(job)
            message = await self._read(message.kept)
        report = wire_format.report_of(message, job, now=clock.now())
        if isinstance(report, LandingTestReport):
            return report
        if report.outcome.commit:
            await self._fetch(job, report.outcome.commit)
        link = self._context.link
        if message.made or message.problems:
            link.environment_made(message.made, message.problems)
        with self._context.effect("write documents", task=job.task.id):
            async with link.documents(job) as folder:
                await in_thread(_write_documents, folder, job, message)
        return report

    async def _without_report(
        self, one: _Submitted, found: Interrupted | Heartbeat
    ) -> AttemptReport | LandingTestReport:
        job = one.job
        if job.together:
            return LandingTestReport(tasks=job.together, host_died=isinstance(found, Heartbeat))
        if one.unoffered:
            failed = Failed(error=one.unoffered, kind=FailureKind.not_installed)
            return AttemptReport(task=job.task.id, number=job.number, fence=job.fence, requests=0, outcome=failed)
        if isinstance(found, Interrupted):
            requests, outcome = 0, found
        else:
            await self._fetch(job)
            commit = await in_thread(refs.resolve, self._context.top, _ref(job))
            requests, outcome = found.requests, Interrupted(usage=found.usage, commit=commit, host_died=True)
        return AttemptReport(task=job.task.id, number=job.number, fence=job.fence, requests=requests, outcome=outcome)

    async def _fetch(self, job: Job, *commits: str) -> None:
        """Returns when what its hosts have pushed for the task is here, these commits among it."""
        with self._context.effect("fetch work", task=job.task.id):
            fetch = partial(self._remote.fetch_work, job.shared_name, job.session, job.task.id, commits)
            await until_done(fetch, self._tell)

    async def _read(self, blob: str) -> HostReport:
        return wire_format.decode(await in_thread(mirrors.read_report, self._context.top, blob), HostReport)

    async def _watch(self) -> None:
        """Looks at all attempts, one after another: which host has each, and what its agent says."""
        while True:
            looked = list(self._open.values())
            for one in looked:
                if one.handle:
                    with suppress(RPCError, HostError):
                        await self._look(one, one.handle)
                await anyio.sleep(max(LOOK / len(looked), LEAST))
            if not looked:
                await anyio.sleep(LOOK)

    async def _look(self, one: _Submitted, handle: ActivityHandle[bytes]) -> None:
        job = one.job
        found = await handle.describe(include_heartbeat_details=True, rpc_timeout=RPC)
        details = await found.heartbeat_details([bytes])
        if self._open.get(job.task.id) is not one:
            return
        if not details:
            await self._give_up_unoffered(one)
            return
        beat = wire_format.decode(details[0], Heartbeat)
        self._note_host(one, beat.host)
        new = min(beat.said - one.said, len(beat.lines))
        one.said = max(one.said, beat.said)
        for line in beat.lines[len(beat.lines) - new :] if new > 0 else ():
            self._context.link.said(job.task.id, job.number, Said(line))

    def _note_host(self, one: _Submitted, host: str) -> None:
        if host == one.host:
            return
        one.host, job = host, one.job
        if not job.together:
            self._send.send_nowait(Placement(task=job.task.id, number=job.number, fence=job.fence, host=host))

    async def _give_up_unoffered(self, one: _Submitted) -> None:
        agent = one.job.agent
        if one.job.together or anyio.current_time() - one.since < UNOFFERED or one.cancelled.is_set():
            return
        one.since = anyio.current_time()
        if why := (await lacking(self._client, [agent])).get(agent):
            one.unoffered = f'no host offers the agent "{agent}": {why}'
            await self.cancel(one.job.task.id)

    def _tell(self, problem: str) -> None:
        self._context.link.environment_made((), (problem,))


def _ref(job: Job) -> str:
    return ids.kept_ref(job.session, job.task.id, job.number)


def _documents(folder: Path) -> dict[str, bytes]:
    """The documents of a session that agents read, by their paths."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in DOCUMENTS and LOGS not in path.parts)
    bodies = ((path, atomic_files.read(path)) for path in found if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): body for path, body in bodies if body and len(body) <= LARGEST_DOCUMENT}


def _write_documents(folder: Path, job: Job, message: HostReport) -> None:
    """Adds to the session folder what an attempt elsewhere has written."""
    task = job.task.id
    if message.discoveries:
        moment = ids.moment(clock.now())
        discoveries.add(folder / discoveries.NAME, message.discoveries, worker=task, ts=moment)
    if message.log:
        # What came by heartbeats is only a part of it.
        atomic_files.write(folder / LOGS / f"{task}-{job.number}.log", message.log)
