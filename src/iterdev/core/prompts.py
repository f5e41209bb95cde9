"""The text that an agent gets: the task in its form, what came before, what to hand in."""

import json
from collections.abc import Sequence

from msgspec import Struct

from iterdev.core import ids, task_description
from iterdev.core.collaboration import checkpoints, feedback, tech_debt, wisdom
from iterdev.core.results import schema
from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import WRITERS, Role, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.teams.development import critic, findings, sprints

NOTES_SHOWN = 40
DISCOVERIES_SHOWN = 30
DEBT_SHOWN = 20
CHANGED_SHOWN = 200
RESULT = "<the result file>"
"""Stands for the path that is known only when the workspace is."""
OUTPUT_SHOWN = 4000
CHECKPOINT_SHOWN = 2000
NOTHING_OF_IT = (
    "Nothing of the breakdown is yours: others do all of it. Do what the description above says; "
    'if that leaves nothing to change, say so in "findings" and hand in an empty list of "changed_files".'
)


class Surroundings(Struct, frozen=True, kw_only=True):
    """What only the shell knows when a prompt is made."""

    session_dir: str
    board_path: str
    discoveries: tuple[str, ...] = ()
    """The newest lines of the discovery board."""
    changed: tuple[str, ...] = ()
    """Files that the session has changed so far."""
    tools: bool = False
    """The team's tools can be called."""
    instructions: str = ""
    """What the user wrote for the role."""
    checkpoint: str = ""
    """What the newest checkpoint of the task holds, if it can be read."""


def render(state: State, task: Task, around: Surroundings) -> str:
    parts = [
        f"# {task.id}: {task.title}\n\nYou are the {task.role} of a development team.",
        task_description.repaired(task.description, title=task.title, scope=state.scope, role=task.role),
        _part("What the user wants changed", _wishes(state, task)),
        _part("Previous context", [previous(state, task.id)]),
        _earlier(state, task, around),
        *_for_role(state, task, around),
        *_learned(state),
        _part("Discoveries on the board", around.discoveries[-DISCOVERIES_SHOWN:]),
        _part(f"Instructions for the {task.role}", [around.instructions]),
        _rules(task, around),
        _part("Result", [f'"id" is "{task.id}".', _form(task.role)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def correction(error: str, role: Role) -> str:
    """Asks for the result again, quoting what is wrong with it."""
    return (
        f"Your result was not usable: {error}\n\n"
        "Your work is kept. Hand in the result again, nothing else has to be done.\n\n" + _form(role)
    )


def repair(problems: Sequence[str], role: Role) -> str:
    """Asks a developer to mend what the checks after its work found."""
    return f"{_part('Mend these problems of your change', [f'- {text}' for text in problems])}\n\n{_form(role)}"


TOOLS = (
    "The team's tools are on the MCP server `iterdev`, and in a shell as `iterdev team`, `iterdev lock` and "
    "`iterdev checkpoint`: `team_msg` for messages, `board` for discoveries, `lock` to keep others from what you alone "
    "should use, `checkpoint` to keep what you would need to go on after an interruption, `report_result` to hand in "
    "the result and have it checked at once."
)
URGE = "Please finish now and hand in the result with what you have."


def mend(task: Task, verification: Verification, changed: Sequence[str]) -> str:
    """Asks the tester to mend what the measured test run found, in the files that the session changed."""
    return "\n\n".join(
        part
        for part in (
            f"The tests fail. Command: `{verification.command}`",
            _part("Failing tests", [f"- {name}" for name in verification.failures]),
            _part("Output, shortened", [_fence(verification.output[-OUTPUT_SHOWN:])]),
            _part("You may change only these files", [f"- {name}" for name in changed]),
            f"Mend the failures, then hand in your result for {task.id}. iterdev runs the tests again itself.",
            _form(task.role),
        )
        if part
    )


def _for_role(state: State, task: Task, around: Surroundings) -> list[str]:
    match task.role:
        case Role.developer if other := conflict_tasks.brings(state, task.id):
            return [_part("Colliding work", colliding_work(state, task, other))]
        case Role.developer if task.round:
            return [_part("Findings to fix", findings_to_fix(state, task))]
        case Role.developer:
            return [_breakdown(state, task), _part("Technical debt", _payable(state))]
        case Role.reviewer:
            return [_under_review(state, around), _findings_before(state, task), _breakdown(state, task)]
        case Role.architect:
            return [_part("Technical debt, what to pay back first", _debt(state)), _part("Backlog", _backlog(state))]
        case Role.tester:
            return [_part("Changed files", [f"- {name}" for name in around.changed[:CHANGED_SHOWN]])]
        case _:
            return []


def _wishes(state: State, task: Task) -> list[str]:
    """Urgent feedback comes before everything else that is planned."""
    lines = [f"- {item.feedback_id} [{item.severity}] {item.description}" for item in feedback.urgent(state.feedback)]
    asked = 'Take this up first where it can be acted on, and name its ids in "feedback" of the tasks that do.'
    return [asked, *lines] if lines and task.role is Role.architect else lines


def _learned(state: State) -> list[str]:
    """What this session learned, and what those before it did, without what people rejected."""
    rejected = state.heritage.rejected
    mine = [f"- {note.file}: {note.text}" for note in wisdom.usable(state.notes, rejected)[-NOTES_SHOWN:]]
    theirs = [
        f"- {note.file}: {note.text} (from {note.evidence})"
        for note in wisdom.usable(state.heritage.inherited, rejected)
    ]
    return [_part("What the team has learned", mine), _part("What earlier sessions learned", theirs)]


def _earlier(state: State, task: Task, around: Surroundings) -> str:
    """Where the work of attempts lies that were interrupted or failed, and what they kept for this one."""
    lines = [f"- commit {commit}: take what is good from it" for commit in state.progress[task.id].unlanded]
    saved = checkpoints.newest(state.checkpoints, task.id)
    if saved and (data := around.checkpoint):
        how = f"iterdev checkpoint restore --session-id {state.session.id} --task {task.id}"
        lines.append(f"- checkpoint of {ids.moment(saved.at)}: restore it, and go on from there. `{how}` prints")
        lines.append(_fence(data if len(data) <= CHECKPOINT_SHOWN else f"{data[:CHECKPOINT_SHOWN]}…"))
    return _part("Earlier attempts", lines)


def findings_to_fix(state: State, task: Task) -> list[str]:
    """The critical and high findings, and the failing tests, of the verdicts that raised the round."""
    lines: list[str] = []
    for source in task.context_from:
        if review := state.reviews.get(source):
            comparison = findings.of_round(state, source)
            known = comparison.still_there if comparison else ()
            for issue in critic.must_fix(review):
                again = ", still there" if issue in known else ""
                lines.append(f"- [{issue.grade}{again}] {issue.reference}: {issue.description}")
                if issue.suggestion:
                    lines.append(f"  Suggestion: {issue.suggestion}")
        if (verification := state.verifications.get(source)) and critic.fails(verification):
            lines += [f"- failing test: {name}" for name in verification.failures]
            lines.append(f"- `{verification.command}` said:\n{_fence(verification.output[-OUTPUT_SHOWN:])}")
    return lines or ["- The score was too low; raise the quality of the changed code."]


BEGUN = (
    "What git can merge is in the files here already. `git status` shows where it could not: there a file has both "
    "changes between conflict markers, above ======= what landed before, below it the other one. Bring them together "
    "and remove the markers, or write the file as it should be in the end.\n"
    "You need not merge or commit anything: iterdev looks at what the files are in the end, and commits them as the "
    "merge of both. It refuses markers that are left, and the loss of what git had merged."
)


def colliding_work(state: State, task: Task, other: TaskId) -> list[str]:
    """Which changes have to be brought together, and where they are."""
    conflict, work = state.conflicts[other], state.progress[other]
    begun = conflict_tasks.merging(state, task.id) is not None
    standing = "is being merged here" if begun else "is merged here already; look whether the merge is right"
    where = f"The work of {other}, commit {work.commit}, {standing}."
    others = [f"- {name}: {state.tasks[name].title} (commit {state.progress[name].commit})" for name in conflict.others]
    return [where, BEGUN if begun else "", "It collides with:", *others, f"In: {', '.join(conflict.files)}"]


def _breakdown(state: State, task: Task) -> str:
    """The design of the task's sprint; of its breakdown, what is this task's to do or to look at."""
    design = sprints.design_of(state, task.sprint)
    if design is None:
        return ""
    lines = []
    for item in sprints.items_of(state, task):
        criteria = item.acceptance_criteria
        wanted = criteria if isinstance(criteria, str) else "; ".join(criteria)
        heard = f" (because of {', '.join(item.feedback)})" if item.feedback else ""
        lines.append(f"- {item.id}: {item.title}{heard} [{', '.join(item.files)}] {wanted}".rstrip())
    return f"{_part('Design', [design.design])}\n\n{_part('Task breakdown', lines or [NOTHING_OF_IT])}"


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


def _payable(state: State) -> list[str]:
    """What a developer may find out to have paid back."""
    known = [f"- {item.debt_id}: {item.description}" for item in tech_debt.ranked(state.debt)[:DEBT_SHOWN]]
    asked = 'If your work pays back something of this, name its id in "resolved_debt"; nothing else is to be done here.'
    return [asked, *known] if known else []


def _backlog(state: State) -> list[str]:
    return [
        f"- {update.name} ({update.source}): {update.newest} is out, {update.version_range} does not allow it"
        for update in state.dependencies.backlog
    ]


def _findings_before(state: State, task: Task) -> str:
    """What the review before found, so that this one can say what became of it."""
    before = findings.review_before(state, task)
    if before is None:
        return ""
    lines = [
        f"- {findings.identity(issue)} [{issue.grade}] {issue.reference}: {issue.description}"
        for issue in state.reviews[before].issues
    ]
    told = (
        "A problem that is still there is named again with the same file, dimension and words; leave out what is fixed."
    )
    return _part(f"Findings of {before}", [told, *lines]) if lines else ""


def _under_review(state: State, around: Surroundings) -> str:
    changed = [f"- {name}" for name in around.changed[:CHANGED_SHOWN]]
    return _part(
        "Under review",
        [f"Commit {state.tip}, checked out here. See it with `git diff {state.session.base} {state.tip}`.", *changed],
    )


def _rules(task: Task, around: Surroundings) -> str:
    rules = [
        "Work only inside the current directory; it is a git worktree of your own.",
        f"The documents of the session are in {around.session_dir}; read them there, iterdev writes them.",
        "Do not push, and do not switch branches. iterdev commits what you change."
        if task.role in WRITERS
        else "Change no file: you read and judge. Changes would be set aside.",
        f"Share what others should know by appending one JSON line to {around.board_path}: "
        '{"ts": "<ISO 8601>", "worker": "' + task.id + '", "type": "...", "data": {...}}',
    ]
    if around.tools:
        rules.append(TOOLS)
    return _part("Rules", [f"- {rule}" for rule in rules])


def _form(role: Role) -> str:
    text = json.dumps(schema(role), ensure_ascii=False)
    return (
        f"Write one JSON object to {RESULT} (the variable ITERDEV_RESULT holds its path), "
        f"or print it as the last thing. It must fit this JSON Schema:\n```json\n{text}\n```"
    )


def _part(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(line for line in lines if line)
    return f"## {title}\n{body}" if body else ""


def _fence(text: str) -> str:
    return f"```\n{text.strip()}\n```"


NOTHING = "No previous context available"


def previous(state: State, task: TaskId) -> str:
    """One line per completed source with findings, or a fixed sentence."""
    lines = []
    for source in state.tasks[task].context_from:
        progress = state.progress[source]
        if progress.status is Status.completed and progress.findings:
            lines.append(f"[Task {source}: {state.tasks[source].title}] {progress.findings}")
    return "\n".join(lines) or NOTHING
