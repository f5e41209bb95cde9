"""What a change of issues and solutions means: functions from the tracker and a time to events."""

from collections.abc import Sequence

from msgspec.structs import replace

from iterdev.core.errors import UserError
from iterdev.tracker import issues, solutions
from iterdev.tracker.events import (
    FeedbackAdded,
    IssueCreated,
    IssueDescribed,
    SolutionAdded,
    SolutionBound,
    StatusChanged,
    TrackerEvent,
)
from iterdev.tracker.issues import Description, Feedback, Issue, IssueStatus
from iterdev.tracker.queues import OPEN
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker, known_issue, known_queue, known_solution

WAITING = frozenset({IssueStatus.registered})
"""The statuses of issues that nobody has begun to work on."""


def created(
    tracker: Tracker,
    description: Description,
    at: float,
    *,
    name: str = "",
    status: IssueStatus = IssueStatus.registered,
    replaces: bool = False,
) -> tuple[IssueCreated]:
    """A new issue; without a name it gets an id of its own."""
    if name and name in tracker.issues and not replaces:
        raise UserError(f'There is an issue "{name}" already', hint=f"iterdev issue status {name}")
    identifier = issues.checked_id(name) if name else issues.new_id(at, tracker.issues)
    issues.checked_priority(description.priority)
    completed = at if status is IssueStatus.completed else None
    new = Issue(
        id=identifier, description=description, status=status, created_at=at, updated_at=at, completed_at=completed
    )
    return (IssueCreated(new),)


def described(tracker: Tracker, name: str, description: Description) -> Sequence[IssueDescribed]:
    """The issue as it is described now; nothing if that is what is known."""
    issues.checked_priority(description.priority)
    same = known_issue(tracker, name).description == description
    return () if same else (IssueDescribed(name, description),)


def moved(tracker: Tracker, name: str, status: IssueStatus) -> Sequence[StatusChanged]:
    return () if known_issue(tracker, name).status is status else (StatusChanged(name, status),)


def commented(tracker: Tracker, name: str, feedback: Feedback, at: float) -> tuple[FeedbackAdded]:
    known_issue(tracker, name)
    return (FeedbackAdded(name, replace(feedback, created_at=at)),)


def solved(tracker: Tracker, name: str, solution: Solution, at: float) -> tuple[SolutionAdded]:
    """A further solution of an issue; without an id it gets one."""
    known_issue(tracker, name)
    known = tracker.solutions.get(name, {})
    if solution.id in known:
        raise UserError(f'"{name}" has a solution "{solution.id}" already', hint=f"iterdev issue solution {name}")
    identifier = issues.checked_id(solution.id) if solution.id else solutions.new_id(name, known)
    return (SolutionAdded(name, replace(solution, id=identifier, created_at=at, bound_at=None)),)


def bound(tracker: Tracker, name: str, solution: str) -> Sequence[TrackerEvent]:
    """The solution is bound instead of any other one, and the issue is planned; nothing if it is bound already."""
    issue = known_issue(tracker, name)
    known_solution(tracker, issue, solution)
    if issue.bound_solution_id == solution:
        return ()
    return (SolutionBound(name, solution), StatusChanged(name, IssueStatus.planned))


def solved_and_bound(tracker: Tracker, name: str, solution: Solution, at: float) -> Sequence[TrackerEvent]:
    (added,) = solved(tracker, name, solution, at)
    return (added, SolutionBound(name, added.solution.id), StatusChanged(name, IssueStatus.planned))


def waiting(tracker: Tracker) -> tuple[Issue, ...]:
    """The issues that `--all-pending` takes."""
    return tuple(issue for issue in tracker.issues.values() if issue.status in WAITING)


def synchronized(tracker: Tracker, queue: str) -> Sequence[StatusChanged]:
    """Every issue that waits in the queue is queued."""
    known_queue(tracker, queue)
    names = {item.issue_id for item in tracker.items[queue].values() if item.status in OPEN}
    stays = {IssueStatus.queued, IssueStatus.executing, IssueStatus.completed}
    changed = (issue for issue in tracker.issues.values() if issue.id in names and issue.status not in stays)
    return tuple(StatusChanged(issue.id, IssueStatus.queued) for issue in changed)


def planned_outside(tracker: Tracker, queue: str) -> tuple[str, ...]:
    """The issues with a bound solution that are not in the queue."""
    inside = {item.issue_id for item in tracker.items[queue].values()}
    planned = (issue for issue in tracker.issues.values() if issue.status is IssueStatus.planned)
    return tuple(issue.id for issue in planned if issue.bound_solution_id and issue.id not in inside)
