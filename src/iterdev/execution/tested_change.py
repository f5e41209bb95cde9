"""Runs the tests on the change of a role whose work lands only if they pass; a change that breaks tests is kept."""

import msgspec

from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.core.verification import Measurement, SuiteReport, Verification, failure_summary
from iterdev.execution.context import Attempt
from iterdev.execution.suite_runs import SuiteRuns

Outcome = Success | Failed | Limited | Interrupted | Unmet

NOTHING = "no test command was found or named, so nothing was verified"


async def with_tests(attempt: Attempt, outcome: Outcome) -> Outcome:
    """The outcome with what the tests say about it; called when the agent has ended."""
    job = attempt.job
    if not job.role.tested or not isinstance(outcome, Success) or outcome.commit is None:
        return outcome
    changed = tuple(dict.fromkeys((*job.changed, *outcome.changed)))
    runs = SuiteRuns(msgspec.structs.replace(attempt, job=msgspec.structs.replace(job, changed=changed)))
    baseline, found = await measured(runs, outcome.commit)
    if found.pass_rate is not None and not found.passes(job.pass_rate):
        return Failed(error=f"the tests fail with the change, {failure_summary(found)}", commit=outcome.commit)
    doubts = tuple(f"{job.task.id}: {doubt}" for doubt in runs.doubts)
    made = Measurement(verification=found, baseline=() if job.baseline else baseline)
    return msgspec.structs.replace(outcome, measured=made, notes=(*outcome.notes, *doubts))


async def measured(runs: SuiteRuns, commit: str) -> tuple[tuple[SuiteReport, ...], Verification]:
    """The tests on the session's base, and on the change."""
    suites = await runs.find()
    baseline = runs.attempt.job.baseline or await runs.on_base(suites)
    await runs.move_to(commit)
    if not suites and not baseline:
        return baseline, Verification(note=NOTHING)
    return baseline, await runs.on_change(suites, baseline)
