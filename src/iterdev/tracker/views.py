"""What surfaces show of the tracker: a list of issues, one issue, a queue."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from iterdev.tracker.issues import Issue, IssueStatus
from iterdev.tracker.queues import Items, Queue
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker


class IssueList(Struct, frozen=True):
    issues: tuple[Issue, ...]
    counts: Mapping[IssueStatus, int]
    """Of all issues of the tracker, by their status."""


class IssueView(Struct, frozen=True):
    issue: Issue
    solutions: tuple[Solution, ...]

    @property
    def bound(self) -> Solution | None:
        return next((one for one in self.solutions if one.id == self.issue.bound_solution_id), None)


class QueueView(Struct, frozen=True):
    queue: Queue
    items: Items


def issue_list(tracker: Tracker, statuses: Sequence[IssueStatus] = ()) -> IssueList:
    """Issues in the order in which they came: those of the statuses, or else those that are not completed."""
    chosen = set(statuses or (status for status in IssueStatus if status is not IssueStatus.completed))
    counts = Counter(issue.status for issue in tracker.issues.values())
    shown = tuple(issue for issue in tracker.issues.values() if issue.status in chosen)
    return IssueList(shown, {status: counts[status] for status in IssueStatus})


def history(tracker: Tracker) -> tuple[Issue, ...]:
    """The completed issues, the one that was completed last at the end."""
    completed = (issue for issue in tracker.issues.values() if issue.is_over)
    return tuple(sorted(completed, key=lambda issue: issue.completed_at or 0))


def issue_view(tracker: Tracker, issue: Issue) -> IssueView:
    return IssueView(issue, tuple(tracker.solutions.get(issue.id, {}).values()))


def queue_view(tracker: Tracker, queue: Queue) -> QueueView:
    return QueueView(queue, tracker.items.get(queue.id, {}))
