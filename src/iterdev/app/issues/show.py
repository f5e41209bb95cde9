"""Reads the tracker: issues, solutions, the history, and queues. Nothing is changed."""

from collections.abc import Sequence

from iterdev.core.errors import UserError
from iterdev.engine.issue_tracker import read_tracker
from iterdev.engine.repository import Repository
from iterdev.tracker import documents
from iterdev.tracker.documents import Document
from iterdev.tracker.issues import Issue, IssueStatus, read_status
from iterdev.tracker.queues import Queue
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker, active_queues, known_issue, known_queue, known_solution


def read_statuses(text: str) -> tuple[IssueStatus, ...]:
    """Statuses with commas between them."""
    return tuple(dict.fromkeys(read_status(word) for word in text.split(",") if word.strip()))


def issue_list(repository: Repository, statuses: str = "", *, is_brief: bool = False) -> Document:
    return documents.issue_list(read_tracker(repository), read_statuses(statuses), is_brief=is_brief)


def issue_tasks(repository: Repository, name: str) -> Document:
    tracker = read_tracker(repository)
    return documents.issue_with_tasks(tracker, known_issue(tracker, name))


def issue_status(repository: Repository, name: str) -> Document:
    tracker = read_tracker(repository)
    return documents.issue_with_solutions(tracker, known_issue(tracker, name))


def history(repository: Repository, *, is_brief: bool = False) -> list[Document]:
    """The completed issues, the one that was completed last at the end."""
    form = documents.brief_history if is_brief else documents.issue_document
    return [form(issue) for issue in documents.history(read_tracker(repository))]


def solutions(repository: Repository, name: str, solution: str = "", *, is_brief: bool = False) -> list[Document]:
    """The solutions of one issue, or one of them."""
    tracker = read_tracker(repository)
    issue = known_issue(tracker, name)
    found = [known_solution(tracker, issue, solution)] if solution else tracker.solutions.get(name, {}).values()
    return [_solution(issue, one, is_brief=is_brief) for one in found]


def bound_solutions(
    repository: Repository, names: Sequence[str] = (), statuses: str = "", *, is_brief: bool = False
) -> list[Document]:
    """The bound solutions of all issues, of those named, or of those with one of the statuses."""
    tracker = read_tracker(repository)
    chosen = [known_issue(tracker, name) for name in names] or list(tracker.issues.values())
    wanted = set(read_statuses(statuses)) or set(IssueStatus)
    found = ((issue, tracker.bound_solution(issue)) for issue in chosen if issue.status in wanted)
    return [_solution(issue, one, is_brief=is_brief) for issue, one in found if one]


def queue(repository: Repository, name: str = "", *, is_brief: bool = False) -> Document | None:
    """A queue, or the active one; None if no queue is active."""
    tracker = read_tracker(repository)
    found = _queue(tracker, name)
    form = documents.brief_queue if is_brief else documents.queue_document
    return form(found, tracker.items[found.id]) if found else None


def queue_list(repository: Repository) -> Document:
    return documents.queue_index(read_tracker(repository))


def dependency_graph(repository: Repository, name: str = "") -> Document:
    tracker = read_tracker(repository)
    if found := _queue(tracker, name):
        return documents.dependency_graph(found, tracker.items[found.id])
    raise UserError("No queue is active", hint="iterdev issue queue add ISSUE")


def _queue(tracker: Tracker, name: str) -> Queue | None:
    return known_queue(tracker, name) if name else next(iter(active_queues(tracker)), None)


def _solution(issue: Issue, solution: Solution, *, is_brief: bool) -> Document:
    if is_brief:
        return documents.brief_solution(issue, solution)
    document = documents.solution_document(solution, is_bound=solution.id == issue.bound_solution_id)
    return {"issue_id": issue.id, **document}
