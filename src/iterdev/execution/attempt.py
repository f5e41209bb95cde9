"""One attempt, from the borrowed workspace to the report.

An agent's claims are not trusted: iterdev inspects, keeps and commits what the agent changed.
"""

import anyio
import msgspec

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.collaboration.external_packages import PackageCheck, problems
from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Result, Usage
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session import conflicts
from iterdev.core.session.attempts import AttemptReport, Success
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.execution.change_checks import check_change
from iterdev.execution.context import Attempt, AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.conversation import TaskConversation, open_conversation, unsuccessful
from iterdev.execution.kept_work import DAMAGE, damaged, hand_in, with_kept_work, with_notes
from iterdev.execution.suite_runs import SuiteRuns
from iterdev.execution.tested_change import with_tests
from iterdev.execution.tester import verify
from iterdev.execution.workspace_setup import check_packages, set_up
from iterdev.host.git import merge
from iterdev.host.threads import in_thread

REPAIRS = 2
"""How often a developer is asked to fix what the checks found."""

Ending = Success | Failed | Limited | Interrupted | Unmet


async def run_attempt(job: Job, context: AttemptContext, scope: anyio.CancelScope) -> AttemptReport:
    """An agent that fails is an outcome. Cancelling the scope ends the agent and keeps what it wrote so far.

    A machine that fails (disk, git) raises: the workspace then stays as it is, for the next engine to recover.
    """
    with context.effect("borrow workspace", task=job.task.id):
        workspace, fresh = await in_thread(context.pool.borrow, job.base, task=job.task.id, number=job.number)
    attempt = Attempt(job, context, workspace)
    conversations: list[TaskConversation] = []
    outcome: Ending = Interrupted()
    checked: tuple[PackageCheck, ...] = ()
    with scope:
        await set_up(attempt, fresh=fresh)
        checked = await check_packages(attempt)
        unmet = problems(checked, job.overridden)
        outcome = Unmet() if unmet else await _within_limit(attempt, conversations)
    with anyio.CancelScope(shield=True):
        if not isinstance(outcome, Success):
            outcome = await with_kept_work(attempt, outcome)
        with attempt.effect("return workspace"):
            await in_thread(context.pool.give_back, workspace)
    usage = sum((one.output.usage for one in conversations), Usage())
    return AttemptReport(
        task=job.task.id,
        number=job.number,
        fence=job.fence,
        requests=sum(one.requests for one in conversations),
        # It is written to the journal, which must not contain a secret.
        outcome=context.redact.struct(msgspec.structs.replace(outcome, usage=usage)),
        checked=checked,
        denied=tuple(request for one in conversations for request in one.output.denied),
    )


async def _within_limit(attempt: Attempt, conversations: list[TaskConversation]) -> Ending:
    job = attempt.job
    with anyio.move_on_after(job.limit):
        try:
            outcome = await _by_procedure(attempt, conversations)
            return await with_notes(attempt, outcome) if isinstance(outcome, Success) else outcome
        except (HostError, *DAMAGE) as error:
            if isinstance(error, HostError) and not attempt.workspace.tree.is_dir():
                return Failed(error=error.message)
            return Failed(error=await damaged(attempt, error))
    if job.role.procedure is Procedure.verify and not conversations:
        return Failed(error=f"the test run took longer than {duration(job.limit)} and was ended")
    return Failed(error=f"{job.agent} ran longer than {duration(job.limit)} and was ended", kind=FailureKind.timed_out)


async def _by_procedure(attempt: Attempt, conversations: list[TaskConversation]) -> Ending:
    if attempt.job.role.procedure is Procedure.verify:
        return await verify(attempt, conversations)
    return await with_tests(attempt, await _by_agent(attempt, conversations))


async def _by_agent(attempt: Attempt, conversations: list[TaskConversation]) -> Ending:
    job = attempt.job
    if job.merge:
        with attempt.effect("begin merge"):
            top, tree = attempt.context.top, attempt.workspace.tree
            await in_thread(merge.begin, top, tree, job.base, job.merge.commit, attempt.label.author)
    async with open_conversation(attempt) as conversation:
        conversations.append(conversation)
        result = await conversation.ask(await _prompt(attempt))
        if isinstance(result, AgentFailure):
            return unsuccessful(result)
        if result.status == "failed":
            return Failed(error=result.error or result.findings)
        if job.role.procedure is Procedure.change:
            return await _changed(attempt, conversation, result)
        return Success(result=result)


async def _prompt(attempt: Attempt) -> str:
    """The prompt with how the tests of the workspace are run, if that was not known when it was made."""
    prompt = attempt.job.prompt
    if prompts.TESTS not in prompt:
        return prompt
    suites = await SuiteRuns(attempt).find()
    return prompt.replace(prompts.TESTS, prompts.tests_found([prompts.suite_name(s.command, s.folder) for s in suites]))


async def _changed(attempt: Attempt, conversation: TaskConversation, result: Result) -> Ending:
    """The change, after at most two repairs of its faults; what may be right is asked about once."""
    job = attempt.job
    for remaining in range(REPAIRS, -1, -1):
        handed_in = await in_thread(hand_in, attempt)
        if not isinstance(handed_in, tuple):
            return handed_in or _unchanged(job, result)
        commit, changed = handed_in
        checked = await check_change(attempt, commit, changed)
        merged_wrong, merged_doubts = await _merge_problems(attempt, commit, result)
        faults, doubts = [*merged_wrong, *checked.faults], [*merged_doubts, *checked.doubts]
        asked = doubts if remaining == REPAIRS else []
        if not remaining or not (faults or asked):
            break
        again = await conversation.ask(prompts.repair(faults, asked, job.schema))
        if isinstance(again, AgentFailure):
            return unsuccessful(again)
        result = again
    if faults:
        return Failed(error=f"the change is incomplete: {'; '.join(faults[:5])}", commit=commit)
    notes = tuple(f"{job.task.id}: {doubt}" for doubt in doubts)
    clean = checked.syntax_clean
    return Success(result=result, commit=commit, changed=changed, notes=notes, syntax_clean=clean)


async def _merge_problems(attempt: Attempt, commit: str, result: Result) -> tuple[list[str], list[str]]:
    """What is wrong with the merge that a conflict task finished, and what may be."""
    job, claimed = attempt.job, result.changed_files
    if job.merge is None:
        return [], []
    merged = await in_thread(merge.finished, attempt.context.top, job.base, job.merge.commit, commit)

    def left_alone(file: str) -> bool:
        return claimed is not None and file not in claimed and bool(result.findings)

    return conflicts.faults(merged, job.merge.task, left_alone), conflicts.doubts(merged, job.merge.task, left_alone)


def _unchanged(job: Job, result: Result) -> Ending:
    """Nothing changed: only an explicit empty list of changed files, with findings, says that this is right."""
    if result.changed_files == () and result.findings:
        return Success(result=result)
    return Failed(error=f"{job.agent} said it was done but changed nothing")
