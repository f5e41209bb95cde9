"""Sprints: the order of the design's work items, the sprint and the row of each, and how one sprint follows another."""

import math
from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from iterdev.core.collaboration import tech_debt
from iterdev.core.formatting import counted
from iterdev.core.results import shortened
from iterdev.core.session.events import AnswerApplied, Event, Gate, GateOpened, TasksAdded, TasksReplanned, Warned
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Queue
from iterdev.core.session.tasks import Task, joining, redirected
from iterdev.core.types import UNSUCCESSFUL, Engine, Status, TaskId, TaskKind
from iterdev.teams.development import pipelines
from iterdev.teams.development.events import SprintEnded, SprintRecord, SprintStarted, Thresholds
from iterdev.teams.development.results import Design, WorkItem
from iterdev.teams.development.roles import Fields, Part, Pipeline, Role, fields
from iterdev.teams.development.state import development, rows_of


def execution_order(items: Sequence[WorkItem]) -> list[WorkItem]:
    """Dependencies first, otherwise as the architect listed them; a circle keeps the listed order."""
    waiting = {item.id: item for item in items}
    done: list[WorkItem] = []
    while waiting:
        free = (item for item in waiting.values() if not any(dep in waiting for dep in item.dependencies))
        chosen = next(free, next(iter(waiting.values())))
        done.append(waiting.pop(chosen.id))
    return done


def items_towards(design: Design, goal: str) -> list[WorkItem]:
    """What has to be done to reach a milestone: everything that is not put into another one.

    A design that knows nothing of the milestone, or puts nothing into it, is all about it.
    """
    ordered = execution_order(design.tasks)
    if goal not in {milestone.title for milestone in design.milestones}:
        return ordered
    others = {item for milestone in design.milestones if milestone.title != goal for item in milestone.tasks}
    return [item for item in ordered if item.id not in others] or ordered


def rows_needed(items: Sequence[WorkItem], least: int, batch: int) -> int:
    """How many developer tasks the items take, one after the other."""
    return max(least, math.ceil(len(items) / batch))


def batch(items: Sequence[WorkItem], place: int, rows: int) -> Sequence[WorkItem]:
    """The items of one row among all rows of the sprint; every item belongs to exactly one of them."""
    size = math.ceil(len(items) / rows)
    return items[place * size : (place + 1) * size]


ITEM_LENGTH = 200
"""Characters of an item's title in the body of a commit's message."""
NOTHING_LEFT = "nothing of the breakdown was left to do"
SPRINT_GATE = "sprint"
"""The kind of the question between two sprints."""


class SprintChoice(StrEnum):
    go_on = "go-on"
    downgrade = "downgrade"
    """The next sprint runs as a plain sprint."""
    stop = "stop"


def gate_id(sprint: int) -> str:
    return f"{SPRINT_GATE}-{sprint}"


def goals(state: State) -> Sequence[str]:
    """What each sprint is for. The first design decides it, so that there are never more sprints than were shown."""
    designs, plan = development(state).designs, state.tasks.plan
    first = next((task for task in designs if fields(plan[task]).pipeline is Pipeline.multi_sprint), None)
    milestones = designs[first].milestones if first else ()
    return [milestone.title for milestone in milestones] or [state.session.requirement]


def goal(state: State, sprint: int) -> str:
    found = goals(state)
    return found[sprint - 1] if sprint <= len(found) else state.session.requirement


def total(state: State) -> int:
    return max(len(goals(state)), development(state).sprint)


def is_plain(state: State) -> bool:
    """Whether the sprint was downgraded to a plain one."""
    architects = rows_of(state, Role.architect, development(state).sprint)
    return any(fields(task).pipeline is Pipeline.sprint for task in architects)


def design_of(state: State, sprint: int) -> Design | None:
    designs = reversed([*development(state).designs.items()])
    return next((design for task, design in designs if fields(state.tasks.plan[task]).sprint == sprint), None)


def base_of(state: State, sprint: int) -> str:
    """The commit that the work of a sprint is on top of; what the user's branch brought in since is not part of it."""
    rows = rows_of(state, Role.architect, sprint) if sprint > 1 else ()
    progress = state.tasks.progress
    updated = max((progress[task].ended_at or 0 for task in state.branch.updates), default=0)
    started = (progress[row.id] for row in rows if progress[row.id].base)
    return next((one.base for one in started if (one.started_at or 0) > updated), state.branch.base)


def items_of_sprint(state: State, sprint: int) -> list[WorkItem]:
    design = design_of(state, sprint)
    return items_towards(design, goal(state, sprint)) if design else []


def items_of(state: State, task: Task) -> Sequence[WorkItem]:
    """What of the breakdown a developer's task has to do, which may be nothing."""
    sprint = fields(task).sprint
    items = items_of_sprint(state, sprint)
    # A table without a breakdown may be long.
    rows = [row.id for row in _developers(state, sprint)] if items else []
    return batch(items, rows.index(task.id), len(rows)) if task.id in rows else []


def planned_files(state: State, task: Task) -> tuple[str, ...]:
    """The files that have to be there when a task of first work is done."""
    own = items_of(state, task) if task.role == Role.developer else ()
    return tuple(file for item in own for file in item.files)


def may_have_nothing_to_do(queue: Queue) -> bool:
    return isinstance(queue.fields, Fields) and queue.fields.part is Part.rest


def nothing_to_do(state: State, task: Task) -> str:
    """Says so if the tasks before it took all that a task for the rest of the breakdown could do."""
    own = fields(task)
    if own.part is not Part.rest or not is_first_work(task) or design_of(state, own.sprint) is None:
        return ""
    others = {row.id for row in _developers(state, own.sprint)}
    return "" if others.isdisjoint(task.deps) or items_of(state, task) else NOTHING_LEFT


def additional_tasks(state: State) -> tuple[Event, ...]:
    """More developer tasks, when the breakdown is too long for those that are there."""
    part = development(state)
    rows = _developers(state, part.sprint) if part.pipeline is Pipeline.multi_sprint else ()
    if not rows:
        return ()
    needed = rows_needed(items_of_sprint(state, part.sprint), len(rows), part.thresholds.batch)
    missing, last = needed - len(rows), rows[-1]
    if missing <= 0 or state.tasks.status(last.id) is not Status.pending:
        return ()
    plan, dependants = state.tasks.plan, state.tasks.dependants
    added = pipelines.increments(last, range(len(rows) + 1, needed + 1), state.scope, plan.keys())
    after = [redirected(plan[task], last.id, added[-1].id) for task in dependants.get(last.id, ())]
    checks = [plan[other] for row in after for other in dependants.get(row.id, ())]
    placed = joining([*added, *after, *checks], plan)
    return TasksAdded(placed[: len(added)]), TasksReplanned(placed[len(added) :])


def titled_tasks(state: State) -> tuple[Event, ...]:
    """Tasks of developers that have not begun get the titles of their items, if they still have those of the template.

    Any other title is a person's.
    """
    sprint = development(state).sprint
    if state.session.by_hand or design_of(state, sprint) is None:
        return ()
    renamed = []
    goals_as_titles = {pipelines.headline(text) for text in (goal(state, sprint), state.session.requirement)}
    for number, task in enumerate(_developers(state, sprint), 1):
        from_template = task.title in {*goals_as_titles, pipelines.part_title(number)}
        if not from_template or state.tasks.status(task.id) is not Status.pending:
            continue
        items = items_of(state, task)
        title = pipelines.items_title([item.name for item in items]) if items else task.title
        if title != task.title:
            renamed.append(replace(task, title=title))
    return (TasksReplanned(tuple(renamed)),) if renamed else ()


def commit_body(state: State, task: Task) -> tuple[str, ...]:
    """Every item of a task that does several; the subject names only the first."""
    items = items_of(state, task) if task.role == Role.developer else ()
    return tuple(f"- {shortened(item.name, ITEM_LENGTH)}" for item in items) if len(items) > 1 else ()


def _developers(state: State, sprint: int) -> list[Task]:
    """The tasks of first work: those of fix rounds, of conflicts and of updates are not."""
    return [task for task in rows_of(state, Role.developer, sprint) if is_first_work(task)]


def is_first_work(task: Task) -> bool:
    return not fields(task).round and task.kind not in {TaskKind.conflict_fix, TaskKind.update}


def choice_on_resume(gate: Gate) -> str | None:
    """Resuming starts the next sprint, unless the question advises to stop, as one about overdue debt does."""
    starts = gate.kind == SPRINT_GATE and gate.choices[0] == SprintChoice.go_on
    return SprintChoice.go_on if starts else None


def reopened(state: State) -> tuple[Event, ...]:
    """A session that was stopped between two sprints asks again."""
    gate = gate_id(development(state).sprint)
    return (AnswerApplied(gate),) if state.gates.answer(gate) == SprintChoice.stop else ()


def transition(state: State) -> tuple[Event, ...]:
    """What follows when every task of the sprint is final; nothing when the session is over."""
    part = development(state)
    if part.pipeline is not Pipeline.multi_sprint or state.session.by_hand:
        return ()
    if part.sprint not in part.sprints:
        return _ended(state)
    if part.sprint >= total(state):
        return ()
    match _choice(state):
        case None:
            return (GateOpened(_gate(state)),)
        case SprintChoice.stop:
            return ()
        case choice:
            return _next(state, Pipeline.sprint if choice == SprintChoice.downgrade else Pipeline.multi_sprint)


def _choice(state: State) -> str | None:
    """In auto mode, a sprint with unsuccessful tasks is the last one, and so is one with overdue debt."""
    part = development(state)
    if not state.policy.auto:
        return state.gates.answer(gate_id(part.sprint))
    record = part.sprints[part.sprint]
    if record.unsuccessful or _overdue_debt(state):
        return SprintChoice.stop
    return SprintChoice.downgrade if may_downgrade(record, part.thresholds) else SprintChoice.go_on


def _ended(state: State) -> tuple[Event, ...]:
    part, record = development(state), metrics(state)
    slow = (
        f"sprint-{part.sprint} completed {counted(record.velocity, 'task')}, {record.expected} planned; "
        "consider a smaller scope for the next one"
    )
    warnings = [slow] if is_slow(record, part.thresholds) else []
    warnings += [overdue.rstrip()] if (overdue := _overdue_debt(state)) else []
    return SprintEnded(part.sprint, record), *map(Warned, warnings)


def metrics(state: State) -> SprintRecord:
    """How the sprint went, from the table alone."""
    part = development(state)
    rows = [(task, progress) for task, progress in state.tasks.rows() if fields(task).sprint == part.sprint]
    done = [task for task, progress in rows if progress.status is Status.completed]
    unsuccessful = [(task, progress) for task, progress in rows if progress.status in UNSUCCESSFUL]
    verdicts = (part.verdicts.get(task.id) for task, _ in rows)
    scores = [verdict.score for verdict in verdicts if verdict and verdict.score is not None]
    resolved = tech_debt.resolved_in(state.debt, part.sprint)
    own = {task.id for task, _ in rows}
    return SprintRecord(
        pipeline=fields(rows[0][0]).pipeline if rows else Pipeline.multi_sprint,
        expected=sum(is_first_work(task) for task, _ in rows),
        velocity=len(done),
        mean_score=round(sum(scores) / len(scores), 2) if scores else None,
        rounds=part.rounds.get(part.sprint, 0),
        unsuccessful=tuple(task.id for task, _ in unsuccessful),
        worked=(
            *(f"{task.id}: {task.title}" for task in done if task.role == Role.developer),
            *(f"{item.debt_id} paid back: {item.description}" for item in resolved),
        ),
        failed=(
            *(f"{task.id}: {progress.error}" for task, progress in unsuccessful),
            *(["convergence was forced"] if part.sprint in part.forced else []),
        ),
        debt=tech_debt.line(state.debt),
        learned=tuple(note.text for note in state.wisdom.notes if note.file == "learnings" and note.task in own),
    )


def capacity(state: State) -> int:
    """How much a sprint can take on: the mean velocity of those that are over, or else what is planned for it."""
    part = development(state)
    if part.sprints:
        return round(sum(record.velocity for record in part.sprints.values()) / len(part.sprints))
    own = (fields(task) for task in state.tasks.plan.values())
    return sum(not one.round and one.sprint == part.sprint for one in own)


def is_slow(record: SprintRecord, thresholds: Thresholds) -> bool:
    """Whether less than the threshold of what was planned got done."""
    return record.velocity < thresholds.slow * record.expected


def may_downgrade(record: SprintRecord, thresholds: Thresholds) -> bool:
    """After a sprint that was good, did all that was planned, and in which nothing failed."""
    good = record.mean_score is not None and record.mean_score >= thresholds.good_score
    return good and record.velocity >= record.expected and not record.failed


def _overdue_debt(state: State) -> str:
    """The debt that the user is asked about before another sprint begins."""
    overdue = tech_debt.overdue(state.debt, state.policy.debt, development(state).sprint)
    return f"Debt that is overdue: {'; '.join(item.description for item in overdue)}. " if overdue else ""


def _gate(state: State) -> Gate:
    part = development(state)
    record, following, overdue = part.sprints[part.sprint], part.sprint + 1, _overdue_debt(state)
    score = "no review" if record.mean_score is None else f"mean score {record.mean_score:g}"
    failed = f", unsuccessful: {', '.join(record.unsuccessful)}" if record.unsuccessful else ""
    rounds = counted(record.rounds, "fix round")
    debts = f"Technical debt: {record.debt}. " if record.debt else ""
    velocity = f"{counted(record.velocity, 'task')} completed, {record.expected} planned"
    question = (
        f"Sprint {part.sprint} of {total(state)} is done: {velocity}, {score}, {rounds}{failed}. "
        f'{debts}{overdue}Go on with sprint {following}, "{goal(state, following)}"?'
    )
    choices = tuple(SprintChoice)
    if overdue:
        choices = (SprintChoice.stop, SprintChoice.go_on)
    elif not may_downgrade(record, part.thresholds):
        choices = (SprintChoice.go_on, SprintChoice.stop)
    return Gate(kind=SPRINT_GATE, subject=str(part.sprint), question=question, choices=choices)


def _next(state: State, pipeline: Pipeline) -> tuple[Event, ...]:
    sprint = development(state).sprint
    context = (task.id for role in (Role.architect, Role.reviewer) for task in rows_of(state, role, sprint))
    new = pipelines.TaskFactory(pipeline, state.scope, sprint=sprint + 1, existing=state.tasks.plan.keys())
    check = state.session.engine is Engine.wave and pipeline is Pipeline.multi_sprint
    target = goal(state, sprint + 1)
    tasks = pipelines.next_sprint(new, target, after=_last_tasks(state), context=tuple(context), check=check)
    return SprintStarted(sprint + 1, target), TasksAdded(joining(tasks, state.tasks.plan))


def _last_tasks(state: State) -> tuple[TaskId, ...]:
    """The completed tasks of the sprint on which no other completed task of it depends."""
    sprint = development(state).sprint
    rows = state.tasks.rows()
    done = [task for task, one in rows if fields(task).sprint == sprint and one.status is Status.completed]
    needed = {dep for task in done for dep in task.deps}
    return tuple(task.id for task in done if task.id not in needed)
