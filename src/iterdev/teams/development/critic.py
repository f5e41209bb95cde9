"""The generator-critic loop: scores and signals of reviews, findings across rounds, and the fix rounds that follow.

The same problem, reported again in other words, is the same finding.
"""

import math
import re
from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct

from iterdev.core.collaboration.wisdom import WisdomNoted
from iterdev.core.formatting import counted, percent
from iterdev.core.rules.outcomes import note
from iterdev.core.session.events import Event, TaskCompleted, TaskReported, TasksAdded, TasksReset, Warned
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, joining
from iterdev.core.types import Severity, Status, TaskId, TaskKind
from iterdev.core.verification import Measurement, Verification
from iterdev.teams.development import events, pipelines
from iterdev.teams.development.results import Finding, Review, Scores
from iterdev.teams.development.roles import Pipeline, Role, Signal, fields
from iterdev.teams.development.state import development, rows_of

_NOISE = re.compile(r"[\W\d_]+")
"""What does not change a problem: letter case, spaces, punctuation, and numbers, which are mostly those of lines."""


def identity(finding: Finding) -> str:
    """Made of file, dimension and words; the line is left out, because it moves when something above it is fixed."""
    words = _NOISE.sub(" ", finding.description.casefold()).strip()
    text = f"{finding.file}\n{finding.dimension.casefold()}\n{words}"
    return f"F-{sha256(text.encode()).hexdigest()[:8]}"


class Comparison(Struct, frozen=True):
    fixed: tuple[Finding, ...]
    still_there: tuple[Finding, ...]
    new: tuple[Finding, ...]


def compared(before: Review, after: Review) -> Comparison:
    known, now = {identity(one) for one in before.issues}, {identity(one) for one in after.issues}
    fixed = tuple(one for one in before.issues if identity(one) not in now)
    still_there = tuple(one for one in after.issues if identity(one) in known)
    return Comparison(fixed, still_there, tuple(one for one in after.issues if identity(one) not in known))


def review_before(state: State, task: Task) -> TaskId | None:
    """The latest review of an earlier round of the same sprint."""
    own = fields(task)
    rows = map(state.tasks.plan.__getitem__, development(state).reviews if own.round else ())
    earlier = [row.id for row in rows if fields(row).sprint == own.sprint and fields(row).round < own.round]
    return max(earlier, key=state.tasks.order.__getitem__, default=None)


def of_round(state: State, task: TaskId) -> Comparison | None:
    """How a review differs from the one of the round before; None for a first review."""
    reviews, before = development(state).reviews, review_before(state, state.tasks.plan[task])
    return compared(reviews[before], reviews[task]) if before and task in reviews else None


def reported_findings(state: State) -> list[tuple[Finding, tuple[TaskId, ...], TaskId | None]]:
    """Each finding once, as it was last reported, with the reviews that report it and the later one that does not."""
    reviews = development(state).reviews
    ordered = sorted((task for task in reviews if task in state.tasks.plan), key=state.tasks.order.__getitem__)
    last: dict[str, Finding] = {}
    seen: dict[str, list[TaskId]] = {}
    for task in ordered:
        for finding in reviews[task].issues:
            last[identity(finding)] = finding
            seen.setdefault(identity(finding), []).append(task)
    return [(last[name], tuple(tasks), _next_review(state, tasks[-1], ordered)) for name, tasks in seen.items()]


def _next_review(state: State, task: TaskId, reviews: Sequence[TaskId]) -> TaskId | None:
    """The review of the same sprint that follows."""
    sprint, later = fields(state.tasks.plan[task]).sprint, reviews[reviews.index(task) + 1 :]
    return next((one for one in later if fields(state.tasks.plan[one]).sprint == sprint), None)


WEIGHTS = {"correctness": 30, "completeness": 25, "maintainability": 25, "security": 20}
"""Per cent of the whole score."""
MUST_FIX = (Severity.critical, Severity.high)
NAMED = 5
"""Tests that a sentence names."""


def score(scores: Scores) -> float:
    """The weighted mean, to one decimal; a score a hair below the limit is still below it."""
    total: float = sum(getattr(scores, name) * weight for name, weight in WEIGHTS.items())
    return math.floor(round(total / 10, 6)) / 10


def critical_count(review: Review) -> int:
    return sum(issue.grade is Severity.critical for issue in review.issues)


def scored(task: TaskId, review: Review, thresholds: events.Thresholds) -> events.ReviewScored:
    """The verdict of a review: its score, what it asks for, and its own severity."""
    value, signal, grade = score(review.scores), Signal.converged, Severity.low
    if critical_count(review) or value < thresholds.passing_score:
        signal, grade = Signal.revision_needed, Severity.high
    elif any(issue.grade is not Severity.low for issue in review.issues):
        grade = Severity.medium
    return events.ReviewScored(task=task, review=review, score=value, signal=signal, grade=grade)


def measured(task: TaskId, tests: Measurement, commit: str, thresholds: events.Thresholds) -> events.TestsMeasured:
    found = tests.verification
    failed = found.pass_rate is not None and not found.passes(thresholds.pass_rate)
    return events.TestsMeasured(
        task=task, verification=found, iterations=tests.iterations, commit=commit, failed=failed
    )


def must_fix(review: Review) -> list[Finding]:
    """Critical findings, then high ones: what a fix is confined to."""
    return [issue for severity in MUST_FIX for issue in review.issues if issue.grade is severity]


def patch_error(task: Task, run: events.TestsMeasured, thresholds: events.Thresholds) -> str:
    """Why failing tests fail the task: a patch has no round in which they could be fixed."""
    if not run.failed or fields(task).pipeline is not Pipeline.patch:
        return ""
    found = run.verification
    if found.regressed:
        return failing_tests(found)
    failing = named(found.failures) or found.note
    return f"pass rate {percent(found.pass_rate or 0):.1f}% is below {thresholds.pass_rate * 100:g} %: {failing}"


def failing_tests(found: Verification) -> str:
    """The tests that passed before the change, and fail or did not run with it, in one line."""
    return "; ".join(filter(None, (_listed("regression", found.regressions), _listed("missing test", found.missing))))


def _listed(what: str, tests: Sequence[str]) -> str:
    return f"{counted(len(tests), what)}: {named(tests)}" if tests else ""


def named(tests: Sequence[str], between: str = ", ") -> str:
    """The first names of tests, or problems; two suites, or one test with several checks, may have the same."""
    names = list(dict.fromkeys(tests))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{between.join(names[:NAMED])}{more}"


def follow_up(state: State) -> tuple[Event, ...]:
    """What has to be recorded because reviews and verifications ended that have not been judged yet."""
    reviews = [task for task in _unjudged(state, Role.reviewer) if not _has_controller(state, task)]
    verifies = _failed_verifications(state)
    for task in verifies:
        if fix := _newer_fix(state, task):
            again = pipelines.reverification(fix, state.scope, state.tasks.plan.keys())
            return events.Reverified(task.id), TasksAdded(joining([again], state.tasks.plan))
    if verifies and not reviews and _review_is_open(state, fields(verifies[0]).sprint):
        return ()
    return _judgement(state, reviews, verifies)


def decision(state: State, task: Task) -> tuple[Event, ...]:
    """What a controller task decides about the reviews that it depends on."""
    reviews = [review for review in _unjudged(state, Role.reviewer) if review.id in task.deps]
    verdict = _judgement(state, reviews, _failed_verifications(state), task)
    choice = "REVISION" if any(isinstance(event, events.RoundStarted) for event in verdict) else "CONVERGE"
    number = development(state).rounds.get(fields(task).sprint, 0)
    decided = events.RoundDecided(task=task.id, decision=choice, number=number)
    return decided, TaskCompleted(task.id, f"GC decision: {choice} (round {number})"), *verdict


def retried(state: State, failed: tuple[TaskId, ...]) -> tuple[Event, ...]:
    """Failed tasks are done again. What the last test run or review found becomes a fix, which is looked at again.

    A test run that measured nothing is made again, and so is that on the base: the user may have set a test command.
    """
    verdicts = () if state.session.by_hand else _bad_verdicts(state)
    reset = tuple(task for task in failed if task not in verdicts)
    unmeasured = tuple(task for task in _last_run(state) if task not in failed and not _is_measured(state, task))
    again: tuple[Event, ...] = (TasksReset((*failed, *unmeasured)),) if failed or unmeasured else ()
    if unmeasured:
        again = *again, events.BaselineMeasured((), state.branch.base)
    if not verdicts or any(state.tasks.plan[task].role == Role.developer for task in reset):
        return again
    # Its measurement stands; what it found is for the developer.
    findings = {task: state.tasks.progress[task].findings for task in verdicts if task in failed}
    reported = (TaskReported(task=task, findings=text) for task, text in findings.items())
    return *again, *reported, events.FixRequested(verdicts)


def tasks_of_round(state: State, number: int) -> tuple[TaskId, ...]:
    """The developer's and the tester's tasks of a round, in the newest sprint that has it."""
    rows = [task for task, _ in state.tasks.rows() if fields(task).round == number > 0]
    newest = max((fields(task).sprint for task in rows), default=0)
    writers = (Role.developer, Role.tester)
    return tuple(task.id for task in rows if fields(task).sprint == newest and task.role in writers)


def _bad_verdicts(state: State) -> tuple[TaskId, ...]:
    """The newest test run and the newest review of the sprint, as far as they ask for a round."""
    part = development(state)
    reviews = [task.id for task in rows_of(state, Role.reviewer, part.sprint) if task.id in part.verdicts]
    rejected = [task for task in reviews[-1:] if part.verdicts[task].signal is Signal.revision_needed]
    return (*(task for task in _last_run(state) if part.test_runs[task].failed), *rejected)


def _last_run(state: State) -> list[TaskId]:
    """The newest test run of the sprint, if there is one."""
    part = development(state)
    return [task.id for task in rows_of(state, Role.tester, part.sprint) if task.id in part.test_runs][-1:]


def _is_measured(state: State, task: TaskId) -> bool:
    return development(state).test_runs[task].verification.pass_rate is not None


def _failed_verifications(state: State) -> list[Task]:
    runs = development(state).test_runs
    return [task for task in _unjudged(state, Role.tester) if runs[task.id].failed]


def _judgement(
    state: State, reviews: Sequence[Task], verifies: Sequence[Task], controller: Task | None = None
) -> tuple[Event, ...]:
    verdicts = development(state).verdicts
    rejected = [task for task in reviews if verdicts[task.id].signal is Signal.revision_needed]
    passed = tuple(event for task in reviews if task not in rejected for event in _passed(state, task.id))
    raised = [*rejected, *verifies]
    if not raised:
        return passed
    # One sprint at a time; the others are still unjudged when it is decided again.
    sprint = fields(raised[0]).sprint
    sources = [task for task in raised if fields(task).sprint == sprint]
    used = development(state).rounds.get(sprint, 0)
    no_progress = _not_converging(state, sources)
    requested = any(task.id in development(state).fix_requested for task in sources)
    if not requested and (no_progress or used >= development(state).thresholds.rounds):
        return *passed, *_forced(state, sprint, sources, no_progress)
    return *passed, *_round(state, sources, used + 1, controller)


def _passed(state: State, review: TaskId) -> tuple[Event, ...]:
    medium = development(state).verdicts[review].grade is Severity.medium
    warning = (Warned(f"{review} passed with findings of medium or high severity"),) if medium else ()
    return events.ReviewPassed(review), *warning


def _forced(state: State, sprint: int, sources: Sequence[Task], why: str) -> tuple[Event, ...]:
    problems = tuple(problem for task in sources for problem in open_problems(state, task.id))
    rounds, last = development(state).rounds.get(sprint, 0), sources[-1].id
    warning = (
        f"convergence of sprint-{sprint} was forced after {counted(rounds, 'fix round')}"
        f"{f' ({why})' if why else ''}; still open: {named(problems, '; ')}"
    )
    notes = tuple(note(state, "issues", text, last, state.branch.tip, state.updated_at) for text in problems)
    raised_by = tuple(task.id for task in sources)
    forced = events.ConvergenceForced(sprint=sprint, raised_by=raised_by, problems=problems, rounds=rounds, why=why)
    return forced, Warned(warning, announced=False), WisdomNoted(notes)


def _round(state: State, sources: Sequence[Task], number: int, controller: Task | None) -> tuple[Event, ...]:
    raised_by = tuple(task.id for task in sources)
    why = "; ".join(_reason(state, task.id) for task in sources)
    own, plan = fields(sources[0]), state.tasks.plan
    new = pipelines.TaskFactory(own.pipeline, state.scope, sprint=own.sprint, round_=number, existing=plan.keys())
    after = (controller.id,) if controller else raised_by
    verify = any(task.role == Role.tester for task in sources)
    review = own.pipeline is not Pipeline.patch
    tasks = pipelines.fix_round(new, after, raised_by, review=review, verify=verify, check=controller is not None)
    started = events.RoundStarted(sprint=own.sprint, number=number, raised_by=raised_by, why=why)
    return started, TasksAdded(joining(tasks, plan))


def _not_converging(state: State, sources: Sequence[Task]) -> str:
    """Another round is pointless after one in which nothing that must be fixed was, and nothing was changed."""
    review = next((task for task in sources if task.role == Role.reviewer and fields(task).round), None)
    comparison = of_round(state, review.id) if review else None
    if review is None or comparison is None:
        return ""
    own = fields(review)
    fixes = [task for task in rows_of(state, Role.developer, own.sprint) if fields(task).round == own.round]
    changed = any(state.tasks.progress[task.id].changed for task in fixes)
    fixed = any(finding.grade in MUST_FIX for finding in comparison.fixed)
    return "" if changed or fixed else f"round {own.round} changed nothing and fixed nothing"


def open_problems(state: State, task: TaskId) -> list[str]:
    """What a verdict leaves unsolved, one sentence each."""
    part = development(state)
    if run := part.test_runs.get(task):
        failures = [f"failing test: {name}" for name in run.verification.failures]
        failures += [f"missing test: {name}" for name in run.verification.missing]
        return failures or [f"{task}: the tests fail ({run.verification.note or run.verification.command})"]
    verdict = part.verdicts[task]
    if verdict.review is None:
        return [f"{task} asked for a revision with a score of {verdict.score}"]
    found = [f"{one.grade}: {one.place} {one.description}".replace("  ", " ") for one in must_fix(verdict.review)]
    return found or [f"{task} scored {verdict.score}, below {part.thresholds.passing_score:g}"]


def _reason(state: State, task: TaskId) -> str:
    part = development(state)
    if run := part.test_runs.get(task):
        regressed = f" ({failing_tests(run.verification)})" if run.verification.regressed else ""
        return f"{task} measured a pass rate of {percent(run.verification.pass_rate or 0):.1f}%{regressed}"
    verdict = part.verdicts[task]
    if verdict.review is None:
        return f"{task} scored {verdict.score}"
    critical = critical_count(verdict.review)
    return f"{task} scored {verdict.score} with {counted(critical, 'critical finding')}"


def _unjudged(state: State, role: Role) -> list[Task]:
    requested = development(state).fix_requested
    ended = (task for task in development(state).unjudged if state.tasks.status(task) is Status.completed)
    tasks = (task for task in map(state.tasks.plan.__getitem__, ended) if task.role == role)
    return [task for task in tasks if fields(task).pipeline is not Pipeline.patch or task.id in requested]


def _has_controller(state: State, task: Task) -> bool:
    """Whether a controller task that is still open will judge the review."""
    return any(
        state.tasks.plan[other].kind is TaskKind.decision and not state.tasks.status(other).is_final
        for other in state.tasks.dependants.get(task.id, ())
    )


def _newer_fix(state: State, verify: Task) -> Task | None:
    """A fix of the same sprint that was raised while the verification still ran, and that it cannot have seen."""
    began, own = state.tasks.progress[verify.id].started_at or 0, fields(verify)
    fixes = [task for task in rows_of(state, Role.developer, own.sprint) if fields(task).round > own.round]
    unseen = [task for task in fixes if (at := state.tasks.progress[task.id].ended_at) is None or at > began]
    return unseen[-1] if unseen else None


def _review_is_open(state: State, sprint: int) -> bool:
    """A review that is not there yet, or that a controller task has still to judge: one round then answers both."""
    reviews = rows_of(state, Role.reviewer, sprint)
    return any(not state.tasks.status(task.id).is_final or _has_controller(state, task) for task in reviews)
