"""One attempt, from the borrowed workspace to the report.

Nothing that an agent says is taken for done here: what it changed is looked at, kept and committed by iterdev.
"""

from functools import partial

import anyio
import msgspec

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.collaboration.external_packages import PackageCheck, problems
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Result, Usage
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.session import conflicts
from iterdev.core.session.attempts import AttemptReport, Success
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.conversation import TaskConversation, open_conversation, unsuccessful
from iterdev.execution.kept_work import begin_merge, in_thread, keep, observed, with_kept_work
from iterdev.execution.package_check import check_packages
from iterdev.execution.tester import verify
from iterdev.execution.workspace_setup import set_up
from iterdev.host import static_checks
from iterdev.host.git import assisted_merge, commits, landing
from iterdev.host.workspaces.pool import Workspace

REPAIRS = 2
"""How often a developer is asked to fix what the checks found."""

Ending = Success | Failed | Limited | Interrupted | Unmet


async def attempt(job: Job, context: AttemptContext, scope: anyio.CancelScope) -> AttemptReport:
    """An agent that fails is an outcome. Cancelling the scope ends the agent and keeps what it wrote so far.

    A machine that fails (disk, git) raises: the workspace then stays as it is, for the next engine to recover.
    """
    with context.effect("borrow workspace", task=job.task.id):
        borrow = partial(context.pool.borrow, job.base, task=job.task.id, number=job.number)
        workspace, fresh = await in_thread(borrow)
    conversations: list[TaskConversation] = []
    outcome: Ending = Interrupted()
    checked: tuple[PackageCheck, ...] = ()
    with scope:
        if fresh:
            await set_up(job, context, workspace)
        checked = await check_packages(job, context, workspace)
        unmet = problems(checked, job.overridden)
        outcome = Unmet() if unmet else await _within_limit(job, context, workspace, conversations)
    with anyio.CancelScope(shield=True):
        if not isinstance(outcome, Success):
            outcome = await with_kept_work(job, context, workspace, outcome)
        with context.effect("return workspace", task=job.task.id):
            await in_thread(partial(context.pool.give_back, workspace))
    usage = sum((one.usage for one in conversations), Usage())
    return AttemptReport(
        task=job.task.id,
        number=job.number,
        requests=sum(one.requests for one in conversations),
        outcome=_without_secrets(context, msgspec.structs.replace(outcome, usage=usage)),
        checked=checked,
        denied=tuple(request for one in conversations for request in one.denied),
    )


def _without_secrets(context: AttemptContext, outcome: Ending) -> Ending:
    """The journal is the first thing that is written; nothing secret may get that far."""
    clean: Ending = msgspec.convert(context.redact.everywhere(msgspec.to_builtins(outcome)), Ending)
    if isinstance(outcome, Success):
        # A result is decoded as that of every role; its own kind is known here alone.
        document = context.redact.everywhere(msgspec.to_builtins(outcome.result))
        return msgspec.structs.replace(clean, result=msgspec.convert(document, type(outcome.result)))
    return clean


async def _within_limit(
    job: Job, context: AttemptContext, workspace: Workspace, conversations: list[TaskConversation]
) -> Ending:
    with anyio.move_on_after(job.limit):
        outcome = await _by_procedure(job, context, workspace, conversations)
        return await observed(job, context, workspace, outcome) if isinstance(outcome, Success) else outcome
    if job.role.procedure is Procedure.verify and not conversations:
        return Failed(error=f"the test run took longer than {job.limit:g} s and was ended")
    return Failed(error=f"{job.agent} ran longer than {job.limit:g} s and was ended", kind=FailureKind.timed_out)


async def _by_procedure(
    job: Job, context: AttemptContext, workspace: Workspace, conversations: list[TaskConversation]
) -> Ending:
    if job.role.procedure is Procedure.verify:
        return await verify(job, context, workspace, conversations.append)
    if job.merge:
        await begin_merge(job, context, workspace, job.merge)
    async with open_conversation(job, context, workspace) as conversation:
        conversations.append(conversation)
        result = await conversation.ask(job.prompt)
        if isinstance(result, AgentFailure):
            return unsuccessful(result)
        if result.status == "failed":
            return Failed(error=result.error or result.findings)
        if job.role.procedure is Procedure.change:
            return await _changed(job, context, workspace, conversation, result)
        return Success(result=result)


async def _changed(
    job: Job, context: AttemptContext, workspace: Workspace, conversation: TaskConversation, result: Result
) -> Ending:
    """The change, after at most two repairs of what the checks find in it."""
    merges = job.merge.commit if job.merge else ""
    for remaining in range(REPAIRS, -1, -1):
        if await in_thread(partial(landing.wandered_off, context.top, workspace.tree, job.base)):
            return Failed(error=f"{job.agent} left the history it was given ({job.base[:12]})")
        commit = await keep(job, context, workspace, merges=merges)
        if commit is None:
            return _unchanged(job, result)
        changed = await in_thread(partial(commits.changed_files, context.top, job.base, commit))
        faults, doubts = await _merge_problems(job, context, commit, result)
        found = [*faults, *await in_thread(partial(static_checks.problems, workspace.tree, changed, job.planned))]
        if remaining == REPAIRS:
            found += doubts
        if not found or not remaining:
            break
        again = await conversation.ask(prompts.repair(found, job.schema))
        if isinstance(again, AgentFailure):
            return unsuccessful(again)
        result = again
    if found:
        return Failed(error=f"the change is incomplete: {'; '.join(found[:5])}", commit=commit)
    notes = tuple(f"{job.task.id}: {doubt}" for doubt in doubts)
    return Success(result=result, commit=commit, changed=changed, notes=notes)


async def _merge_problems(
    job: Job, context: AttemptContext, commit: str, result: Result
) -> tuple[list[str], list[str]]:
    """What is wrong with the merge that a conflict task finished, and what may be."""
    if job.merge is None:
        return [], []
    work = job.merge.task
    merged = await in_thread(partial(assisted_merge.finished, context.top, job.base, job.merge.commit, commit))
    claimed = result.changed_files

    def left_alone(file: str) -> bool:
        return claimed is not None and file not in claimed and bool(result.findings)

    return conflicts.faults(merged, work, left_alone), conflicts.doubts(merged, work, left_alone)


def _unchanged(job: Job, result: Result) -> Ending:
    """Nothing changed: only an explicit empty list of changed files, with findings, says that this is right."""
    if result.changed_files == () and result.findings:
        return Success(result=result)
    return Failed(error=f"{job.agent} said it was done but changed nothing")
