"""What the agents of the issue team hand in, one schema per role."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from iterdev.core.results import Dependency, Result
from iterdev.tracker.solutions import FileChange, Solution, SolutionTask

MOST_TASKS = 10
"""Tasks of one solution; more are a risk."""

Grade = Annotated[float, Meta(ge=0, le=100)]
Scope = Literal["low", "medium", "high"]


class RelevantFile(Struct, frozen=True, kw_only=True):
    path: str
    relevance: str = ""


class IssueContext(Struct, frozen=True, kw_only=True):
    """What the code base has to do with one issue."""

    issue_id: str
    relevant_files: tuple[RelevantFile | str, ...] = ()
    dependencies: tuple[str, ...] = ()
    impact_scope: Scope | None = None
    existing_patterns: tuple[str, ...] = ()
    related_changes: tuple[str, ...] = ()
    key_findings: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[RelevantFile, ...]:
        return tuple(
            file if isinstance(file, RelevantFile) else RelevantFile(path=file) for file in self.relevant_files
        )


class Exploration(Result, frozen=True, kw_only=True):
    contexts: Annotated[tuple[IssueContext, ...], Meta(min_length=1)]


class PlannedTask(Struct, frozen=True, kw_only=True):
    """One step of a solution, as the planner names it."""

    id: str
    title: str
    files: tuple[FileChange | str, ...] = ()
    description: str = ""
    depends_on: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] | str = ()


class PlannedSolution(Struct, frozen=True, kw_only=True):
    issue_id: str
    id: str = ""
    """The tracker numbers a solution that has none."""
    approach: str
    tasks: Annotated[tuple[PlannedTask, ...], Meta(min_length=1)]
    estimated_files: tuple[str, ...] = ()
    dependencies: Annotated[tuple[str, ...], Meta(description="issues that have to be resolved first")] = ()


class Planning(Result, frozen=True, kw_only=True):
    solutions: Annotated[tuple[PlannedSolution, ...], Meta(min_length=1)]


class Dimension(Struct, frozen=True, kw_only=True):
    score: Grade
    findings: tuple[str, ...] | str = ()

    @property
    def texts(self) -> tuple[str, ...]:
        found = self.findings
        return found if isinstance(found, tuple) else (found,) if found else ()


class IssueAudit(Struct, frozen=True, kw_only=True):
    issue_id: str
    solution_id: str = ""
    technical_feasibility: Dimension
    risk_assessment: Dimension
    completeness: Dimension


class Audit(Result, frozen=True, kw_only=True):
    audits: Annotated[tuple[IssueAudit, ...], Meta(min_length=1)]
    rejection_reasons: tuple[str, ...] = ()
    actionable_feedback: Annotated[tuple[str, ...], Meta(description="what a revision has to do differently")] = ()


class OrderedConflict(Struct, frozen=True, kw_only=True):
    """Solutions that touch the same files, and what the integrator says of them."""

    issues: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    resolution: str = ""


class Integration(Result, frozen=True, kw_only=True):
    order: Annotated[tuple[str, ...], Meta(description="issues in the order in which they should be built")] = ()
    conflicts: tuple[OrderedConflict, ...] = ()


class Build(Result, frozen=True, kw_only=True):
    external_dependencies: tuple[Dependency, ...] = ()


def as_solution(planned: PlannedSolution, solution_id: str) -> Solution:
    """The planner's solution as the tracker keeps it."""
    return Solution(
        id=solution_id,
        description=planned.approach,
        approach=planned.approach,
        tasks=tuple(_as_task(task) for task in planned.tasks),
        estimated_files=planned.estimated_files,
        dependencies=planned.dependencies,
    )


def _as_task(task: PlannedTask) -> SolutionTask:
    criteria = task.acceptance_criteria
    listed = list(criteria) if isinstance(criteria, tuple) else [criteria]
    return SolutionTask(
        id=task.id,
        title=task.title,
        description=task.description,
        files=tuple(file if isinstance(file, FileChange) else FileChange(path=file) for file in task.files),
        depends_on=task.depends_on,
        details={"convergence": {"criteria": listed}} if criteria else {},
    )


def named_issues(entries: Iterable[IssueContext | PlannedSolution | IssueAudit]) -> list[str]:
    """The issues that the entries of a result are about, each once."""
    return list(dict.fromkeys(entry.issue_id for entry in entries))
