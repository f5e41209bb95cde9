"""The templates of the development team: patch, sprint, multi-sprint, and the tasks of a fix round."""

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from iterdev.core import ids, task_description
from iterdev.core.errors import UserError
from iterdev.core.results import shortened
from iterdev.core.rules import team_rules
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.task_description import Brief, Scope
from iterdev.core.types import Engine, Mode, TaskId, TaskKind
from iterdev.teams.development.roles import ROLES, Fields, Part, Pipeline, Role, fields

PATCH_DEV = Brief(
    purpose="Implement the fix",
    success="fix applied, syntax clean",
    steps=("Load the target files and understand their context", "Apply the fix", "Validate the syntax"),
    expected="modified source files + code/dev-log.md | syntax clean",
    constraints="Minimal changes | Preserve existing behavior",
)
DESIGN = Brief(
    purpose="Technical design and task breakdown",
    success="design document and task breakdown ready",
    steps=(
        "Explore the code base for patterns and dependencies",
        "Create a component design with integration points",
        "Break the work down into tasks that can be implemented, with acceptance criteria",
    ),
    expected="design/design-001.md + design/task-breakdown.json | components defined, tasks actionable",
    constraints="Change no file | Name the risks and how to mitigate them",
)
MILESTONES = replace(
    DESIGN, steps=(*DESIGN.steps, "Put the tasks of the breakdown into milestones; each of them becomes one sprint")
)
REFINEMENT = Brief(
    purpose="Refine the design for the next milestone",
    success="the breakdown of this sprint is ready",
    steps=(
        "Load the design so far, what the reviews said, and what the code became",
        "Take up urgent feedback first, then technical debt by its rank",
        "Break this sprint's milestone down into tasks that can be implemented, with acceptance criteria",
    ),
    expected="design/design-001.md + design/task-breakdown.json | tasks of this sprint actionable",
    constraints="Change no file | Keep what works",
)
DEV = Brief(
    purpose="Implement the design",
    success="all tasks of the breakdown implemented, syntax clean",
    steps=(
        "Load the design and the task breakdown",
        "Implement the tasks in their execution order",
        "Validate the syntax after every larger change",
    ),
    upstream=("design/design-001.md", "design/task-breakdown.json"),
    expected="modified source files + code/dev-log.md | syntax clean, all tasks done",
    constraints="Follow the design | Preserve existing behavior | Follow code conventions",
)
INCREMENT = Brief(
    purpose="Incremental implementation",
    success="the remaining tasks of the breakdown implemented",
    steps=("Load the remaining tasks of the breakdown", "Implement them one after another", "Validate the syntax"),
    upstream=("design/task-breakdown.json", "code/dev-log.md"),
    expected="modified source files + updated code/dev-log.md",
    constraints="Incremental delivery | Follow existing patterns",
)
VERIFY = Brief(
    purpose="Verify the implementation",
    success="tests pass, no regressions",
    steps=("Detect the test framework", "Run the tests for the changed files", "Run the regression suite"),
    upstream=("code/dev-log.md",),
    expected="verify/verify-001.json | pass rate >= 95 %",
    constraints="Touch only files that the change touched | Report regressions",
)
REVIEW = Brief(
    purpose="Code review for correctness and quality",
    success="all four dimensions reviewed, scores given",
    steps=(
        "Load the changed files and the design document",
        "Review across four dimensions: correctness, completeness, maintainability, security",
        "Score each dimension from 1 to 10 and list every finding with its severity",
    ),
    upstream=("design/design-001.md", "code/dev-log.md"),
    expected="review/review-001.md | findings per dimension with severity",
    constraints="Change no file | Focus on the implementation's changes | Give file:line references",
)
GC_CHECK = Brief(
    purpose="Decide between another fix round and convergence",
    success="the decision is recorded",
    steps=("Take the score and the critical findings of the newest review", "Apply the rule of the critic loop"),
    expected="interactive/<task>-result.json with the decision",
    constraints="Decide from the numbers alone",
)
FIX = Brief(
    purpose="Fix what was found",
    success="every critical and high finding answered, nothing else changed",
    steps=(
        "Read the findings below: critical first, then high; medium ones may be fixed too",
        "Fix only what was flagged, in the style of the code around it",
        "Validate the syntax",
    ),
    upstream=("review/", "verify/"),
    expected="modified source files + updated code/dev-log.md",
    constraints="Leave code that was not flagged alone",
)

CONFLICT = replace(
    team_rules.CONFLICT_BRIEF,
    upstream=("code/dev-log.md",),
    expected="modified source files + updated code/dev-log.md | both changes present",
)

HEADLINE = 60
"""Characters that fit into the first line of a commit message, beside the task's id."""

BY_PREFIX = {role.prefix: role for role in ROLES.values()} | {ids.UPDATE: ROLES[Role.developer]}

EXPECTED_COUNT: dict[Pipeline, Callable[[int], bool]] = {
    Pipeline.patch: lambda count: count == 2,
    Pipeline.sprint: lambda count: count == 4,
    Pipeline.multi_sprint: lambda count: count >= 5,
}


class TaskFactory:
    """Makes tasks that share pipeline, sprint and round, with ids that continue the session's counters."""

    def __init__(
        self, pipeline: Pipeline, scope: Scope, *, sprint: int = 1, round_: int = 0, existing: Collection[TaskId] = ()
    ) -> None:
        self.round, self._pipeline, self._scope, self._sprint = round_, pipeline, scope, sprint
        self._taken = set(existing)
        self._design = "001"

    def __call__(
        self,
        brief: Brief,
        title: str,
        prefix: str,
        deps: Sequence[TaskId] = (),
        context: Sequence[TaskId] | None = None,
    ) -> Task:
        """The next task of a prefix; it takes context from what it depends on if nothing else is named."""
        task = ids.next_id(prefix, self._taken)
        self._taken.add(task)
        role = BY_PREFIX[prefix.removesuffix("-fix")]
        if prefix == "DESIGN":
            self._design = ids.number_of(task)
        part = Part.rest if brief is INCREMENT else Part.own
        decides = role.procedure is team_rules.Procedure.decide
        kind = TaskKind.update if prefix == ids.UPDATE else TaskKind.work
        return Task(
            id=task,
            title=title,
            description=task_description.describe(self._numbered(brief, task), self._scope, inner_loop=role.loops),
            role=role.name,
            fields=Fields(pipeline=self._pipeline, sprint=self._sprint, round=self.round, part=part),
            kind=TaskKind.decision if decides else kind,
            deps=tuple(deps),
            context_from=tuple(deps if context is None else context),
            mode=Mode.interactive if decides else Mode.csv_wave,
        )

    def _numbered(self, brief: Brief, task: TaskId) -> Brief:
        """The brief with the numbers of this task's deliverable and of the design of its sprint, in place of 001."""
        design = f"design-{self._design}"
        expected = brief.expected.replace("design-001", design)
        if expected.startswith(("verify/", "review/")):
            expected = expected.replace("-001", f"-{ids.number_of(task)}", 1)
        upstream = tuple(path.replace("design-001", design) for path in brief.upstream)
        return replace(brief, expected=expected, upstream=upstream)


def first_tasks(pipeline: Pipeline, scope: Scope, engine: Engine) -> tuple[Task, ...]:
    """The tasks with which a session begins, checked and with their waves."""
    new, title = TaskFactory(pipeline, scope), headline(scope.requirement)
    tasks: tuple[Task, ...]
    match pipeline:
        case Pipeline.patch:
            dev = new(PATCH_DEV, title, "DEV")
            tasks = (dev, new(VERIFY, "Verify the fix", "VERIFY", [dev.id]))
        case Pipeline.sprint:
            tasks = _sprint(new, new(DESIGN, DESIGN.purpose, "DESIGN"), (title,))
        case Pipeline.multi_sprint:
            titles, check = (part_title(1), part_title(2)), engine is Engine.wave
            tasks = _sprint(new, new(MILESTONES, DESIGN.purpose, "DESIGN"), titles, check=check)
    return dispatched(tasks, pipeline, scope)


def dispatched(tasks: Sequence[Task], pipeline: Pipeline, scope: Scope) -> tuple[Task, ...]:
    """The tasks after the checks of dispatching: their number, no cycle, every section of every description."""
    if not EXPECTED_COUNT[pipeline](len(tasks)):
        raise AssertionError(f"the {pipeline} template made {len(tasks)} tasks")
    complete = []
    for task in tasks:
        loops = ROLES[task.role].loops
        text = task_description.completed(task.description, title=task.title, scope=scope, inner_loop=loops)
        complete.append(replace(task, description=text))
    placed = checked(complete)
    if isinstance(placed, Fault):
        raise UserError(f"The tasks cannot be dispatched: {placed.message}", hint="run `iterdev doctor`")
    return placed


def next_sprint(
    new: TaskFactory, goal: str, *, after: Sequence[TaskId], context: Sequence[TaskId], check: bool
) -> tuple[Task, ...]:
    """The tasks of a later sprint, without waves; `after` are those with which the sprint before ended."""
    title = headline(goal)
    return _sprint(new, new(REFINEMENT, f"Refined design: {title}", "DESIGN", after, context), (title,), check=check)


def _sprint(new: TaskFactory, design: Task, titles: Sequence[str], *, check: bool = False) -> tuple[Task, ...]:
    """The design, a development task for each title, the two that look at the work side by side, and the controller."""
    tasks = [design]
    for title in titles:
        last = tasks[-1].id
        tasks.append(
            new(DEV if last == design.id else INCREMENT, title, "DEV", [last], list(dict.fromkeys((design.id, last))))
        )
    last = tasks[-1].id
    tasks.append(new(VERIFY, "Verify the implementation", "VERIFY", [last]))
    tasks.append(new(REVIEW, "Code review", "REVIEW", [last], [design.id, last]))
    return (*tasks, new(GC_CHECK, "Critic loop", "GC-CHECK", [tasks[-1].id])) if check else tuple(tasks)


def fix_round(
    new: TaskFactory,
    raised_by: Sequence[TaskId],
    context: Sequence[TaskId],
    *,
    verify: bool,
    check: bool,
    review: bool = True,
) -> tuple[Task, ...]:
    """The tasks of a fix round, without waves: the fix, the next review, and what else has to look again.

    `verify`: the tests failed, so they are run again. `check`: a controller task decides about the next round.
    A patch has no `review`.
    """
    title = f"(round {new.round})"
    work = new(FIX, f"Fix {'review issues' if review else 'the failing tests'} {title}", "DEV-fix", raised_by, context)
    tasks = [work]
    if review:
        tasks.append(new(REVIEW, f"Re-review {title}", "REVIEW", [work.id]))
    if verify:
        tasks.append(new(VERIFY, f"Verify the fix {title}", "VERIFY", [work.id]))
    if check:
        tasks.append(new(GC_CHECK, f"Critic loop {title}", "GC-CHECK", [tasks[1].id]))
    return tuple(tasks)


def reverification(fix: Task, scope: Scope, existing: Collection[TaskId]) -> Task:
    """A verification of work that changed after the last one had begun."""
    own = fields(fix)
    new = TaskFactory(own.pipeline, scope, sprint=own.sprint, round_=own.round, existing=existing)
    return new(VERIFY, f"Verify the fix (round {own.round})", "VERIFY", [fix.id])


def increments(last: Task, numbers: Sequence[int], scope: Scope, existing: Collection[TaskId]) -> tuple[Task, ...]:
    """Further development tasks behind the last one, for a breakdown that is too long for those that are there.

    `numbers` are those of the parts of the breakdown that they do.
    """
    new = TaskFactory(fields(last).pipeline, scope, sprint=fields(last).sprint, existing=existing)
    before, added = last.id, []
    for number in numbers:
        added.append(new(INCREMENT, part_title(number), "DEV", [before], [*last.context_from, before]))
        before = added[-1].id
    return tuple(added)


def update_tasks(new: TaskFactory, title: str, *, verify: bool) -> tuple[Task, ...]:
    """The task that brings in the user's branch, and a run of the tests on the result."""
    update = new(team_rules.UPDATE_BRIEF, title, ids.UPDATE)
    return (update, new(VERIFY, "Verify the update", "VERIFY", [update.id])) if verify else (update,)


def part_title(number: int) -> str:
    """The title of a developer's task until the design says what its items are."""
    return f"Implement the design, part {number}"


def items_title(titles: Sequence[str]) -> str:
    """The title of a developer's task that does the items with these titles; it becomes the subject of the commit."""
    more = f" (+{len(titles) - 1} more)" if len(titles) > 1 else ""
    return headline(titles[0], HEADLINE - len(more)) + more


def headline(text: str, length: int = HEADLINE) -> str:
    """The first line as a title: that of the requirement becomes the first line of the commit."""
    return shortened(" ".join(text.strip().splitlines()[0].split()), length)
