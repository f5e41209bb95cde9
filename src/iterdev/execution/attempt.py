"""One attempt, from the borrowed workspace to the outcome.

Nothing that an agent says is taken for done here: what it changed is looked at, kept and committed by iterdev.
"""

from functools import partial

import anyio
import msgspec

from iterdev.agents.contract import AgentFailure
from iterdev.core import prompts
from iterdev.core.collaboration.external_packages import Checked, problems
from iterdev.core.limits.agent_failures import TroubleKind
from iterdev.core.results import Result, Usage
from iterdev.core.session import conflicts
from iterdev.core.session.events import AttemptEnded, Done, Failed, Interrupted, Outcome, Unmet
from iterdev.core.types import Role
from iterdev.execution import tester
from iterdev.execution.context import Kit
from iterdev.execution.contract import Job
from iterdev.execution.conversation import Talk, talk
from iterdev.execution.kept_work import begin_merge, keep, observed, thread, with_kept_work
from iterdev.execution.outcomes import done, unsuccessful
from iterdev.execution.package_check import packages
from iterdev.execution.workspace_setup import set_up
from iterdev.host import static_checks
from iterdev.host.git import assisted_merge, commits, landing
from iterdev.host.workspaces.pool import Workspace

REPAIRS = 2
"""How often a developer is asked to mend what the checks found."""


async def attempt(job: Job, kit: Kit, scope: anyio.CancelScope) -> AttemptEnded:
    """An agent that fails is an outcome. Cancelling the scope ends the agent and keeps what it wrote so far.

    A machine that fails (disk, git) raises: the workspace then stays as it is, for the next engine to rescue.
    """
    kit.mark(f"workspace wanted {job.task.id}")
    workspace, fresh = await thread(partial(kit.pool.borrow, job.base, task=job.task.id, number=job.number))
    kit.mark(f"workspace borrowed {job.task.id}")
    talks: list[Talk] = []
    outcome: Outcome = Interrupted()
    checked: tuple[Checked, ...] = ()
    with scope:
        if fresh:
            await set_up(kit, workspace)
        checked = await packages(job, kit, workspace)
        unmet = problems(checked, job.overridden)
        outcome = Unmet() if unmet else await _within_limit(job, kit, workspace, talks)
    with anyio.CancelScope(shield=True):
        if not isinstance(outcome, Done):
            outcome = await with_kept_work(job, kit, workspace, outcome)
        kit.mark(f"workspace free {job.task.id}")
        await thread(partial(kit.pool.give_back, workspace))
        kit.mark(f"workspace given back {job.task.id}")
    requests = sum(one.requests for one in talks)
    outcome = msgspec.structs.replace(outcome, usage=sum((one.usage for one in talks), Usage()))
    denied = tuple(wish for one in talks for wish in one.denied)
    return AttemptEnded(job.task.id, job.number, requests, _without_secrets(kit, outcome), checked, denied)


def _without_secrets(kit: Kit, outcome: Outcome) -> Outcome:
    """The journal is the first thing that is written; nothing secret may get that far."""
    document = kit.redact.everywhere(msgspec.to_builtins(outcome))
    clean: Outcome = msgspec.convert(document, Outcome)
    return clean


async def _within_limit(job: Job, kit: Kit, workspace: Workspace, talks: list[Talk]) -> Outcome:
    with anyio.move_on_after(job.limit):
        outcome = await _by_role(job, kit, workspace, talks)
        return await observed(job, kit, workspace, outcome) if isinstance(outcome, Done) else outcome
    if job.task.role is Role.tester and not talks:
        return Failed(error=f"the test run took longer than {job.limit:g} s and was ended")
    return Failed(error=f"{job.agent} ran longer than {job.limit:g} s and was ended", kind=TroubleKind.timed_out)


async def _by_role(job: Job, kit: Kit, workspace: Workspace, talks: list[Talk]) -> Outcome:
    if job.task.role is Role.tester:
        return await tester.verify(job, kit, workspace, talks.append)
    if job.merging:
        await begin_merge(job, kit, workspace, job.merging)
    async with talk(job, kit, workspace) as conversation:
        talks.append(conversation)
        result = await conversation.ask(job.prompt)
        if isinstance(result, AgentFailure):
            return unsuccessful(result)
        if result.status == "failed":
            return Failed(error=result.error or result.findings)
        if job.task.role is Role.developer:
            return await _developed(job, kit, workspace, conversation, result)
        return done(result)


async def _developed(job: Job, kit: Kit, workspace: Workspace, conversation: Talk, result: Result) -> Outcome:
    """The developer's work, after at most two repairs of what the checks find in it."""
    for remaining in range(REPAIRS, -1, -1):
        if await thread(partial(landing.wandered_off, kit.top, workspace.tree, job.base)):
            return Failed(error=f"{job.agent} left the history it was given ({job.base[:12]})")
        commit = await keep(job, kit, workspace, brings=job.merging.commit if job.merging else "")
        if commit is None:
            return _unchanged(job, result)
        changed = await thread(partial(commits.changed_files, kit.top, job.base, commit))
        faults, doubts = await _merge(job, kit, commit, result)
        found = [*faults, *await thread(partial(static_checks.problems, workspace.tree, changed, job.planned))]
        if remaining == REPAIRS:
            found += doubts
        if not found or not remaining:
            break
        again = await conversation.ask(prompts.repair(found, job.task.role))
        if isinstance(again, AgentFailure):
            return unsuccessful(again)
        result = again
    if found:
        problems = "; ".join(found[:5])
        return Failed(error=f"the change is not whole: {problems}", commit=commit)
    notes = tuple(f"{job.task.id}: {doubt}" for doubt in doubts)
    return msgspec.structs.replace(done(result), commit=commit, changed=changed, notes=notes)


async def _merge(job: Job, kit: Kit, commit: str, result: Result) -> tuple[list[str], list[str]]:
    """What is wrong with the merge that a resolver finished, and what may be."""
    if job.merging is None:
        return [], []
    work = job.merging.task
    merged = await thread(partial(assisted_merge.finished, kit.top, job.base, job.merging.commit, commit))
    claimed = result.changed_files

    def left_alone(file: str) -> bool:
        return claimed is not None and file not in claimed and bool(result.findings)

    return conflicts.faults(merged, work, left_alone), conflicts.doubts(merged, work, left_alone)


def _unchanged(job: Job, result: Result) -> Outcome:
    """Nothing changed: only an explicit empty list of changed files, with findings, says that this is right."""
    if result.changed_files == () and result.findings:
        return done(result)
    return Failed(error=f"{job.agent} said it was done but changed nothing")
