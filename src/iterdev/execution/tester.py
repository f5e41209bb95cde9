"""The procedure `verify`: iterdev runs the tests itself; the agent is asked only to fix what fails."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

import anyio.from_thread
import msgspec

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.errors import HostError
from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.results import Result, shortened
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Failed, Interrupted, Limited
from iterdev.core.verification import Measurement, SuiteReport, Verification, compare
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.conversation import TaskConversation, open_conversation, unsuccessful
from iterdev.execution.kept_work import in_thread, keep
from iterdev.host.git import commits, worktrees
from iterdev.host.processes.spawn import Finished, run
from iterdev.host.test_suites import detect
from iterdev.host.test_suites.run import measure
from iterdev.host.workspaces.pool import Workspace

ITERATIONS = 5
DETECTION_LIMIT = 20.0
"""Seconds to find out whether a test runner is there."""
NOTHING = "no test command was found or named, so nothing was verified"

OnConversation = Callable[[TaskConversation], None]


async def verify(
    job: Job, context: AttemptContext, workspace: Workspace, on_conversation: OnConversation
) -> Success | Failed | Limited | Interrupted:
    async with AsyncExitStack() as stack:
        tester = _Tester(job, context, workspace, stack, on_conversation)
        suite = await tester.suite()
        if isinstance(suite, AgentFailure):
            return unsuccessful(suite)
        if suite is None:
            return tester.conclude(Verification(note=NOTHING), None)
        baseline = job.baseline or await tester.measure_base(suite)
        measured = compare(await tester.measure(suite), baseline)
        while _fails(job, measured) and tester.iterations < ITERATIONS:
            if failure := await tester.ask_for_fix(measured):
                return unsuccessful(failure)
            if tester.gave_up:
                break
            measured = compare(await tester.measure(suite), baseline)
        return await tester.finish(suite, measured, baseline)


def _fails(job: Job, measured: Verification) -> bool:
    """Tests that say nothing are not asked to be fixed."""
    return measured.pass_rate is not None and measured.pass_rate < job.pass_rate


class _Tester:
    """The workspace, the agent when it is needed, and the count of its tries."""

    def __init__(
        self,
        job: Job,
        context: AttemptContext,
        workspace: Workspace,
        stack: AsyncExitStack,
        on_conversation: OnConversation,
    ) -> None:
        self._job, self._context, self._workspace = job, context, workspace
        self._stack, self._on_conversation = stack, on_conversation
        self._conversation: TaskConversation | None = None
        self._answer: Result | None = None
        self.gave_up = ""
        self.iterations = 0

    async def suite(self) -> detect.Suite | AgentFailure | None:
        """The configured command, or what the project's files say, or what the agent names."""
        if command := self._job.settings.project.test:
            return detect.configured(command)
        if found := await in_thread(partial(detect.find, self._workspace.tree, self._works)):
            return found
        answer = await (await self._agent()).ask(self._job.prompt)
        if isinstance(answer, AgentFailure):
            return answer
        self._answer = answer
        named = getattr(answer, "test_command", None)
        return detect.configured(named) if named else None

    async def measure_base(self, suite: detect.Suite) -> SuiteReport:
        """The tests as they were before the session, so that old failures are not blamed on it."""
        tree = self._workspace.tree
        await in_thread(partial(worktrees.reset_worktree, tree, self._job.session_base))
        report = await self.measure(suite)
        await in_thread(partial(worktrees.reset_worktree, tree, self._job.base))
        return report

    async def measure(self, suite: detect.Suite) -> SuiteReport:
        with self._context.effect("run tests", task=self._job.task.id, command=suite.command):
            return await measure(
                suite,
                self._workspace.tree,
                run=self._run,
                scratch=self._workspace.temp,
                env=self._context.environment(self._job, self._workspace),
                limit=self._job.settings.limits.test,
            )

    async def ask_for_fix(self, measured: Verification) -> AgentFailure | None:
        """Lets the agent try once. A failure that ends the attempt is returned; with any other the agent gave up."""
        agent = await self._agent()
        self.iterations += 1
        job = self._job
        answer = await agent.ask(prompts.fix_tests(job.task.id, measured, job.changed, job.schema))
        if isinstance(answer, AgentFailure):
            if self._ends_attempt(answer):
                return answer
            self.gave_up = answer.message
        elif answer.status == "failed":
            self.gave_up = answer.error or answer.findings
        else:
            self._answer = answer
        return None

    def _ends_attempt(self, failure: AgentFailure) -> bool:
        """Whether the same work is to be tried again, later or by another agent."""
        match reaction(failure.kind):
            case Reaction.pause_provider | Reaction.stop:
                return True
            case Reaction.replace_agent | Reaction.replace_for_task | Reaction.retry_later:
                return self._job.replaceable
            case Reaction.ask_again | Reaction.fail:
                return False

    async def finish(self, suite: detect.Suite, measured: Verification, baseline: SuiteReport) -> Success:
        """Keeps what the agent fixed, as far as it kept to the files of the change."""
        job, new_baseline = self._job, None if self._job.baseline else baseline
        commit = await keep(job, self._context, self._workspace) if self._conversation else None
        if commit is None:
            return self.conclude(measured, new_baseline)
        changed = await in_thread(partial(commits.changed_files, self._context.top, job.base, commit))
        outside = [name for name in changed if name not in job.changed]
        if not outside:
            return self.conclude(measured, new_baseline, commit=commit, changed=changed)
        await in_thread(partial(worktrees.restore_files, self._workspace.tree, job.base, outside))
        commit = await keep(job, self._context, self._workspace)
        measured = compare(await self.measure(suite), baseline)
        note = f"{job.task.id}: the {job.task.role} changed files outside the change, which were restored: "
        kept = tuple(name for name in changed if name not in outside) if commit else ()
        return self.conclude(measured, new_baseline, commit=commit, changed=kept, notes=(note + ", ".join(outside),))

    def conclude(
        self,
        measured: Verification,
        baseline: SuiteReport | None,
        *,
        commit: str | None = None,
        changed: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Success:
        answer = self._answer or self._job.role.result(id=self._job.task.id, status="completed")
        gave_up = f"; the {self._job.task.role} gave up: {self.gave_up}" if self.gave_up else ""
        unverified = [f"{self._job.task.id}: nothing was verified: {measured.note}"] * (measured.pass_rate is None)
        return Success(
            result=msgspec.structs.replace(answer, findings=shortened(_sentence(measured) + gave_up)),
            commit=commit,
            changed=changed,
            notes=(*notes, *unverified),
            measured=Measurement(verification=measured, baseline=baseline, iterations=self.iterations),
        )

    async def _agent(self) -> TaskConversation:
        if self._conversation is None:
            opened = open_conversation(self._job, self._context, self._workspace)
            self._conversation = await self._stack.enter_async_context(opened)
            self._on_conversation(self._conversation)
        return self._conversation

    async def _run(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> Finished:
        """Runs a suite; its output is cut later, so secrets are removed first."""
        spawn = self._context.spawn_tests(self._job, self._workspace)
        done = await run(spawn, argv, cwd=cwd, env=env, limit=limit)
        return msgspec.structs.replace(done, stdout=self._clean(done.stdout), stderr=self._clean(done.stderr))

    def _works(self, argv: Sequence[str]) -> bool:
        """Whether a program of the workspace succeeds; called from a thread."""
        env = self._context.environment(self._job, self._workspace)
        tried = partial(self._run, argv, cwd=str(self._workspace.tree), env=env, limit=DETECTION_LIMIT)
        try:
            return anyio.from_thread.run(tried).code == 0
        except HostError:
            return False

    def _clean(self, output: bytes) -> bytes:
        return self._context.redact(output.decode("utf-8", "replace")).encode()


def _sentence(measured: Verification) -> str:
    if measured.pass_rate is None:
        return f"Nothing was verified: {measured.note}"
    counted = f" of {measured.total} test{'' if measured.total == 1 else 's'}" if measured.total else ""
    known = f"; {len(measured.known_failures)} failed before too" if measured.known_failures else ""
    failing = f"; failing: {', '.join(measured.failures[:5])}" if measured.failures else ""
    return f"Pass rate {measured.pass_rate:.1%}{counted}{failing}{known}, `{measured.command}`"
