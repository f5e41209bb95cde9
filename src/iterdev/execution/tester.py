"""The tester's attempt: iterdev runs the tests itself; the agent is asked only to mend what fails."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

import anyio.from_thread
import msgspec
from msgspec import Struct

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.errors import HostError
from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.results import Testing, cut
from iterdev.core.session.events import Done, Outcome
from iterdev.core.verification import SuiteReport, Verification, compare
from iterdev.execution.context import Kit, for_tests
from iterdev.execution.contract import Job
from iterdev.execution.conversation import Talk, talk
from iterdev.execution.kept_work import keep, thread
from iterdev.execution.outcomes import done, unsuccessful
from iterdev.host.git import commits, worktrees
from iterdev.host.processes.spawn import Finished, run
from iterdev.host.test_suites import detect
from iterdev.host.test_suites.run import measure
from iterdev.host.workspaces.pool import Workspace
from iterdev.teams.development import critic

ITERATIONS = 5
LOOK = 20.0
"""Seconds to find out whether a test runner is there."""
NOTHING = "no test command was found or named, so nothing was verified"


async def verify(job: Job, kit: Kit, workspace: Workspace, on_talk: Callable[[Talk], None]) -> Outcome:
    async with AsyncExitStack() as stack:
        bench = _Bench(job, kit, workspace, stack, on_talk)
        suite = await bench.suite()
        if isinstance(suite, AgentFailure):
            return unsuccessful(suite)
        if suite is None:
            return bench.conclude(Verification(note=NOTHING), None)
        baseline = job.baseline or await bench.measure_base(suite)
        measured = compare(await bench.measure(suite), baseline)
        while critic.fails(measured) and bench.iterations < ITERATIONS:
            if trouble := await bench.mend(measured):
                return unsuccessful(trouble)
            if bench.gave_up:
                break
            measured = compare(await bench.measure(suite), baseline)
        return await bench.finish(suite, measured, Baselines(baseline, None if job.baseline else baseline))


class Baselines(Struct, frozen=True):
    """The tests before the session: what is compared with, and what this attempt was the first to measure."""

    known: SuiteReport
    new: SuiteReport | None


class _Bench:
    """The workspace, the agent when it is needed, and the count of its tries."""

    def __init__(
        self, job: Job, kit: Kit, workspace: Workspace, stack: AsyncExitStack, on_talk: Callable[[Talk], None]
    ) -> None:
        self._job, self._kit, self._workspace, self._stack, self._on_talk = job, kit, workspace, stack, on_talk
        self._talk: Talk | None = None
        self._answer: Testing | None = None
        self.gave_up = ""
        self.iterations = 0

    async def suite(self) -> detect.Suite | AgentFailure | None:
        """The configured command, or what the project's files say, or what the agent names."""
        command = self._kit.settings.project.test or self._job.test_command
        if command:
            return detect.configured(command)
        if found := await thread(partial(detect.find, self._workspace.tree, self._works)):
            return found
        answer = await (await self._agent()).ask(self._job.prompt)
        if isinstance(answer, AgentFailure):
            return answer
        self._answer = answer if isinstance(answer, Testing) else None
        named = self._answer.test_command if self._answer else None
        return detect.configured(named) if named else None

    async def measure_base(self, suite: detect.Suite) -> SuiteReport:
        """The tests as they were before the session, so that old failures are not blamed on it."""
        tree = self._workspace.tree
        await thread(partial(worktrees.reset_worktree, tree, self._job.session_base))
        report = await self.measure(suite)
        await thread(partial(worktrees.reset_worktree, tree, self._job.base))
        return report

    async def measure(self, suite: detect.Suite) -> SuiteReport:
        kit = self._kit
        kit.mark(f"tests wanted {self._job.task.id}")
        report = await measure(
            suite,
            self._workspace.tree,
            run=self._run,
            scratch=self._workspace.temp,
            env=kit.environment(self._workspace),
            limit=kit.settings.limits.test,
        )
        kit.mark(f"tests measured {self._job.task.id}")
        return report

    async def mend(self, measured: Verification) -> AgentFailure | None:
        """Lets the agent try once. A trouble that ends the attempt is returned; with any other the agent gave up."""
        agent = await self._agent()
        self.iterations += 1
        answer = await agent.ask(prompts.mend(self._job.task, measured, self._job.changed))
        if isinstance(answer, AgentFailure):
            if self._ends(answer):
                return answer
            self.gave_up = answer.message
        elif answer.status == "failed":
            self.gave_up = answer.error or answer.findings
        else:
            self._answer = answer if isinstance(answer, Testing) else self._answer
        return None

    def _ends(self, trouble: AgentFailure) -> bool:
        """Whether the same work is to be tried again, later or by another agent."""
        match reaction(trouble.kind):
            case Reaction.wait | Reaction.stop:
                return True
            case Reaction.change_agent | Reaction.change_here | Reaction.insist:
                return self._job.replaceable
            case Reaction.correct | Reaction.fail:
                return False

    async def finish(self, suite: detect.Suite, measured: Verification, baselines: Baselines) -> Outcome:
        """Keeps what the agent mended, as far as it kept to the files of the change."""
        baseline = baselines.new
        commit = await keep(self._job, self._kit, self._workspace) if self._talk else None
        if commit is None:
            return self.conclude(measured, baseline)
        changed = await thread(partial(commits.changed_files, self._kit.top, self._job.base, commit))
        outside = [name for name in changed if name not in self._job.changed]
        if not outside:
            return self.conclude(measured, baseline, commit=commit, changed=changed)
        await thread(partial(worktrees.restore_files, self._workspace.tree, self._job.base, outside))
        commit = await keep(self._job, self._kit, self._workspace)
        measured = compare(await self.measure(suite), baselines.known)
        listed = ", ".join(outside)
        note = f"{self._job.task.id}: the tester changed files outside the change, which were put back: {listed}"
        kept = tuple(name for name in changed if name not in outside) if commit else ()
        return self.conclude(measured, baseline, commit=commit, changed=kept, notes=(note,))

    def conclude(
        self,
        measured: Verification,
        baseline: SuiteReport | None,
        *,
        commit: str | None = None,
        changed: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Done:
        said = done(self._answer) if self._answer else Done(findings="")
        return Done(
            findings=cut(_sentence(measured) + (f"; the tester gave up: {self.gave_up}" if self.gave_up else "")),
            commit=commit,
            changed=changed,
            wisdom=said.wisdom,
            discoveries=said.discoveries,
            tech_debt=said.tech_debt,
            notes=(*notes, *self._unverified(measured)),
            verification=measured,
            baseline=baseline,
            iterations=self.iterations,
        )

    def _unverified(self, measured: Verification) -> list[str]:
        return [f"{self._job.task.id}: nothing was verified: {measured.note}"] if measured.pass_rate is None else []

    async def _agent(self) -> Talk:
        if self._talk is None:
            self._talk = await self._stack.enter_async_context(talk(self._job, self._kit, self._workspace))
            self._on_talk(self._talk)
        return self._talk

    async def _run(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> Finished:
        """Runs a suite; its output is cut later, so secrets go first."""
        done = await run(for_tests(self._kit, self._workspace), argv, cwd=cwd, env=env, limit=limit)
        return msgspec.structs.replace(done, stdout=self._clean(done.stdout), stderr=self._clean(done.stderr))

    def _works(self, argv: Sequence[str]) -> bool:
        """Whether a program of the workspace ends well; called from a thread."""
        tried = partial(
            self._run, argv, cwd=str(self._workspace.tree), env=self._kit.environment(self._workspace), limit=LOOK
        )
        try:
            return anyio.from_thread.run(tried).code == 0
        except HostError:
            return False

    def _clean(self, output: bytes) -> bytes:
        return self._kit.redact(output.decode("utf-8", "replace")).encode()


def _sentence(measured: Verification) -> str:
    if measured.pass_rate is None:
        return f"Nothing was verified: {measured.note}"
    counted = f" of {measured.total} test{'' if measured.total == 1 else 's'}" if measured.total else ""
    known = f"; {len(measured.known_failures)} failed before too" if measured.known_failures else ""
    failing = f"; failing: {', '.join(measured.failures[:5])}" if measured.failures else ""
    return f"Pass rate {measured.pass_rate:.1%}{counted}{failing}{known}, `{measured.command}`"
