"""The templates of the issue team: quick, full, batch, the tasks of a fix cycle, and those that build groups."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from iterdev.core import ids, task_description
from iterdev.core.errors import UserError
from iterdev.core.rules.team_rules import UPDATE_BRIEF
from iterdev.core.session.tasks import Task, joining
from iterdev.core.task_description import Brief, Scope
from iterdev.core.types import Mode, TaskId, TaskKind
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.roles import ROLES, Fields, Pipeline, Role, fields
from iterdev.tracker.ordering import Order

QUICK, FULL = 2, 4
"""The most issues of the pipelines that do not treat each issue on its own."""
URGENT = 4
"""An issue from this priority on is audited."""

EXPLORE = Brief(
    purpose="Analyze issue context and map codebase impact",
    success="the files, dependencies and risks of every issue are known",
    steps=(
        "Read the issues below",
        "Search the code base for what they are about: files, patterns, earlier changes",
        "Assess the impact and the complexity of each issue",
    ),
    expected="explorations/context-<issue>.json | a report for every issue",
    constraints="Change no file | Name paths that exist",
)
SOLVE = Brief(
    purpose="Design solution and decompose into implementation tasks",
    success="every issue has a solution whose tasks can be implemented",
    steps=(
        "Read the context reports",
        "Design one solution for each issue; offer several only where the choice is the user's",
        "Break each solution down into at most 10 tasks, with their files and with criteria that can be measured",
        "Name the issues that have to be resolved before",
    ),
    upstream=("explorations/",),
    expected="solutions/solution-<issue>.json | tasks with files",
    constraints="Change no file | Consider what failed before",
)
REVISE = Brief(
    purpose="Revise the solutions that were rejected",
    success="the objections of the audit are answered",
    steps=(
        "Read the audit report: the reasons of the rejection and what to do differently",
        "Design an alternative that answers them",
        "Hand in a whole solution for every issue that was rejected",
    ),
    upstream=("explorations/", "solutions/", "audits/audit-report.json"),
    expected="solutions/solution-<issue>.json | revised",
    constraints="Change no file | Keep solutions that were not rejected",
)
AUDIT = Brief(
    purpose="Review solution for feasibility, risk, and completeness",
    success="every solution is scored in all three dimensions",
    steps=(
        "Read the solutions and the context reports",
        "Score technical feasibility, risk and completeness of each solution from 0 to 100",
        "Give the reasons of every score that is not good, and what to do differently",
    ),
    upstream=("explorations/", "solutions/"),
    expected="audits/audit-report.json | scores for every issue",
    constraints="Change no file | Judge the plan, not the issue",
)
MARSHAL = Brief(
    purpose="Form execution queue with conflict detection and ordering",
    success="the order of solutions that touch the same files is known",
    steps=(
        "Read the solutions that touch the same files",
        "Decide which of them is built first, and why",
    ),
    upstream=("solutions/",),
    expected="queue/execution-queue.json | order and conflicts",
    constraints="Change no file | iterdev computes overlaps and groups itself",
)
BUILD = Brief(
    purpose="Implement solution plan and verify with tests",
    success="every task of the solutions is implemented, and the tests pass",
    steps=(
        "Read the solutions of the issues below and the context reports",
        "Implement their tasks one after another",
        "Add or change tests for what is new",
    ),
    upstream=("explorations/", "solutions/"),
    expected="modified source files + builds/build-<issue>.json",
    constraints="Follow the solutions | Preserve existing behavior | Follow code conventions",
)


class IssueRequest(Struct, frozen=True, kw_only=True):
    """What a session of this team is started with."""

    issues: tuple[IssueFacts, ...]
    method: str
    separately: bool = False
    """Each issue of a batch is built by a task of its own."""


def with_separate_builds(asked: str | None) -> Pipeline:
    """The pipeline that builds each issue by a task of its own; an error if another one was asked for."""
    if asked not in {None, Pipeline.batch}:
        raise UserError(f'"{asked}" builds all issues together', hint="--mode batch, or one issue alone")
    return Pipeline.batch


def pipeline_for(issues: Collection[IssueFacts]) -> Pipeline:
    """The pipeline of a request that names none."""
    urgent = any(issue.description.priority >= URGENT for issue in issues)
    if len(issues) <= QUICK and not urgent:
        return Pipeline.quick
    return Pipeline.full if len(issues) <= FULL else Pipeline.batch


class TaskFactory:
    """Makes tasks with ids that continue the session's counters."""

    def __init__(self, scope: Scope, existing: Iterable[TaskId] = ()) -> None:
        self._scope, self._existing = scope, tuple(existing)
        self._newest: dict[str, TaskId] = {}
        """The last id of each prefix, so that not all are looked at for each of many."""

    def __call__(
        self,
        brief: Brief,
        title: str,
        role: Role,
        own: Fields,
        deps: Sequence[TaskId] = (),
        context: Sequence[TaskId] | None = None,
        *,
        agent: str = "",
    ) -> Task:
        """The next task of a role; it takes context from what it depends on if nothing else is named."""
        spec, updates = ROLES[role], brief is UPDATE_BRIEF
        fix = TaskId(f"{spec.prefix}-fix-{own.cycle:03d}")
        return Task(
            id=fix if brief is REVISE else self._next_id(ids.UPDATE if updates else spec.prefix),
            title=title,
            description=task_description.describe(brief, self._scope, inner_loop=spec.loops),
            role=role,
            fields=own,
            kind=TaskKind.update if updates else TaskKind.work,
            deps=tuple(deps),
            context_from=tuple(deps if context is None else context),
            mode=Mode.interactive if role is Role.reviewer else Mode.csv_wave,
            agent=agent,
        )

    def _next_id(self, prefix: str) -> TaskId:
        known = (self._newest[prefix],) if prefix in self._newest else self._existing
        self._newest[prefix] = ids.next_id(prefix, known)
        return self._newest[prefix]


def update_task(new: TaskFactory, title: str, own: Fields) -> Task:
    """The task that brings in the user's branch, without a wave."""
    return new(UPDATE_BRIEF, title, Role.implementer, own)


def first_tasks(pipeline: Pipeline, issues: Sequence[str], method: str, scope: Scope) -> tuple[Task, ...]:
    """The tasks with which a session begins, with their waves; those that build a batch come later."""
    new, every = TaskFactory(scope), Fields(issues=tuple(issues))
    # In a batch, each of these tasks is about one issue.
    shares = [Fields(issues=(issue,)) for issue in issues] if pipeline is Pipeline.batch else [every]
    explore = [new(EXPLORE, "Context analysis", Role.explorer, own) for own in shares]
    # One tuple for all that wait for every exploration, whose number would otherwise be squared.
    explored = tuple(task.id for task in explore)
    solve = [
        new(SOLVE, "Solution design", Role.planner, own, explored, [source.id])
        for own, source in zip(shares, explore, strict=True)
    ]
    solved = [task.id for task in solve]
    audit = [] if pipeline is Pipeline.quick else [new(AUDIT, "Technical review", Role.reviewer, every, solved)]
    before = [task.id for task in audit] or solved
    marshal = new(MARSHAL, "Queue formation", Role.integrator, every, before, solved)
    tasks = [*explore, *solve, *audit, marshal]
    if pipeline is not Pipeline.batch:
        own = Fields(issues=tuple(issues), method=method)
        sources = [*explored, *solved]
        tasks.append(new(BUILD, "Implementation", Role.implementer, own, [marshal.id], sources))
    return joining(tasks, {})


def fix_cycle(
    new: TaskFactory, audit: Task, issues: Sequence[str], solved: Sequence[TaskId], number: int
) -> tuple[Task, Task]:
    """The revision of rejected solutions and the audit that looks at it, without waves."""
    own = Fields(issues=tuple(issues), cycle=number)
    title = f"Revise solution (fix cycle {number})"
    revise = new(REVISE, title, Role.planner, own, [audit.id], [*solved, audit.id])
    title = f"Re-review revised solution (cycle {number})"
    return revise, new(AUDIT, title, Role.reviewer, own, [revise.id])


def group_builds(
    new: TaskFactory, order: Order, marshal: TaskId, sources: Sequence[Task], builders: Sequence[tuple[str, str]]
) -> tuple[Task, ...]:
    """One BUILD task for each group, without waves. A group waits for those that its issues depend on.

    It takes context from those of the sources that are about its issues. `builders` are the method and the agent of
    each group.
    """
    tasks: list[Task] = []
    for number, (issues, (method, agent)) in enumerate(zip(order.groups, builders, strict=True), 1):
        deps = [marshal, *(tasks[other - 1].id for other in order.waits_for(number))]
        own = Fields(issues=issues, method=method)
        title = f"Implementation group {number}"
        context = [source.id for source in sources if not set(issues).isdisjoint(fields(source).issues)]
        tasks.append(new(BUILD, title, Role.implementer, own, deps, context, agent=agent))
    return tuple(tasks)
