"""Sprints of a multi-sprint session: how many there are, how one went, and whether and how the next one starts."""

from collections.abc import Sequence

from iterdev.core import ids
from iterdev.core.collaboration import tech_debt
from iterdev.core.results import Design, WorkItem
from iterdev.core.session import events, tasks
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Pipeline, Role, Status, TaskId
from iterdev.teams.development import breakdown, pipelines

GOOD_SCORE = 8
"""The mean score of its reviews with which a sprint went well enough for a plain one to follow."""
ALARM = 0.5
"""The part of the expected velocity below which the user is told."""
GO_ON, DOWNGRADE, STOP = "go-on", "downgrade", "stop"


def gate_of(sprint: int) -> str:
    return f"sprint-{sprint}"


def goals(state: State) -> Sequence[str]:
    """What each sprint is for. The first design decides it, so that nobody is given more sprints than were shown."""
    first = next((task for task in state.designs if state.tasks[task].pipeline is Pipeline.multi_sprint), None)
    milestones = state.designs[first].milestones if first else ()
    return [milestone.title for milestone in milestones] or [state.session.requirement]


def goal(state: State, sprint: int) -> str:
    found = goals(state)
    return found[sprint - 1] if sprint <= len(found) else state.session.requirement


def total(state: State) -> int:
    return max(len(goals(state)), state.sprint)


def is_plain(state: State) -> bool:
    """Whether the sprint goes without the closer look of a multi-sprint."""
    return any(task.pipeline is Pipeline.sprint for task in state.of_role(Role.architect, state.sprint))


def design_of(state: State, sprint: int) -> Design | None:
    designs = [design for task, design in state.designs.items() if state.tasks[task].sprint == sprint]
    return designs[-1] if designs else None


def _items(state: State, sprint: int) -> list[WorkItem]:
    design = design_of(state, sprint)
    return breakdown.towards(design, goal(state, sprint)) if design else []


def items_of(state: State, task: Task) -> Sequence[WorkItem]:
    """What of the breakdown a developer's row has to do, which may be nothing; all of the sprint's for the others."""
    items = _items(state, task.sprint)
    if task.role is not Role.developer:
        return items
    rows = [row.id for row in _developers(state, task.sprint)]
    return breakdown.batch(items, rows.index(task.id), len(rows)) if task.id in rows else []


def planned_files(state: State, task: Task) -> tuple[str, ...]:
    """The files that have to be there when a row of first work is done."""
    own = items_of(state, task) if task.role is Role.developer else ()
    return tuple(file for item in own for file in item.files)


def has_nothing_left(state: State, task: Task) -> bool:
    """Whether the rows before it took all that a row for the rest of the breakdown could do."""
    if not pipelines.is_increment(task) or design_of(state, task.sprint) is None:
        return False
    others = {row.id for row in _developers(state, task.sprint)}
    return not others.isdisjoint(task.deps) and not items_of(state, task)


def staffing(state: State) -> tuple[events.Event, ...]:
    """More developer's rows, when the breakdown is too long for those that are there."""
    if state.pipeline is not Pipeline.multi_sprint:
        return ()
    rows = _developers(state, state.sprint)
    if not rows:
        return ()
    missing = breakdown.rows_needed(_items(state, state.sprint), len(rows)) - len(rows)
    last = rows[-1]
    if missing <= 0 or state.progress[last.id].status is not Status.pending:
        return ()
    added = pipelines.increments(last, missing, state.scope, state.tasks.keys())
    waiting = state.dependants.get(last.id, ())
    after = [tasks.redirected(state.tasks[task], last.id, added[-1].id) for task in waiting]
    checks = [state.tasks[other] for row in after for other in state.dependants.get(row.id, ())]
    placed = pipelines.with_waves([*added, *after, *checks], state.tasks)
    return events.TasksAdded(placed[: len(added)]), events.TasksReplanned(placed[len(added) :])


def _developers(state: State, sprint: int) -> list[Task]:
    """The rows of first work: those of fix rounds and of conflicts are not."""
    rows = state.of_role(Role.developer, sprint)
    return [task for task in rows if not task.round and ids.CONFLICT_FIX not in task.id]


def transition(state: State) -> tuple[events.Event, ...]:
    """What follows when every task of the sprint is final; nothing when the session is over."""
    if state.pipeline is not Pipeline.multi_sprint or state.session.by_hand:
        return ()
    if state.sprint not in state.sprints:
        return _ended(state)
    if state.sprint >= total(state):
        return ()
    match _choice(state):
        case None:
            return (events.GateOpened(_gate(state)),)
        case "stop":
            return ()
        case choice:
            return _next(state, Pipeline.sprint if choice == DOWNGRADE else Pipeline.multi_sprint)


def _choice(state: State) -> str | None:
    """Where nobody is asked, a sprint that lost something is the last one, and so is one with overdue debt."""
    if not state.policy.auto:
        return state.answers.get(gate_of(state.sprint))
    record = state.sprints[state.sprint]
    if record.lost or _owed(state):
        return STOP
    return DOWNGRADE if may_downgrade(record) else GO_ON


def _ended(state: State) -> tuple[events.Event, ...]:
    record = metrics(state)
    slow = (
        f"sprint-{state.sprint} completed {record.velocity} tasks, {record.expected} were planned; "
        "consider a smaller scope for the next one"
    )
    alarms = [slow] if record.velocity < ALARM * record.expected else []
    alarms += [owed.rstrip()] if (owed := _owed(state)) else []
    return events.SprintEnded(state.sprint, record), *map(events.Warned, alarms)


def metrics(state: State) -> events.SprintRecord:
    """How the sprint went, from the table alone."""
    rows = [(task, progress) for task, progress in state.rows() if task.sprint == state.sprint]
    done = [task for task, progress in rows if progress.status is Status.completed]
    lost = [(task, progress) for task, progress in rows if progress.status in {Status.failed, Status.skipped}]
    scores = [progress.score for _, progress in rows if progress.score is not None]
    own = {task.id for task, _ in rows}
    return events.SprintRecord(
        pipeline=rows[0][0].pipeline if rows else Pipeline.multi_sprint,
        expected=sum(not task.round and ids.CONFLICT_FIX not in task.id for task, _ in rows),
        velocity=len(done),
        mean_score=round(sum(scores) / len(scores), 2) if scores else None,
        rounds=state.rounds.get(state.sprint, 0),
        lost=tuple(task.id for task, _ in lost),
        worked=(
            *(f"{task.id}: {task.title}" for task in done if task.role is Role.developer),
            *(
                f"{item.debt_id} paid back: {item.description}"
                for item in tech_debt.resolved_in(state.debt, state.sprint)
            ),
        ),
        failed=(
            *(f"{task.id}: {progress.error}" for task, progress in lost),
            *(["convergence was forced"] if state.sprint in state.forced else []),
        ),
        debt=tech_debt.line(state.debt),
        learned=tuple(note.text for note in state.notes if note.file == "learnings" and note.task in own),
    )


def capacity(state: State) -> int:
    """How much a sprint can take on: the mean velocity of those that are over, or else what is planned for it."""
    done = [record.velocity for record in state.sprints.values()]
    planned = sum(not task.round and task.sprint == state.sprint for task in state.tasks.values())
    return round(sum(done) / len(done)) if done else planned


def may_downgrade(record: events.SprintRecord) -> bool:
    """After a sprint that was good, did all that was planned, and in which nothing had to be given up."""
    good = record.mean_score is not None and record.mean_score >= GOOD_SCORE
    return good and record.velocity >= record.expected and not record.failed


def _owed(state: State) -> str:
    """Which debt has to be talked about before another sprint begins."""
    overdue = tech_debt.overdue(state.debt, state.policy.debt, state.sprint)
    return f"Debt that is overdue: {'; '.join(item.description for item in overdue)}. " if overdue else ""


def _gate(state: State) -> events.Gate:
    record, following = state.sprints[state.sprint], state.sprint + 1
    score = "no review" if record.mean_score is None else f"mean score {record.mean_score:g}"
    lost = f", lost: {', '.join(record.lost)}" if record.lost else ""
    rounds = f"{record.rounds} fix round{'' if record.rounds == 1 else 's'}"
    debts = f"Technical debt: {record.debt}. " if record.debt else ""
    question = (
        f"Sprint {state.sprint} of {total(state)} is done: {_velocity(record)}, {score}, {rounds}{lost}. "
        f"{debts}{_owed(state)}"
        f'Go on with sprint {following}, "{goal(state, following)}"?'
    )
    choices = (GO_ON, DOWNGRADE, STOP) if may_downgrade(record) else (GO_ON, STOP)
    choices = (STOP, GO_ON) if _owed(state) else choices
    return events.Gate(id=gate_of(state.sprint), question=question, choices=choices)


def _velocity(record: events.SprintRecord) -> str:
    return f"{record.velocity} tasks completed, {record.expected} were planned"


def _next(state: State, pipeline: Pipeline) -> tuple[events.Event, ...]:
    following = state.sprint + 1
    wanted = pipelines.SprintPlan(
        pipeline=pipeline,
        sprint=following,
        goal=goal(state, following),
        after=_ends(state),
        context=tuple(
            task.id for role in (Role.architect, Role.reviewer) for task in state.of_role(role, state.sprint)
        ),
        check=state.session.engine is Engine.wave and pipeline is Pipeline.multi_sprint,
    )
    rows = pipelines.next_sprint(wanted, state.scope, state.tasks.keys())
    started = events.SprintStarted(following, wanted.goal)
    return started, events.TasksAdded(pipelines.with_waves(rows, state.tasks))


def _of(state: State, role: Role) -> list[Task]:
    return state.of_role(role, state.sprint)


def _ends(state: State) -> tuple[TaskId, ...]:
    """The completed tasks of the sprint on which no other completed task of it depends."""
    done = [
        task for task, progress in state.rows() if task.sprint == state.sprint and progress.status is Status.completed
    ]
    needed = {dep for task in done for dep in task.deps}
    return tuple(task.id for task in done if task.id not in needed)
