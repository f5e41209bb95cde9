"""Runs the tests on work that waits to land, merged with what landed before it. No agent is asked."""

import anyio

from iterdev.core.session.attempts import LandingTestReport
from iterdev.core.verification import Verification
from iterdev.execution.context import Attempt, AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.kept_work import DAMAGE, damaged
from iterdev.execution.suite_runs import SuiteRuns
from iterdev.execution.tested_change import measured
from iterdev.execution.workspace_setup import set_up
from iterdev.host.threads import in_thread


async def run_landing_test(job: Job, context: AttemptContext, scope: anyio.CancelScope) -> LandingTestReport:
    """Cancelling the scope ends the tests, and the report says nothing. A machine that fails (disk, git) raises."""
    with context.effect("borrow workspace", landing=", ".join(job.together)):
        workspace, fresh = await in_thread(context.pool.lend, job.base)
    runs = SuiteRuns(Attempt(job, context, workspace))
    found: Verification | None = None
    with scope:
        await set_up(runs.attempt, fresh=fresh)
        found = await _measured(runs)
    with anyio.CancelScope(shield=True), runs.attempt.effect("return workspace"):
        await in_thread(context.pool.give_back, workspace)
    notes = tuple(f"{', '.join(job.together)}: {doubt}" for doubt in runs.doubts)
    # It is written to the journal, which must not contain a secret.
    return context.redact.struct(LandingTestReport(tasks=job.together, verification=found, notes=notes))


async def _measured(runs: SuiteRuns) -> Verification:
    """What the tests say; those that damage their own workspace have failed."""
    try:
        _, found = await measured(runs, runs.attempt.job.base)
    except DAMAGE as error:
        return Verification(pass_rate=0.0, note=await damaged(runs.attempt, error))
    return found
