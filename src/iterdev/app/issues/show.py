"""Reads the tracker: issues, solutions, the history, and queues. Nothing is changed."""

from collections.abc import Sequence

from iterdev.core.errors import UserError
from iterdev.engine.issue_tracker import read_tracker
from iterdev.engine.repository import Repository
from iterdev.tracker import documents, views
from iterdev.tracker.documents import Document
from iterdev.tracker.issues import Issue, IssueStatus, read_status
from iterdev.tracker.queues import Queue, QueueItem  # noqa: F401 - for the surfaces
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker, active_queues, known_issue, known_queue, known_solution
from iterdev.tracker.views import IssueList, IssueView, QueueView

issue_document, brief_history = documents.issue_document, documents.brief_history
issue_list_document, issue_status_document, issue_tasks_document = (
    documents.issue_list,
    documents.issue_with_solutions,
    documents.issue_with_tasks,
)
queue_document, brief_queue = documents.queue_document, documents.brief_queue
"""What `--json` and `--brief` print."""


def read_statuses(text: str) -> tuple[IssueStatus, ...]:
    """Statuses with commas between them."""
    return tuple(dict.fromkeys(read_status(word) for word in text.split(",") if word.strip()))


def issue_list(repository: Repository, statuses: str = "") -> IssueList:
    return views.issue_list(read_tracker(repository), read_statuses(statuses))


def issue_view(repository: Repository, name: str) -> IssueView:
    tracker = read_tracker(repository)
    return views.issue_view(tracker, known_issue(tracker, name))


def history(repository: Repository) -> tuple[Issue, ...]:
    """The completed issues, the one that was completed last at the end."""
    return views.history(read_tracker(repository))


def solutions(repository: Repository, name: str, solution: str = "") -> list[tuple[Issue, Solution]]:
    """The solutions of one issue, or one of them."""
    tracker = read_tracker(repository)
    issue = known_issue(tracker, name)
    found = [known_solution(tracker, issue, solution)] if solution else tracker.solutions.get(name, {}).values()
    return [(issue, one) for one in found]


def bound_solutions(
    repository: Repository, names: Sequence[str] = (), statuses: str = ""
) -> list[tuple[Issue, Solution]]:
    """The bound solutions of all issues, of those named, or of those with one of the statuses."""
    tracker = read_tracker(repository)
    chosen = [known_issue(tracker, name) for name in names] or list(tracker.issues.values())
    wanted = set(read_statuses(statuses)) or set(IssueStatus)
    found = ((issue, tracker.bound_solution(issue)) for issue in chosen if issue.status in wanted)
    return [(issue, one) for issue, one in found if one]


def solution_document(issue: Issue, solution: Solution, *, is_brief: bool = False) -> Document:
    if is_brief:
        return documents.brief_solution(issue, solution)
    document = documents.solution_document(solution, is_bound=solution.id == issue.bound_solution_id)
    return {"issue_id": issue.id, **document}


def queue(repository: Repository, name: str = "") -> QueueView | None:
    """A queue, or the active one; None if no queue is active."""
    tracker = read_tracker(repository)
    found = _queue(tracker, name)
    return views.queue_view(tracker, found) if found else None


def queue_list(repository: Repository) -> tuple[list[QueueView], tuple[str, ...]]:
    """All queues, the newest first, and the ids of those that are worked on."""
    tracker = read_tracker(repository)
    newest = sorted(tracker.queues.values(), key=lambda one: (one.created_at, one.id), reverse=True)
    return [views.queue_view(tracker, one) for one in newest], tuple(one.id for one in active_queues(tracker))


def queue_list_document(repository: Repository) -> Document:
    return documents.queue_index(read_tracker(repository))


def dependency_graph(repository: Repository, name: str = "") -> Document:
    tracker = read_tracker(repository)
    if found := _queue(tracker, name):
        return documents.dependency_graph(views.queue_view(tracker, found))
    raise UserError("No queue is active", hint="iterdev issue queue add ISSUE")


def _queue(tracker: Tracker, name: str) -> Queue | None:
    return known_queue(tracker, name) if name else next(iter(active_queues(tracker)), None)
