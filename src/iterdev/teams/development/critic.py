"""The Generator-Critic loop: scores, signals, and what follows from a review or a test run.

The rule, and nothing else: a critical finding or a score below 7 asks for another round, and so do failing
tests. After the last round the work is accepted with a warning, and what is left is recorded.
"""

import math
from collections.abc import Sequence

from iterdev.core.results import Finding, Review, Scores
from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Pipeline, Role, Severity, Signal, TaskId
from iterdev.core.verification import Verification
from iterdev.teams.development import findings, pipelines

PASSING_SCORE = 7
WEIGHTS = {"correctness": 30, "completeness": 25, "maintainability": 25, "security": 20}
"""Per cent of the whole score."""
MUST_FIX = (Severity.critical, Severity.high)


def score(scores: Scores) -> float:
    """The weighted mean, to one decimal; a score a hair below the limit is still below it."""
    total: float = sum(getattr(scores, name) * weight for name, weight in WEIGHTS.items())
    return math.floor(round(total / 10, 6)) / 10


def critical_count(review: Review) -> int:
    return sum(issue.grade is Severity.critical for issue in review.issues)


def signal(review: Review) -> Signal:
    triggered = critical_count(review) > 0 or score(review.scores) < PASSING_SCORE
    return Signal.revision_needed if triggered else Signal.converged


def grade(review: Review) -> Severity:
    """The verdict's own severity: high asks for a round, medium is worth a warning, low passes."""
    if signal(review) is Signal.revision_needed:
        return Severity.high
    notable = {Severity.critical, Severity.high, Severity.medium}
    return Severity.medium if any(issue.grade in notable for issue in review.issues) else Severity.low


def _grade(state: State, task: TaskId) -> Severity:
    """A review of which only the row is known, because somebody wrote it there, passed without further findings."""
    return grade(state.reviews[task]) if task in state.reviews else Severity.low


def must_fix(review: Review) -> list[Finding]:
    """Critical findings, then high ones: what a fix is confined to."""
    return [issue for severity in MUST_FIX for issue in review.issues if issue.grade is severity]


def fails(verification: Verification) -> bool:
    """Tests that say nothing do not ask for a round; they are reported as unverified."""
    return verification.pass_rate is not None and not verification.passed


def verify_error(task: Task, verification: Verification | None) -> str:
    """Why failing tests fail the task: a patch has no round in which they could be mended."""
    if verification is None or not fails(verification) or task.pipeline is not Pipeline.patch:
        return ""
    failing = ", ".join(verification.failures[:5]) or verification.note
    return f"pass rate {verification.pass_rate or 0:.1%} is below 95 %: {failing}"


def consequences(state: State) -> tuple[events.Event, ...]:
    """What has to be recorded because reviews and verifications ended that nobody has judged yet."""
    reviews = [task for task in _unjudged(state, Role.reviewer) if not _has_controller(state, task)]
    verifies = [task for task in _unjudged(state, Role.tester) if fails(state.verifications[task.id])]
    for task in verifies:
        if fix := _newer_fix(state, task):
            again = pipelines.reverification(fix, state.scope, state.tasks.keys())
            return events.Reverified(task.id), events.TasksAdded(pipelines.with_waves([again], state.tasks))
    if verifies and not reviews and _review_is_open(state, verifies[0].sprint):
        return ()
    return _judgement(state, reviews, verifies)


def decided_by(state: State, controller: Task) -> tuple[events.Event, ...]:
    """What a controller row decides about the reviews that it depends on."""
    reviews = [task for task in _unjudged(state, Role.reviewer) if task.id in controller.deps]
    verifies = [task for task in _unjudged(state, Role.tester) if fails(state.verifications[task.id])]
    verdict = _judgement(state, reviews, verifies, controller)
    revision = any(isinstance(event, events.RoundStarted) for event in verdict)
    decision = "REVISION" if revision else "CONVERGE"
    number = state.rounds.get(controller.sprint, 0)
    return events.RoundDecided(task=controller.id, decision=decision, number=number), *verdict


def _judgement(
    state: State, reviews: Sequence[Task], verifies: Sequence[Task], controller: Task | None = None
) -> tuple[events.Event, ...]:
    bad = [task for task in reviews if state.progress[task.id].signal is Signal.revision_needed]
    passed = tuple(events.ReviewPassed(task.id, _grade(state, task.id)) for task in reviews if task not in bad)
    raised = [*bad, *verifies]
    if not raised:
        return passed
    # One sprint at a time; the others are still unjudged when it is decided again.
    sprint = raised[0].sprint
    raisers = [task for task in raised if task.sprint == sprint]
    raised_by = tuple(task.id for task in raisers)
    used = state.rounds.get(sprint, 0)
    pointless = _not_converging(state, raisers)
    if pointless or used >= state.policy.rounds:
        problems = tuple(problem for task in raisers for problem in open_problems(state, task.id))
        return *passed, events.ConvergenceForced(sprint=sprint, raised_by=raised_by, problems=problems, why=pointless)
    why = "; ".join(_reason(state, task.id) for task in raisers)
    fix = pipelines.FixRound(
        pipeline=raisers[0].pipeline,
        sprint=sprint,
        number=used + 1,
        raised_by=(controller.id,) if controller else raised_by,
        context=raised_by,
        verify=any(task.role is Role.tester for task in raisers),
        check=controller is not None,
    )
    rows = pipelines.fix_round(fix, state.scope, state.tasks.keys())
    started = events.RoundStarted(sprint=sprint, number=used + 1, raised_by=raised_by, why=why)
    return *passed, started, events.TasksAdded(pipelines.with_waves(rows, state.tasks))


def _not_converging(state: State, raisers: Sequence[Task]) -> str:
    """Another round is pointless after one in which nothing that must be fixed was, and nothing was changed."""
    review = next((task for task in raisers if task.role is Role.reviewer and task.round), None)
    comparison = findings.of_round(state, review.id) if review else None
    if review is None or comparison is None:
        return ""
    fixes = [task for task in state.of_role(Role.developer, review.sprint) if task.round == review.round]
    changed = any(state.progress[task.id].changed for task in fixes)
    fixed = any(finding.grade in MUST_FIX for finding in comparison.fixed)
    return "" if changed or fixed else f"round {review.round} changed nothing and fixed nothing"


def open_problems(state: State, task: TaskId) -> list[str]:
    """What a verdict leaves unsolved, one sentence each."""
    if review := state.reviews.get(task):
        found = [f"{issue.grade}: {issue.place} {issue.description}".replace("  ", " ") for issue in must_fix(review)]
        return found or [f"{task} scored {score(review.scores)}, below {PASSING_SCORE}"]
    if task not in state.verifications:
        return [f"{task} asked for a revision with a score of {state.progress[task].score}"]
    verification = state.verifications[task]
    failures = [f"failing test: {name}" for name in verification.failures]
    return failures or [f"{task}: the tests fail ({verification.note or verification.command})"]


def _reason(state: State, task: TaskId) -> str:
    if review := state.reviews.get(task):
        critical = critical_count(review)
        return f"{task} scored {score(review.scores)} with {critical} critical finding{'' if critical == 1 else 's'}"
    if task not in state.verifications:
        return f"{task} scored {state.progress[task].score}"
    rate = state.verifications[task].pass_rate or 0
    return f"{task} measured a pass rate of {rate:.1%}"


def _unjudged(state: State, role: Role) -> list[Task]:
    tasks = (state.tasks[task] for task in state.unjudged)
    return [task for task in tasks if task.role is role and task.pipeline is not Pipeline.patch]


def _has_controller(state: State, task: Task) -> bool:
    """Whether a controller row that is still open will judge the review."""
    return any(
        state.tasks[other].role is Role.gc_controller and not state.progress[other].status.is_final
        for other in state.dependants.get(task.id, ())
    )


def _newer_fix(state: State, verify: Task) -> Task | None:
    """A fix of the same sprint that was raised while the verification still ran, and that it cannot have seen."""
    began = state.progress[verify.id].started_at or 0
    fixes = [task for task in state.of_role(Role.developer, verify.sprint) if task.round > verify.round]
    unseen = [task for task in fixes if (ended := state.progress[task.id].ended_at) is None or ended > began]
    return unseen[-1] if unseen else None


def _review_is_open(state: State, sprint: int) -> bool:
    """A review that is not there yet, or that a controller row has still to judge: one round then answers both."""
    reviews = state.of_role(Role.reviewer, sprint)
    return any(not state.progress[task.id].status.is_final or _has_controller(state, task) for task in reviews)
