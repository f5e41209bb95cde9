"""The procedure `verify`: iterdev runs the tests itself; the agent is asked only to fix what fails."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import msgspec
from msgspec import Struct

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.formatting import counted, percent
from iterdev.core.limits.agent_failures import REPLACING, Reaction, reaction
from iterdev.core.results import Result, shortened
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Failed, Interrupted, Limited
from iterdev.core.verification import TEST_FIXES, Measurement, SuiteReport, Verification
from iterdev.execution.context import Attempt
from iterdev.execution.conversation import TaskConversation, open_conversation, unsuccessful
from iterdev.execution.kept_work import keep
from iterdev.execution.suite_runs import SuiteRuns
from iterdev.host.git import commits, worktrees
from iterdev.host.test_suites.invocations import configured
from iterdev.host.test_suites.suite import Suite
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files

NAMED = 5
"""Tests that a summary names."""
NOTHING = "no test command was found or named, so nothing was verified"


async def verify(attempt: Attempt, conversations: list[TaskConversation]) -> Success | Failed | Limited | Interrupted:
    """Adds the conversation with the agent to the list if the agent has to be asked."""
    job = attempt.job
    async with AsyncExitStack() as stack:
        tester = _Tester(attempt, SuiteRuns(attempt), stack, conversations)
        suites = await tester.suites()
        if isinstance(suites, AgentFailure):
            return unsuccessful(suites)
        baseline = job.baseline or await tester.runs.on_base(suites)
        if not suites and not baseline:
            return tester.conclude(Verification(note=NOTHING), ())
        measured = await tester.runs.on_change(suites, baseline)
        # A run without a pass rate says nothing, so there is nothing to fix.
        while measured.pass_rate is not None and not measured.passes(job.pass_rate) and tester.iterations < TEST_FIXES:
            if failure := await tester.ask_for_fix(measured):
                return unsuccessful(failure)
            if tester.gave_up:
                break
            measured = await tester.runs.on_change(suites, baseline)
        return await tester.finish(suites, measured, baseline)


class _Tester(Struct):
    """The workspace, the agent when it is needed, and the number of fixes that it tried."""

    attempt: Attempt
    runs: SuiteRuns
    stack: AsyncExitStack
    conversations: list[TaskConversation]
    answer: Result | None = None
    gave_up: str = ""
    iterations: int = 0

    async def suites(self) -> tuple[Suite, ...] | AgentFailure:
        """The configured command, or what the project's files say, or what the agent names."""
        if found := await self.runs.find():
            return found
        answer = await (await self._agent()).ask(self.attempt.job.prompt)
        if isinstance(answer, AgentFailure):
            return answer
        self.answer = answer
        named = getattr(answer, "test_command", None)
        return (configured(named),) if named else ()

    async def ask_for_fix(self, measured: Verification) -> AgentFailure | None:
        """Lets the agent try once. A failure that ends the attempt is returned; with any other the agent gave up."""
        agent = await self._agent()
        self.iterations += 1
        job = self.attempt.job
        prompt = "" if agent.requests else job.prompt
        answer = await agent.ask(prompts.fix_tests(job.task.id, measured, job.changed, job.schema, prompt=prompt))
        await in_thread(untracked_files.remove_new_ignored, self.attempt.workspace.tree)
        if isinstance(answer, AgentFailure):
            if self._ends_attempt(answer):
                return answer
            self.gave_up = answer.message
        elif answer.status == "failed":
            self.gave_up = answer.error or answer.findings
        else:
            self.answer = answer
        return None

    def _ends_attempt(self, failure: AgentFailure) -> bool:
        """Whether the same work is to be tried again, later or by another agent."""
        how = reaction(failure.kind)
        return how in {Reaction.pause_provider, Reaction.stop} or (how in REPLACING and self.attempt.job.replaceable)

    async def finish(
        self, suites: Sequence[Suite], measured: Verification, baseline: tuple[SuiteReport, ...]
    ) -> Success:
        """Keeps what the agent fixed, as far as it kept to the files of the change."""
        attempt, job = self.attempt, self.attempt.job
        new_baseline = () if job.baseline else baseline
        commit = await in_thread(keep, attempt) if self.conversations else None
        if commit is None:
            return self.conclude(measured, new_baseline)
        changed = await in_thread(commits.changed_files, attempt.context.top, job.base, commit)
        outside = [name for name in changed if name not in job.changed]
        if not outside:
            return self.conclude(measured, new_baseline, commit=commit, changed=changed)
        await in_thread(worktrees.restore_files, attempt.context.top, attempt.workspace.tree, job.base, outside)
        commit = await in_thread(keep, attempt)
        measured = await self.runs.on_change(suites, baseline)
        note = f"{job.task.id}: the {job.task.role} changed files outside the change, which were restored: "
        kept = tuple(name for name in changed if name not in outside) if commit else ()
        return self.conclude(measured, new_baseline, commit=commit, changed=kept, notes=(note + ", ".join(outside),))

    def conclude(
        self,
        measured: Verification,
        baseline: tuple[SuiteReport, ...],
        *,
        commit: str | None = None,
        changed: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Success:
        job = self.attempt.job
        answer = self.answer or job.role.result(id=job.task.id, status="completed")
        gave_up = f"; the {job.task.role} gave up: {self.gave_up}" if self.gave_up else ""
        unverified = [f"{job.task.id}: nothing was verified: {measured.note}"] * (measured.pass_rate is None)
        return Success(
            result=msgspec.structs.replace(answer, findings=shortened(_summary(measured) + gave_up)),
            commit=commit,
            changed=changed,
            notes=(*notes, *unverified, *(f"{job.task.id}: {doubt}" for doubt in self.runs.doubts)),
            measured=Measurement(verification=measured, baseline=baseline, iterations=self.iterations),
        )

    async def _agent(self) -> TaskConversation:
        """Opened when it is first needed."""
        if not self.conversations:
            self.conversations.append(await self.stack.enter_async_context(open_conversation(self.attempt)))
        return self.conversations[0]


def _summary(measured: Verification) -> str:
    if measured.pass_rate is None:
        return f"Nothing was verified: {measured.note}"
    tests = f" of {counted(measured.total, 'test')}" if measured.total else ""
    known = f"; {len(measured.known_failures)} failed before too" if measured.known_failures else ""
    lists = (("failing", measured.failures), ("missing", measured.missing), ("flaky", measured.flaky))
    named = "".join(f"; {word}: {', '.join(found[:NAMED])}" for word, found in lists if found)
    return f"Pass rate {percent(measured.pass_rate):.1f}%{tests}{named}{known}, `{measured.command}`"
