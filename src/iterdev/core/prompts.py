"""The text that an agent gets: the task in its form, what came before, what the team adds, what to hand in."""

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from iterdev.core import task_description
from iterdev.core.collaboration import checkpoints, feedback, wisdom
from iterdev.core.ids import moment
from iterdev.core.rules import conflict_tasks
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId
from iterdev.core.verification import Verification

NOTES_SHOWN = 40
DISCOVERIES_SHOWN = 30
CHANGED_SHOWN = 200
OUTPUT_SHOWN = 4000
CHECKPOINT_SHOWN = 2000
RESULT, SESSION_DIR = "<the result file>", "<the session folder>"
"""Placeholders for paths that only the executing host knows."""
NO_CONTEXT = "No previous context available"
FINISH_NOW = "Please finish now and hand in the result with what you have."
TOOLS = (
    "The team's tools are on the MCP server `iterdev`, and in a shell as `iterdev team`, `iterdev lock` and "
    "`iterdev checkpoint`: `team_msg` for messages, `board` for discoveries, `lock` to keep others from what you alone "
    "should use, `checkpoint` to keep what you would need to go on after an interruption, `report_result` to hand in "
    "the result and have it checked at once."
)
DOUBTS = 'Look at this again: fix it, or say in "findings" why it is right'
MERGE_BEGUN = (
    "What git can merge is in the files here already. `git status` shows where it could not: there a file has both "
    "changes between conflict markers, above ======= what landed before, below it the other one. Merge them "
    "and remove the markers, or write the file as it should be in the end.\n"
    "You need not merge or commit anything: iterdev looks at what the files are in the end, and commits them as the "
    "merge of both. It rejects markers that are left, and the loss of what git had merged."
)


class PromptContext(Struct, frozen=True, kw_only=True):
    """What only the shell knows when a prompt is made."""

    board: str
    """The name of the discovery board in the session folder."""
    discoveries: tuple[str, ...] = ()
    """The newest lines of the discovery board."""
    changed: tuple[str, ...] = ()
    """Files that the session has changed so far."""
    instructions: str = ""
    """What the user wrote for the role."""
    checkpoint: str = ""
    """What the newest checkpoint of the task holds, if it can be read."""


class TeamParts(Struct, frozen=True, kw_only=True):
    introduction: str
    parts: tuple[str, ...] = ()
    urgent_feedback: str = ""
    """What to do about urgent feedback."""


def render(
    state: State, task: Task, role: RoleSpec, context: PromptContext, team: TeamParts, schema: Mapping[str, object]
) -> str:
    description = task_description.completed(
        task.description, title=task.title, scope=state.scope, inner_loop=role.loops
    )
    parts = [
        f"# {task.id}: {task.title}\n\n{team.introduction}",
        description,
        part("What the user wants changed", _urgent_feedback(state, team.urgent_feedback)),
        part("Previous context", [previous_context(state, task.id)]),
        part("Earlier attempts", _earlier_attempts(state, task, context)),
        part("Conflicting work", _conflicting_work(state, task)),
        *team.parts,
        *_learned(state),
        part("Discoveries on the board", context.discoveries[-DISCOVERIES_SHOWN:]),
        part(f"Instructions for the {task.role}", [context.instructions]),
        _rules(task, role, context),
        part("Result", [f'"id" is "{task.id}".', result_form(schema)]),
    ]
    return "\n\n".join(text for text in parts if text) + "\n"


def correction(error: str, schema: Mapping[str, object]) -> str:
    """Asks for the result again, quoting what is wrong with it."""
    return (
        f"Your result was not usable: {error}\n\n"
        "Your work is kept. Hand in the result again, nothing else has to be done.\n\n" + result_form(schema)
    )


def repair(faults: Sequence[str], doubts: Sequence[str], schema: Mapping[str, object]) -> str:
    """Asks for a fix of what the checks of a change found, and for a second look at what may be right."""
    texts = (
        part("Fix these problems of your change", [f"- {text}" for text in faults]),
        part(DOUBTS, [f"- {text}" for text in doubts]),
        result_form(schema),
    )
    return "\n\n".join(text for text in texts if text)


def fix_tests(task: TaskId, verification: Verification, changed: Sequence[str], schema: Mapping[str, object]) -> str:
    """Asks for a fix of what the measured test run found, in the files that the session changed."""
    texts = (
        f"The tests fail. Command: `{verification.command}`",
        part("Failing tests", [f"- {name}" for name in verification.failures]),
        part("Output, shortened", [fence(verification.output[-OUTPUT_SHOWN:])]),
        part("You may change only these files", [f"- {name}" for name in changed]),
        f"Fix the failures, then hand in your result for {task}. iterdev runs the tests again itself.",
        result_form(schema),
    )
    return "\n\n".join(text for text in texts if text)


def previous_context(state: State, task: TaskId) -> str:
    """One line per completed source with findings, or a fixed sentence. Made from the table alone."""
    lines = []
    for source in state.tasks.plan[task].context_from:
        progress = state.tasks.progress[source]
        if progress.status is Status.completed and progress.findings:
            lines.append(f"[Task {source}: {state.tasks.plan[source].title}] {progress.findings}")
    return "\n".join(lines) or NO_CONTEXT


def _urgent_feedback(state: State, asked: str) -> list[str]:
    """Urgent feedback comes before everything else that is planned."""
    lines = [f"- {item.feedback_id} [{item.severity}] {item.description}" for item in feedback.urgent(state.feedback)]
    return [asked, *lines] if lines and asked else lines


def _earlier_attempts(state: State, task: Task, context: PromptContext) -> list[str]:
    """The commits of attempts that were interrupted, failed or were undone, and the checkpoint that they saved."""
    progress = state.tasks.progress[task.id]
    lines = [f"- commit {commit}: take what is good from it" for commit in progress.unmerged_commits]
    for commit, reason in progress.rolled_back:
        what = f"commit {commit} was" if commit else "an earlier attempt was"
        lines.append(f"- {what} rolled back{f' because {reason}' if reason else ''}: do not take it over")
    saved = checkpoints.newest(state.checkpoints, task.id)
    if saved and (data := context.checkpoint):
        how = f"iterdev checkpoint restore --session-id {state.session.id} --task {task.id}"
        lines.append(f"- checkpoint of {moment(saved.at)}: restore it, and go on from there. `{how}` prints")
        lines.append(fence(data if len(data) <= CHECKPOINT_SHOWN else f"{data[:CHECKPOINT_SHOWN]}…"))
    return lines


def _conflicting_work(state: State, task: Task) -> list[str]:
    """For a conflict task: which changes have to be merged, and where they are."""
    other = conflict_tasks.merged_by(state, task.id)
    if other is None:
        return []
    conflict, work, tasks = state.conflicts.by_task[other].found, state.tasks.progress[other], state.tasks
    begun = conflict_tasks.merge_of(state, task.id) is not None
    standing = "is being merged here" if begun else "is merged here already; look whether the merge is right"
    others = [f"- {name}: {tasks.plan[name].title} (commit {tasks.progress[name].commit})" for name in conflict.others]
    return [
        f"The work of {other}, commit {work.commit}, {standing}.",
        MERGE_BEGUN if begun else "",
        "It is in conflict with:",
        *others,
        f"In: {', '.join(conflict.files)}",
    ]


def _learned(state: State) -> list[str]:
    """What this session learned, and what those before it did, without what people rejected."""
    known = state.wisdom
    mine = [f"- {note.file}: {note.text}" for note in wisdom.usable(known.notes, known.rejected)[-NOTES_SHOWN:]]
    inherited = wisdom.usable(known.inherited, known.rejected)
    theirs = [f"- {note.file}: {note.text} (from {note.evidence})" for note in inherited]
    return [part("What the team has learned", mine), part("What earlier sessions learned", theirs)]


def _rules(task: Task, role: RoleSpec, context: PromptContext) -> str:
    rules = (
        "Work only inside the current directory; it is a git worktree of your own.",
        f"The documents of the session are in {SESSION_DIR}; read them there, iterdev writes them.",
        "Do not push, and do not switch branches. iterdev commits what you change."
        if role.writes
        else "Change no file: you read and judge. Changes would be set aside.",
        f"Share what others should know by appending one JSON line to {SESSION_DIR}/{context.board}: "
        '{"ts": "<ISO 8601>", "worker": "' + task.id + '", "type": "...", "data": {...}}',
        TOOLS,
    )
    return part("Rules", [f"- {rule}" for rule in rules])


def result_form(schema: Mapping[str, object]) -> str:
    text = json.dumps(schema, ensure_ascii=False)
    return (
        f"Write one JSON object to {RESULT} (the variable ITERDEV_RESULT holds its path), "
        f"or print it as the last thing. It must fit this JSON Schema:\n```json\n{text}\n```"
    )


def part(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(line for line in lines if line)
    return f"## {title}\n{body}" if body else ""


def fence(text: str) -> str:
    return f"```\n{text.strip()}\n```"
