"""Which work lands next, and which is tested before: the landing queue.

Work of a role that is `tested` lands only if the tests pass with what landed since it began. Everything that waits is
tested as one tree. If that fails, half of it is tested, and so on: the work with which the tests begin to fail is taken
out, and all that comes before it lands. It is tried once more, and parked if that fails too.
"""

from itertools import takewhile

from iterdev.core import ids
from iterdev.core.collaboration import tech_debt
from iterdev.core.rules.schedule import Command, Land, Record, RunLandingTest
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session.attempts import LandingTestReport
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded
from iterdev.core.session.state import State
from iterdev.core.types import Severity, Status, TaskId
from iterdev.core.verification import Verification, failure_summary

OUTPUT_KEPT = 1500
"""Characters at the end of a failing test run that go back with the work."""


def waiting(state: State) -> list[TaskId]:
    """What waits to land, in the order of landing: first in, first out, except that a search is completed first."""
    queue = state.landing_queue
    known = (one.tasks for one in (queue.passed, queue.failed) if one and one.tip == state.branch.tip)
    first = [task for tasks in known for task in tasks if task in state.attempts.landing]
    others = sorted(state.attempts.landing, key=lambda task: queue.arrived.get(task, 0))
    return list(dict.fromkeys((*first, *others)))


def under_way(state: State) -> tuple[TaskId, ...]:
    """The tasks for which the executor has something to report: an attempt, or a test of work that waits to land."""
    testing = state.landing_queue.testing
    return (*state.attempts.running, *(testing.tasks[:1] if testing else ()))


def due(state: State, team: TeamRules) -> tuple[Command, ...]:
    """What is to be done about work that waits to land; nothing while it is tested."""
    if not state.attempts.landing or state.landing_queue.testing:
        return ()
    queue, tip, order = state.landing_queue, state.branch.tip, waiting(state)
    if not _needs_test(state, team, order[0]) or (queue.passed and queue.passed.tip == tip):
        return (Land(order[0]),)
    if queue.failed and queue.failed.tip == tip:
        failing = queue.failed.tasks
        if len(failing) == 1:
            return (Record(_taken_out(state, failing[0], queue.failed)),)
        return (RunLandingTest(failing[: len(failing) // 2]),)
    return (RunLandingTest(tuple(takewhile(lambda task: team.roles[state.tasks.plan[task].role].tested, order))),)


def _needs_test(state: State, team: TeamRules, task: TaskId) -> bool:
    """Work on top of the newest commit was tested by its attempt as it will be on the branch."""
    return team.roles[state.tasks.plan[task].role].tested and state.tasks.progress[task].base != state.branch.tip


def tested(state: State, team: TeamRules, report: LandingTestReport) -> tuple[Event, ...]:
    """The end of a test run, and whether the work lands. Tests that say nothing do not keep it from landing."""
    testing, found = state.landing_queue.testing, report.verification or _always_dying(state, report)
    if testing is None or testing.tasks != report.tasks:
        return ()
    passed = None if found is None else found.pass_rate is None or found.passes(team.pass_rate(state))
    ended = LandingTestEnded(
        tasks=report.tasks, tip=testing.tip, passed=passed, verification=found, host_died=report.host_died
    )
    return ended, *map(Warned, report.notes)


def _always_dying(state: State, report: LandingTestReport) -> Verification | None:
    """A failure, if hosts have died too often during the run: it may be the tests with this work that end them."""
    count = state.landing_queue.host_deaths + report.host_died
    if not report.host_died or count < state.policy.host_deaths:
        return None
    return Verification(pass_rate=0.0, note=f"the host died during each of the last {count} test runs")


def _taken_out(state: State, task: TaskId, failed: LandingTestEnded) -> tuple[Event, ...]:
    found, progress = failed.verification, state.tasks.progress[task]
    why = failure_summary(found) if found else ""
    error = f"the tests fail together with what landed since the work began, {why}"
    if failed.host_died:
        error = f"the tests with what landed since the work began could not be completed: {why}"
    # No agent made an update, so that trying again would change nothing.
    again = bool(progress.attempt) and state.landing_queue.taken_out.get(task, 0) < state.policy.landing_returns
    where, debt = _parked(state, task, error)
    out = LandingTakenOut(
        task=task,
        commit=progress.commit or "",
        error=error if again else where,
        output=found.output[-OUTPUT_KEPT:] if found else "",
        status=Status.pending if again else Status.failed,
    )
    if not again:
        return out, debt
    return out, Warned(f"{task} is taken out of the landing queue, and tried once more: {error}", announced=False)


def parked(state: State, task: TaskId, error: str) -> tuple[str, tuple[Event, ...]]:
    """The error and the debt of work that failed again after it was taken out; all other work leaves no debt."""
    if not state.landing_queue.taken_out.get(task):
        return error, ()
    where, debt = _parked(state, task, error)
    return where, (debt,)


def _parked(state: State, task: TaskId, error: str) -> tuple[str, tech_debt.DebtIdentified]:
    row, progress = state.tasks.plan[task], state.tasks.progress[task]
    kept = ids.kept_ref(state.session.id, task, progress.attempt) if progress.attempt else progress.commit
    where = f"{error}; the work is parked as {kept}"
    debt = tech_debt.Debt(
        source_task_id=task,
        description=f"{row.title} ({task}) is not on the branch: {where}",
        severity=Severity.high,
        detection_date=state.updated_at,
        related_files=progress.changed,
    )
    return where, tech_debt.identified(state.debt, debt)
