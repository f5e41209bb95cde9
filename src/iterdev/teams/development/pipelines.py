"""The templates of the development team: patch, sprint, multi-sprint, and the rows of a fix round."""

from collections.abc import Callable, Collection, Sequence

import msgspec
from msgspec import Struct

from iterdev.core import ids, task_description
from iterdev.core.session.tasks import Task, with_waves
from iterdev.core.task_description import Brief, Scope
from iterdev.core.types import Engine, Mode, TaskId, TaskKind
from iterdev.teams.development.fields import Fields, Part, Pipeline, Role, fields

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
MILESTONES = msgspec.structs.replace(
    DESIGN,
    steps=(*DESIGN.steps, "Put the tasks of the breakdown into milestones; each of them becomes one sprint"),
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

CONFLICT = Brief(
    purpose="Bring two changes of the same files together",
    success="both changes are present and work together",
    steps=(
        "Read both changes and understand what each of them is for",
        "Go to the places that git could not merge, and bring them together so that both changes keep their effect",
        "Leave no conflict marker, and validate the syntax",
    ),
    upstream=("code/dev-log.md",),
    expected="modified source files + updated code/dev-log.md | both changes present",
    constraints="Drop nothing of either change | Change nothing else",
)

HEADLINE = 60
"""Characters that fit into the first line of a commit message, beside the task's id."""

PREFIXES = {
    "DESIGN": Role.architect,
    "DEV": Role.developer,
    "VERIFY": Role.tester,
    "REVIEW": Role.reviewer,
    "GC-CHECK": Role.gc_controller,
}

EXPECTED_COUNT: dict[Pipeline, Callable[[int], bool]] = {
    Pipeline.patch: lambda count: count == 2,
    Pipeline.sprint: lambda count: count == 4,
    Pipeline.multi_sprint: lambda count: count >= 5,
}


def has_inner_loop(role: str) -> bool:
    """Only the developer goes on with further tasks of its prefix in one process."""
    return role == Role.developer


def role_of(task: str) -> Role | None:
    """The role that a task id's prefix names, or None."""
    return PREFIXES.get(ids.prefix_of(task))


def first_tasks(pipeline: Pipeline, scope: Scope, engine: Engine) -> tuple[Task, ...]:
    """The tasks with which a session begins, checked and with their waves."""
    match pipeline:
        case Pipeline.patch:
            tasks = _patch(scope)
        case Pipeline.sprint:
            tasks = _sprint(scope)
        case Pipeline.multi_sprint:
            tasks = _multi_sprint(scope, check=engine is Engine.wave)
    return dispatched(tasks, pipeline, scope)


def dispatched(tasks: Sequence[Task], pipeline: Pipeline, scope: Scope) -> tuple[Task, ...]:
    """The tasks after the checks of dispatching: their number, no cycle, every section of every description."""
    if not EXPECTED_COUNT[pipeline](len(tasks)):
        raise AssertionError(f"the {pipeline} template made {len(tasks)} tasks")
    whole = tuple(
        msgspec.structs.replace(
            task,
            description=task_description.completed(
                task.description, title=task.title, scope=scope, inner_loop=has_inner_loop(task.role)
            ),
        )
        for task in tasks
    )
    return with_waves(whole)


class FixRound(Struct, frozen=True, kw_only=True):
    """What is known about a round before its rows exist."""

    pipeline: Pipeline
    sprint: int
    number: int
    raised_by: tuple[TaskId, ...]
    """The tasks whose verdict asked for the round."""
    context: tuple[TaskId, ...]
    verify: bool
    """The tests failed, so they have to be run again."""
    check: bool
    """A controller row decides about the next round."""


def fix_round(fix: FixRound, scope: Scope, existing: Collection[TaskId]) -> tuple[Task, ...]:
    """The rows of one fix round, without waves: the fix, the next review, and what else has to look again."""
    add = _Adder(fix.pipeline, scope, sprint=fix.sprint, number=fix.number, existing=existing)
    title = f"(round {fix.number})"
    work = add(FIX, f"Fix review issues {title}", "DEV-fix", deps=fix.raised_by, context=fix.context)
    review = add(REVIEW, f"Re-review {title}", "REVIEW", deps=[work.id], context=[work.id])
    tasks = [work, review]
    if fix.verify:
        tasks.append(add(VERIFY, f"Verify the fix {title}", "VERIFY", deps=[work.id], context=[work.id]))
    if fix.check:
        tasks.append(add(GC_CHECK, f"Critic loop {title}", "GC-CHECK", deps=[review.id], context=[review.id]))
    return tuple(tasks)


def reverification(fix: Task, scope: Scope, existing: Collection[TaskId]) -> Task:
    """A verification of work that changed after the last one had begun."""
    own = fields(fix)
    add = _Adder(own.pipeline, scope, sprint=own.sprint, number=own.round, existing=existing)
    return add(VERIFY, f"Verify the fix (round {own.round})", "VERIFY", deps=[fix.id], context=[fix.id])


def increments(last: Task, count: int, scope: Scope, existing: Collection[TaskId]) -> tuple[Task, ...]:
    """Further developer's rows behind the last one, for a breakdown that is too long for those that are there."""
    add = _Adder(fields(last).pipeline, scope, sprint=fields(last).sprint, existing=existing)
    rows: list[Task] = []
    for _ in range(count):
        before = rows[-1] if rows else last
        context = [*last.context_from, before.id]
        rows.append(add(INCREMENT, f"{headline(scope)} (more of the rest)", "DEV", deps=[before.id], context=context))
    return tuple(rows)


class SprintPlan(Struct, frozen=True, kw_only=True):
    """What is known about a later sprint before its rows exist."""

    pipeline: Pipeline
    sprint: int
    goal: str
    after: tuple[TaskId, ...]
    """The tasks with which the sprint before ended."""
    context: tuple[TaskId, ...]
    check: bool
    """A controller row decides about fix rounds."""


def next_sprint(plan: SprintPlan, scope: Scope, existing: Collection[TaskId]) -> tuple[Task, ...]:
    """The rows of a later sprint, without waves."""
    add = _Adder(plan.pipeline, scope, sprint=plan.sprint, existing=existing)
    title = f"Refined design: {_shortened(plan.goal)}"
    design = add(REFINEMENT, title, "DESIGN", deps=plan.after, context=plan.context)
    dev = add(DEV, _shortened(plan.goal), "DEV", deps=[design.id], context=[design.id])
    rows = [design, dev, *_window(add, design, dev)]
    if plan.check:
        rows.append(add(GC_CHECK, "Critic loop", "GC-CHECK", deps=[rows[-1].id], context=[rows[-1].id]))
    return tuple(rows)


class _Adder:
    """Makes rows that share pipeline, sprint and round, with ids that continue the session's counters."""

    def __init__(
        self,
        pipeline: Pipeline,
        scope: Scope,
        *,
        sprint: int = 1,
        number: int = 0,
        existing: Collection[TaskId] = (),
    ) -> None:
        self._pipeline, self._scope, self._sprint, self._number = pipeline, scope, sprint, number
        self._taken = set(existing)
        self._design = "001"

    def __call__(
        self, brief: Brief, title: str, prefix: str, *, deps: Sequence[TaskId] = (), context: Sequence[TaskId] = ()
    ) -> Task:
        task = ids.next_id(prefix, self._taken)
        self._taken.add(task)
        role = PREFIXES.get(prefix.removesuffix("-fix"))
        if role is Role.architect:
            self._design = ids.number_of(task)
        if role is None:
            raise AssertionError(f"the prefix {prefix} has no role")
        return Task(
            id=task,
            title=title,
            description=task_description.describe(
                self._numbered(brief, task), self._scope, inner_loop=has_inner_loop(role)
            ),
            role=role,
            fields=Fields(
                pipeline=self._pipeline,
                sprint=self._sprint,
                round=self._number,
                part=Part.rest if brief is INCREMENT else Part.own,
            ),
            kind=TaskKind.decision if role is Role.gc_controller else TaskKind.work,
            deps=tuple(deps),
            context_from=tuple(context),
            mode=Mode.interactive if role is Role.gc_controller else Mode.csv_wave,
        )

    def _numbered(self, brief: Brief, task: TaskId) -> Brief:
        """The brief with the numbers of this row's deliverable, and of the design of its sprint, for the first ones."""
        design = f"design-{self._design}"
        expected = brief.expected.replace("design-001", design)
        if expected.startswith(("verify/", "review/")):
            expected = expected.replace("-001", f"-{ids.number_of(task)}", 1)
        upstream = tuple(path.replace("design-001", design) for path in brief.upstream)
        return msgspec.structs.replace(brief, expected=expected, upstream=upstream)


def headline(scope: Scope) -> str:
    """The requirement as a title: it becomes the first line of the commit."""
    return _shortened(scope.requirement.strip().splitlines()[0])


def _shortened(text: str) -> str:
    return text if len(text) <= HEADLINE else f"{text[: HEADLINE - 1]}…"


def _patch(scope: Scope) -> tuple[Task, ...]:
    add = _Adder(Pipeline.patch, scope)
    dev = add(PATCH_DEV, headline(scope), "DEV")
    return dev, add(VERIFY, "Verify the fix", "VERIFY", deps=[dev.id], context=[dev.id])


def _sprint(scope: Scope) -> tuple[Task, ...]:
    add = _Adder(Pipeline.sprint, scope)
    design = add(DESIGN, "Technical design and task breakdown", "DESIGN")
    dev = add(DEV, headline(scope), "DEV", deps=[design.id], context=[design.id])
    return design, dev, *_window(add, design, dev)


def _multi_sprint(scope: Scope, *, check: bool) -> tuple[Task, ...]:
    add = _Adder(Pipeline.multi_sprint, scope)
    design = add(MILESTONES, "Technical design and task breakdown", "DESIGN")
    dev = add(DEV, f"{headline(scope)} (first batch)", "DEV", deps=[design.id], context=[design.id])
    more = add(INCREMENT, f"{headline(scope)} (the rest)", "DEV", deps=[dev.id], context=[design.id, dev.id])
    verify, review = _window(add, design, more)
    if not check:
        return design, dev, more, verify, review
    return (
        design,
        dev,
        more,
        verify,
        review,
        add(GC_CHECK, "Critic loop", "GC-CHECK", deps=[review.id], context=[review.id]),
    )


def _window(add: _Adder, design: Task, last: Task) -> tuple[Task, Task]:
    """The two tasks that look at finished work side by side."""
    verify = add(VERIFY, "Verify the implementation", "VERIFY", deps=[last.id], context=[last.id])
    review = add(REVIEW, "Code review", "REVIEW", deps=[last.id], context=[design.id, last.id])
    return verify, review
