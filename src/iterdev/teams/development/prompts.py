"""The development team's parts of a prompt, by role."""

from collections.abc import Collection, Sequence

from iterdev.core.collaboration import tech_debt
from iterdev.core.prompts import (
    CHANGED_SHOWN,
    FAILURES_SHOWN,
    OUTPUT_SHOWN,
    PromptContext,
    TeamParts,
    fence,
    fenced_lines,
    listed,
    part,
    quoted,
    shortened_lines,
    shown_change,
)
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskId, TaskKind
from iterdev.core.verification import Verification
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.events import Thresholds
from iterdev.teams.development.results import WorkItem
from iterdev.teams.development.roles import Role, fields
from iterdev.teams.development.state import development, rows_of

DEBT_SHOWN = 20
DESIGN_SHOWN = 20_000
ITEMS_SHOWN = 40
CRITERIA_SHOWN = 20
FINDINGS_SHOWN = 60
NOTHING_OF_IT = (
    "Nothing of the breakdown is yours: others do all of it. Do what the description above says; "
    'if that leaves nothing to change, say so in "findings" and hand in an empty list of "changed_files".'
)
NAME_AGAIN = (
    "A problem that is still there is named again with the same file, dimension and words; leave out what is fixed."
)
PLAN_FEEDBACK = 'Take this up first where it can be acted on, and name its ids in "feedback" of the tasks that do.'
STRATEGIES = (
    'Choose a "strategy": `direct` when one module changes; `components` when several do, and then list under '
    '"integration_points" where they meet (calls, data formats, settings); `phases` for a large refactoring, with '
    '"milestones" that each leave the code working.'
)
ITEMS = (
    'Every entry of "tasks" is given to a developer, and its title becomes the subject of the commit: an imperative '
    'sentence of at most 60 characters, such as "Add percentage discounts to total()". Its acceptance criteria are '
    "what the developer, the tester and the reviewer check: name behaviour that can be observed."
)
DIMENSIONS = {
    "correctness": "it does what was asked, also at the edges, and breaks nothing that worked",
    "completeness": "every acceptance criterion is met, with tests and documentation as the project has them",
    "maintainability": "it fits the code around it, is clear, and repeats or adds nothing without need",
    "security": "input is checked, nothing secret is exposed, nothing is allowed that was not asked for",
}
ANCHORS = (
    "10 or 9: nothing to improve but taste. 8 or 7: good to take over, with low or medium findings. "
    "6 or 5: has to be improved first. 4 or 3: a main part is wrong or missing. 2 or 1: does not work, or does harm."
)
SEVERITIES = (
    "critical: loses data, opens a security hole, breaks ordinary use, or misses the request in a main point. "
    "high: wrong in a case that will occur, or an acceptance criterion is not met. "
    "medium: should be better, and can be taken over. low: taste and small things."
)
FIX_ROUND = (
    "A critical finding or a score below {limit} starts a fix round, in which a developer gets the critical and high "
    "findings and fixes nothing else: whatever has to be fixed must be one of these."
)
PLACES = (
    'Every finding has "file", "line" and "dimension"; for what is missing, name the place where it belongs. '
    'Say in "design_alignment" whether the change follows the design, and where it departs from it.'
)


def team_parts(state: State, task: Task, context: PromptContext) -> TeamParts:
    return TeamParts(
        introduction=f"You are the {task.role} of a development team.",
        standing=tuple(_standing(state, task)),
        parts=tuple(_for_role(state, task, context)),
        urgent_feedback=PLAN_FEEDBACK if task.role == Role.architect else "",
    )


def change_shown_since(state: State, task: Task) -> str:
    """A reviewer and a developer of a fix round see the change of their sprint."""
    shown = task.role == Role.reviewer or (_is_fix(task) and task.role == Role.developer)
    return sprints.base_of(state, fields(task).sprint) if shown else ""


def files_of_others(state: State, task: Task) -> Collection[str]:
    """What developers changed for whom the task does not wait, and none of the tasks that it waits for."""
    before, progress = set(state.tasks.ancestors(task.id)), state.tasks.progress
    own = {name for other in before for name in progress[other].changed}
    if not own or not before.isdisjoint(state.branch.updates):
        return ()
    others = (row.id for row in state.tasks.of_role(Role.developer) if row.id not in before)
    return {name for other in others for name in progress[other].changed if name not in own}


def _is_fix(task: Task) -> bool:
    return bool(fields(task).round) and task.kind is not TaskKind.conflict_fix


def _standing(state: State, task: Task) -> list[str]:
    match task.role:
        case Role.reviewer:
            return [part("How to score", _scoring(development(state).thresholds))]
        case Role.architect:
            return [part("How to design", [STRATEGIES, ITEMS])]
        case _:
            return []


def _for_role(state: State, task: Task, context: PromptContext) -> list[str]:
    sprint = fields(task).sprint
    match task.role:
        case Role.developer if task.kind is TaskKind.conflict_fix:
            return []
        case Role.developer if _is_fix(task):
            return [
                part("Findings to fix", findings_to_fix(state, task)),
                part("The change under review", shown_change(context.change)),
                _breakdown(state, task, sprints.items_of_sprint(state, sprint)),
            ]
        case Role.developer:
            return [
                part("Failing tests of the earlier attempt", _failed_verifications(state, task)),
                _breakdown(state, task, sprints.items_of(state, task)),
                part("Technical debt", _resolvable_debt(state)),
            ]
        case Role.reviewer:
            return [
                part("Under review", _under_review(state, context)),
                part("What the tests said", _test_results(state, sprint)),
                _findings_before(state, task),
                _breakdown(state, task, sprints.items_of_sprint(state, sprint)),
            ]
        case Role.architect:
            updates = [
                f"- {update.name} ({update.source}): {update.newest} is out, {update.version_range} does not allow it"
                for update in state.packages.backlog
            ]
            return [
                part("Technical debt, what to pay back first", _debt(state)),
                quoted("Backlog", updates),
            ]
        case Role.tester:
            items = sprints.items_of_sprint(state, sprint)
            changed = part("Changed files", listed(context.changed, CHANGED_SHOWN))
            return [changed, quoted("Acceptance criteria", _items(items))]
        case _:
            return []


def _scoring(thresholds: Thresholds) -> list[str]:
    return [
        "Give each dimension a score from 1 to 10. iterdev computes the score of the review, their weighted mean:",
        *(f"- {name} ({weight} %): {DIMENSIONS[name]}" for name, weight in critic.WEIGHTS.items()),
        ANCHORS,
        f"Severities of findings: {SEVERITIES}",
        FIX_ROUND.format(limit=f"{thresholds.passing_score:g}"),
        PLACES,
    ]


def _under_review(state: State, context: PromptContext) -> list[str]:
    tip, change = state.branch.tip, context.change
    checked_out = f"Commit {tip}, checked out here. Judge what it changes, not what was there before."
    if change:
        return [checked_out, *shown_change(change)]
    return [checked_out, f"See it with `git diff {state.branch.base} {tip}`.", *listed(context.changed, CHANGED_SHOWN)]


def _test_results(state: State, sprint: int) -> list[str]:
    """The last test run of the sprint, which may be of an earlier commit; iterdev made it, not the tester."""
    runs, tip = development(state).test_runs, state.branch.tip
    task = next((row.id for row in reversed(rows_of(state, Role.tester, sprint)) if row.id in runs), None)
    if task is None:
        return ["The tests are run beside this review; you need not wait for them."]
    progress = state.tasks.progress[task]
    where = "this commit" if tip in {progress.base, progress.commit} else f"an earlier commit ({progress.base[:12]})"
    return [f"{task} measured on {where}:", *_measured(runs[task].verification)]


def _measured(found: Verification) -> list[str]:
    if found.pass_rate is None:
        return [f"Nothing was verified. {found.note}"]
    names = {
        "Regressions": found.regressions,
        "Other failures": tuple(name for name in found.failures if name not in found.regressions),
        "Passed before, and did not run": found.missing,
        "Failed before the session too, and are not blamed on it": found.known_failures,
        "Failed once and then passed with the same code": found.flaky,
    }
    return [
        f"`{found.command}`: pass rate {found.pass_rate:.1%}, tests: {found.total}. {found.note}".rstrip(),
        *(line for title, tests in names.items() if tests for line in (f"{title}:", *listed(tests, FAILURES_SHOWN))),
    ]


def findings_to_fix(state: State, task: Task) -> list[str]:
    """The critical and high findings, and the failing tests, of the verdicts that raised the round."""
    found: list[str] = []
    failing: list[str] = []
    team = development(state)
    for source in task.context_from:
        if review := team.reviews.get(source):
            comparison = critic.of_round(state, source)
            known = comparison.still_there if comparison else ()
            for issue in critic.must_fix(review)[:FINDINGS_SHOWN]:
                again = ", still there" if issue in known else ""
                found.append(f"- [{issue.grade}{again}] {issue.reference}: {issue.description}")
                if issue.suggestion:
                    found.append(f"  Suggestion: {issue.suggestion}")
        failing += _failing(state, source)
    lines = [*([fenced_lines(found)] if found else []), *failing]
    return lines or ["- The score was too low; raise the quality of the changed code."]


def _failed_verifications(state: State, task: Task) -> list[str]:
    """What the tests said of the work that the task is to do again."""
    return [line for other in state.tasks.dependants.get(task.id, ()) for line in _failing(state, other)]


def _failing(state: State, verification: TaskId) -> list[str]:
    run = development(state).test_runs.get(verification)
    if run is None or not run.failed:
        return []
    found = run.verification
    return [
        *listed([f"failing test: {name}" for name in found.failures], FAILURES_SHOWN),
        *listed([f"test that passed before and did not run: {name}" for name in found.missing], FAILURES_SHOWN),
        f"- `{found.command}` said:\n{fence(found.output[-OUTPUT_SHOWN:])}",
    ]


def _breakdown(state: State, task: Task, items: Sequence[WorkItem]) -> str:
    """The design of the task's sprint, and the items of its breakdown that the task implements or looks at."""
    design = sprints.design_of(state, fields(task).sprint)
    if design is None:
        return ""
    text = part("Design", [fence(shortened_lines(design.design, DESIGN_SHOWN))])
    return f"{text}\n\n{quoted('Task breakdown', _items(items)) or part('Task breakdown', [NOTHING_OF_IT])}"


def _items(items: Sequence[WorkItem]) -> list[str]:
    lines: list[str] = []
    for item in items[:ITEMS_SHOWN]:
        source = f" (because of {', '.join(item.feedback)})" if item.feedback else ""
        files = f" [{', '.join(item.files)}]" if item.files else ""
        lines.append(f"- {item.id}: {item.title}{source}{files}")
        lines += [f"  - {criterion}" for criterion in item.criteria[:CRITERIA_SHOWN]]
    return lines


def _debt(state: State) -> list[str]:
    """What planning takes into account; the most pressing first, and what of it a sprint can take on."""
    lines = [
        f"- {item.debt_id} [{item.severity}, {item.category}, effort {item.estimated_effort or 'unknown'}] "
        f"{item.description}"
        for item in tech_debt.ranked(state.debt)[:DEBT_SHOWN]
    ]
    capacity = sprints.capacity(state)
    chosen = [item.debt_id for item in tech_debt.recommended(state.debt, capacity)]
    points = ", ".join(f"{effort} {count}" for effort, count in tech_debt.POINTS.items())
    advice = f"Recommended for this sprint, which has a capacity of {capacity} ({points}): {', '.join(chosen)}"
    return [*lines, advice if chosen else "Nothing of it fits into this sprint."] if lines else []


def _resolvable_debt(state: State) -> list[str]:
    known = [f"- {item.debt_id}: {item.description}" for item in tech_debt.ranked(state.debt)[:DEBT_SHOWN]]
    asked = 'If your work pays back something of this, name its id in "resolved_debt"; nothing else is to be done here.'
    return [asked, *known] if known else []


def _findings_before(state: State, task: Task) -> str:
    """What the review before found, so that this one can say what became of it."""
    before = critic.review_before(state, task)
    if before is None:
        return ""
    lines = [
        f"- {critic.identity(issue)} [{issue.grade}] {issue.reference}: {issue.description}"
        for issue in development(state).reviews[before].issues
    ]
    base = state.tasks.progress[before].base
    since = f"What was changed since: `git diff {base} {state.branch.tip}`."
    return part(f"Findings of {before}", [since, NAME_AGAIN, fenced_lines(lines[:FINDINGS_SHOWN])]) if lines else ""
