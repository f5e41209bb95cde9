"""The development team's parts of a prompt, by role."""

from iterdev.core.collaboration import tech_debt
from iterdev.core.prompts import CHANGED_SHOWN, OUTPUT_SHOWN, PromptContext, TeamParts, fence, part
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskKind
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.roles import Role, fields
from iterdev.teams.development.state import development

DEBT_SHOWN = 20
NOTHING_OF_IT = (
    "Nothing of the breakdown is yours: others do all of it. Do what the description above says; "
    'if that leaves nothing to change, say so in "findings" and hand in an empty list of "changed_files".'
)
NAME_AGAIN = (
    "A problem that is still there is named again with the same file, dimension and words; leave out what is fixed."
)
PLAN_FEEDBACK = 'Take this up first where it can be acted on, and name its ids in "feedback" of the tasks that do.'


def team_parts(state: State, task: Task, context: PromptContext) -> TeamParts:
    return TeamParts(
        introduction=f"You are the {task.role} of a development team.",
        parts=tuple(_for_role(state, task, context)),
        urgent_feedback=PLAN_FEEDBACK if task.role == Role.architect else "",
    )


def _for_role(state: State, task: Task, context: PromptContext) -> list[str]:
    changed = [f"- {name}" for name in context.changed[:CHANGED_SHOWN]]
    match task.role:
        case Role.developer if task.kind is TaskKind.conflict_fix:
            return []
        case Role.developer if fields(task).round:
            return [part("Findings to fix", findings_to_fix(state, task))]
        case Role.developer:
            return [_breakdown(state, task), part("Technical debt", _resolvable_debt(state))]
        case Role.reviewer:
            base, tip = state.session.base, state.branch.tip
            diff = f"Commit {tip}, checked out here. See it with `git diff {base} {tip}`."
            return [part("Under review", [diff, *changed]), _findings_before(state, task), _breakdown(state, task)]
        case Role.architect:
            updates = [
                f"- {update.name} ({update.source}): {update.newest} is out, {update.version_range} does not allow it"
                for update in state.packages.backlog
            ]
            return [part("Technical debt, what to pay back first", _debt(state)), part("Backlog", updates)]
        case Role.tester:
            return [part("Changed files", changed)]
        case _:
            return []


def findings_to_fix(state: State, task: Task) -> list[str]:
    """The critical and high findings, and the failing tests, of the verdicts that raised the round."""
    lines: list[str] = []
    team = development(state)
    for source in task.context_from:
        if review := team.reviews.get(source):
            comparison = critic.of_round(state, source)
            known = comparison.still_there if comparison else ()
            for issue in critic.must_fix(review):
                again = ", still there" if issue in known else ""
                lines.append(f"- [{issue.grade}{again}] {issue.reference}: {issue.description}")
                if issue.suggestion:
                    lines.append(f"  Suggestion: {issue.suggestion}")
        if (run := team.test_runs.get(source)) and run.failed:
            lines += [f"- failing test: {name}" for name in run.verification.failures]
            output = fence(run.verification.output[-OUTPUT_SHOWN:])
            lines.append(f"- `{run.verification.command}` said:\n{output}")
    return lines or ["- The score was too low; raise the quality of the changed code."]


def _breakdown(state: State, task: Task) -> str:
    """The design of the task's sprint, and the items of its breakdown that the task implements or reviews."""
    design = sprints.design_of(state, fields(task).sprint)
    if design is None:
        return ""
    lines = []
    for item in sprints.items_of(state, task):
        source = f" (because of {', '.join(item.feedback)})" if item.feedback else ""
        criteria = "; ".join(item.criteria)
        lines.append(f"- {item.id}: {item.title}{source} [{', '.join(item.files)}] {criteria}".rstrip())
    return f"{part('Design', [design.design])}\n\n{part('Task breakdown', lines or [NOTHING_OF_IT])}"


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
    return part(f"Findings of {before}", [NAME_AGAIN, *lines]) if lines else ""
