"""Technical debt: shortcuts of the work, ranked, reported, and resolved one by one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core import ids
from iterdev.core.append_only import NewestFirst
from iterdev.core.policy import DebtRule
from iterdev.core.results import TechDebt
from iterdev.core.types import Severity, TaskId

Term = TypeVar("Term", bound=StrEnum)


class DebtCategory(StrEnum):
    code = "code"
    design = "design"
    test = "test"
    documentation = "documentation"


class Priority(StrEnum):
    high = "high"
    medium = "medium"
    low = "low"


class Effort(StrEnum):
    small = "small"
    medium = "medium"
    large = "large"


POINTS = {Effort.small: 1, Effort.medium: 2, Effort.large: 4}
"""How many tasks an effort amounts to; without an estimate it counts as medium."""


class DebtStatus(StrEnum):
    open = "open"
    in_progress = "in_progress"
    resolved = "resolved"
    deferred = "deferred"


class Debt(Struct, frozen=True, kw_only=True):
    debt_id: str = ""
    category: DebtCategory = DebtCategory.code
    source_task_id: TaskId | None = None
    description: str
    severity: Severity = Severity.medium
    detection_date: float = 0
    owner: str | None = None
    resolution_plan: str | None = None
    estimated_effort: Effort | None = None
    priority: Priority = Priority.medium
    status: DebtStatus = DebtStatus.open
    related_files: tuple[str, ...] = ()
    sprint: int = 1
    """The sprint in which it was found."""
    resolved_in: int | None = None
    """The sprint in which it was resolved."""
    resolved_by: TaskId | None = None
    """The task whose work resolved it; None if a person did."""


Items = Sequence[Debt]
"""The newest first."""


class Report(Struct, frozen=True, kw_only=True):
    total: int
    by_severity: Mapping[Severity, int]
    by_category: Mapping[DebtCategory, int]
    open_items: Items
    in_progress_items: Items


class DebtIdentified(Struct, frozen=True, tag=True):
    item: Debt


class DebtMoved(Struct, frozen=True, kw_only=True, tag=True):
    debt_id: str
    status: DebtStatus
    sprint: int
    """The sprint in which that happened."""
    task: TaskId | None = None
    """The task whose work did it."""


DebtEvent = DebtIdentified | DebtMoved


def identified(items: Items, item: Debt) -> DebtIdentified:
    """The item with an id of its own, made from its date."""
    taken = {other.debt_id for other in items}
    return DebtIdentified(replace(item, debt_id=ids.timed_id("TD", item.detection_date, taken)))


def reported(
    items: Items, found: Iterable[TechDebt | str], *, task: TaskId, sprint: int, at: float
) -> tuple[DebtIdentified, ...]:
    """Debt that an agent reported with its result, in the fixed terms; known items are left out."""
    events: list[DebtIdentified] = []
    known = items
    for one in found:
        debt = one if isinstance(one, TechDebt) else TechDebt(description=one)
        text = debt.description.strip()
        if not text or any(item.description == text and item.status is not DebtStatus.resolved for item in known):
            continue
        event = identified(known, _in_fixed_terms(debt, task=task, sprint=sprint, at=at))
        events.append(event)
        known = (event.item, *known)
    return tuple(events)


def by_id(items: Items, debt_id: str) -> Debt | None:
    return next((item for item in items if item.debt_id == debt_id), None)


def unresolved(items: Items) -> Items:
    """Open, or being worked on."""
    return tuple(item for item in items if item.status in {DebtStatus.open, DebtStatus.in_progress})


def ranked(items: Items) -> Items:
    """What is unresolved, in the order in which it should be resolved: by severity, then priority, then age."""
    severe, pressing = list(Severity).index, list(Priority).index
    wanted = unresolved(items)
    return tuple(sorted(wanted, key=lambda item: (severe(item.severity), pressing(item.priority), item.detection_date)))


def recommended(items: Items, capacity: int) -> Items:
    """What a sprint could resolve: by rank, as long as its effort fits into the capacity of the team."""
    chosen: list[Debt] = []
    for item in ranked(items):
        points = POINTS[item.estimated_effort or Effort.medium]
        if points <= capacity:
            chosen.append(item)
            capacity -= points
    return tuple(chosen)


def resolved_by(items: Items, names: Iterable[str], task: TaskId, sprint: int) -> tuple[DebtMoved, ...]:
    """The debt that a completed task resolves; unknown and resolved items stay as they are."""
    open_ = {item.debt_id for item in items if item.status is not DebtStatus.resolved}
    return tuple(
        DebtMoved(debt_id=name, status=DebtStatus.resolved, sprint=sprint, task=task)
        for name in dict.fromkeys(names)
        if name in open_
    )


def without_tasks(items: Items, tasks: Collection[TaskId]) -> NewestFirst[Debt]:
    """Debt that was resolved by tasks which a rollback undid is open again."""
    return NewestFirst(_moved(item, DebtStatus.open) if item.resolved_by in tasks else item for item in items)


def overdue(items: Items, rule: DebtRule | None, sprint: int) -> Items:
    """The debt that the user is asked about before another sprint begins; none without a rule."""
    if rule is None:
        return ()
    severities = list(Severity)
    severe = severities[: severities.index(rule.severity) + 1]
    return tuple(item for item in ranked(items) if item.severity in severe and sprint - item.sprint > rule.sprints)


def resolved_in(items: Items, sprint: int) -> Items:
    """For the history of a sprint."""
    return tuple(item for item in items if item.resolved_in == sprint)


def report(items: Items) -> Report:
    return Report(
        total=len(items),
        by_severity={severity: sum(item.severity is severity for item in items) for severity in Severity},
        by_category={category: sum(item.category is category for item in items) for category in DebtCategory},
        open_items=tuple(item for item in items if item.status is DebtStatus.open),
        in_progress_items=tuple(item for item in items if item.status is DebtStatus.in_progress),
    )


def line(items: Items) -> str:
    """The report in one line; empty if there never was any debt."""
    made = report(items)
    by_word = (made.by_severity, made.by_category)
    counts = "; ".join(", ".join(f"{count} {word}" for word, count in by.items() if count) for by in by_word)
    states = f"{len(made.open_items)} open, {len(made.in_progress_items)} in progress"
    return f"{made.total} in all ({counts}), {states}" if items else ""


def evolve(items: NewestFirst[Debt], event: DebtEvent, _: float = 0) -> NewestFirst[Debt]:
    match event:
        case DebtIdentified(item):
            return items.extended((item,))
        case DebtMoved(debt_id=name, status=status, sprint=sprint, task=task):
            return NewestFirst(_moved(item, status, sprint, task) if item.debt_id == name else item for item in items)


def _moved(item: Debt, status: DebtStatus, sprint: int | None = None, task: TaskId | None = None) -> Debt:
    in_, by = (sprint, task) if status is DebtStatus.resolved else (None, None)
    return replace(item, status=status, resolved_in=in_, resolved_by=by)


def _in_fixed_terms(found: TechDebt, *, task: TaskId, sprint: int, at: float) -> Debt:
    return Debt(
        description=found.description.strip(),
        category=_term(found.category, DebtCategory) or DebtCategory.code,
        source_task_id=task,
        severity=_term(found.severity, Severity) or Severity.medium,
        detection_date=at,
        owner=found.owner or None,
        resolution_plan=found.resolution_plan or None,
        estimated_effort=_term(found.estimated_effort, Effort),
        priority=_term(found.priority, Priority) or Priority.medium,
        related_files=found.related_files,
        sprint=sprint,
    )


def _term(text: str, terms: type[Term]) -> Term | None:
    """One of the fixed terms, or None for any other text."""
    return next((term for term in terms if term.value == text.strip().lower()), None)
