"""The tracker as JSON documents: what `--json` prints, and the lines and files of `.workflow/issues/`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from iterdev.core.ids import moment
from iterdev.tracker import queues
from iterdev.tracker.issues import Feedback, Issue
from iterdev.tracker.ordering import without_common_files
from iterdev.tracker.queue_rules import Selection
from iterdev.tracker.queues import (
    Conflict,
    Failure,
    Group,
    GroupType,
    Items,
    ItemStatus,
    Queue,
    QueueItem,
    QueueStatus,
)
from iterdev.tracker.solutions import Solution, SolutionTask, files_touched
from iterdev.tracker.state import Tracker, active_queues
from iterdev.tracker.views import IssueList, IssueView, QueueView

Document = dict[str, object]
VERSION = "2.1"
"""The version of the form of queue files."""
MINUTES = 30
"""The time that a task of a solution is expected to take if its plan does not say."""


def issue_document(issue: Issue) -> Document:
    said = issue.description
    return {
        "id": issue.id,
        "title": said.title,
        "status": issue.status,
        "priority": said.priority,
        "context": said.context,
        "source": said.source,
        **_given(source_url=said.source_url),
        "tags": said.tags,
        **_given(
            expected_behavior=said.expected_behavior,
            actual_behavior=said.actual_behavior,
            affected_components=said.affected_components,
            comments=msgspec.to_builtins(said.comments),
        ),
        "feedback": [_feedback(one) for one in issue.feedback],
        "bound_solution_id": issue.bound_solution_id,
        "created_at": moment(issue.created_at),
        "updated_at": moment(issue.updated_at),
        **_times(planned_at=issue.planned_at, queued_at=issue.queued_at, completed_at=issue.completed_at),
        **said.extra,
    }


def brief_issue(issue: Issue) -> Document:
    said = issue.description
    return {
        "id": issue.id,
        "title": said.title,
        "status": issue.status,
        "priority": said.priority,
        "tags": said.tags,
        "bound_solution_id": issue.bound_solution_id,
    }


def brief_history(issue: Issue) -> Document:
    completed = moment(issue.completed_at) if issue.completed_at is not None else None
    return {"id": issue.id, "title": issue.description.title, "status": issue.status, "completed_at": completed}


def solution_document(solution: Solution, *, is_bound: bool) -> Document:
    return {
        "id": solution.id,
        "description": solution.description,
        "approach": solution.approach,
        "tasks": [task_document(task) for task in solution.tasks],
        **_given(estimated_files=solution.estimated_files, dependencies=solution.dependencies),
        **({} if solution.score is None else {"score": solution.score}),
        "is_bound": is_bound,
        "created_at": moment(solution.created_at),
        **_times(bound_at=solution.bound_at),
        **solution.extra,
    }


def brief_solution(issue: Issue, solution: Solution) -> Document:
    return {
        "solution_id": solution.id,
        "issue_id": issue.id,
        "is_bound": solution.id == issue.bound_solution_id,
        "task_count": len(solution.tasks),
        "files_touched": files_touched(solution),
        "description": solution.description or solution.approach,
    }


def task_document(task: SolutionTask) -> Document:
    files = [{"path": one.path, "action": one.action, **_given(**_details(one))} for one in task.files]
    description = {"description": task.description} if task.description else {}
    return {"id": task.id, "title": task.title, **description, "files": files, "depends_on": task.depends_on} | {
        **task.details
    }


def solution_documents(seen: IssueView) -> list[Document]:
    return [solution_document(one, is_bound=one.id == seen.issue.bound_solution_id) for one in seen.solutions]


def issue_with_solutions(seen: IssueView) -> Document:
    """What `issue status ID` says."""
    return {
        "issue": issue_document(seen.issue),
        "solutions": solution_documents(seen),
        "bound": solution_document(seen.bound, is_bound=True) if seen.bound else None,
    }


def issue_with_tasks(seen: IssueView) -> Document:
    """What `issue list ID` says."""
    bound = seen.bound
    return {
        "issue": issue_document(seen.issue),
        "solution": solution_document(bound, is_bound=True) if bound else None,
        "tasks": [task_document(task) for task in bound.tasks] if bound else [],
    }


def issue_list(found: IssueList, *, is_brief: bool = False) -> Document:
    """What `issue list` says; the summary counts every issue."""
    return {
        "issues": [brief_issue(issue) if is_brief else issue_document(issue) for issue in found.issues],
        "total": len(found.issues),
        "summary": {status.value: count for status, count in found.counts.items()},
    }


def queue_document(seen: QueueView) -> Document:
    queue, items = seen.queue, seen.items
    counts = Counter(item.status for item in items.values())
    updated = max((max(_moments(item)) for item in items.values()), default=queue.created_at)
    return {
        "id": queue.id,
        "status": queue.status,
        **({} if queue.priority is None else {"priority": queue.priority}),
        "issue_ids": issue_ids(items),
        "tasks": [],
        "solutions": [item_document(item) for item in items.values()],
        "conflicts": [_conflict(one, items) for one in queue.conflicts],
        "execution_groups": [_group(one) for one in queue.groups],
        "created_at": moment(queue.created_at),
        **_times(completed_at=queue.completed_at),
        "_metadata": {
            "version": VERSION,
            "total_tasks": len(items),
            **{f"{status.value}_count": counts[status] for status in ItemStatus},
            "updated_at": moment(max(updated, queue.completed_at or 0)),
        },
    }


def brief_queue(seen: QueueView) -> Document:
    queue, items = seen.queue, seen.items
    counts = Counter(item.status for item in items.values())
    keys = ("item_id", "issue_id", "solution_id", "status", "task_count")
    shown = map(item_document, items.values())
    return {
        "id": queue.id,
        "issue_ids": issue_ids(items),
        "total": len(items),
        **{status.value: counts[status] for status in ItemStatus},
        "items": [{key: item[key] for key in keys} for item in shown],
    }


def item_document(item: QueueItem) -> Document:
    place = item.place
    return {
        "item_id": item.item_id,
        "issue_id": item.issue_id,
        "solution_id": item.solution_id,
        "status": item.status,
        "execution_order": place.order,
        "execution_group": place.group,
        "depends_on": place.depends_on,
        "semantic_priority": place.semantic_priority,
        "task_count": place.task_count,
        "files_touched": place.files_touched,
        "queued_at": moment(item.queued_at),
        **_times(started_at=item.started_at, completed_at=item.completed_at),
        **_given(result=item.result),
        **({"failure_reason": item.failure.message, "failure_details": _failure(item.failure)} if item.failure else {}),
        **_given(failure_history=[_failure(one) for one in item.failure_history]),
    }


def queue_index(tracker: Tracker) -> Document:
    """The list of queues, the newest first."""
    active = [queue.id for queue in active_queues(tracker)]
    newest = sorted(tracker.queues.values(), key=lambda one: (one.created_at, one.id), reverse=True)
    return {
        "active_queue_id": active[0] if active else None,
        "active_queue_ids": active,
        "queues": [_index_entry(queue, tracker.items.get(queue.id, {})) for queue in newest],
    }


def dependency_graph(seen: QueueView) -> Document:
    """What `issue queue dag` says: what is ready, what waits for what, and what can be done at the same time."""
    queue, items = seen.queue, seen.items
    blocked = {name: queues.blocked_by(items, item) for name, item in items.items()}
    ready = {name for name, item in items.items() if item.status is ItemStatus.pending and not blocked[name]}
    startable = {name: item for name, item in items.items() if name in ready or item.status is ItemStatus.executing}
    groups: dict[str, list[str]] = {}
    for name, item in startable.items():
        groups.setdefault(item.place.group, []).append(name)
    batches = list(_batches(queue, startable))
    return {
        "queue_id": queue.id,
        "total": len(items),
        "ready_count": len(startable),
        "completed_count": sum(item.status is ItemStatus.completed for item in items.values()),
        "nodes": [_node(item, is_ready=name in ready, waits_for=blocked[name]) for name, item in items.items()],
        "edges": [{"from": before, "to": name} for name, item in items.items() for before in item.place.depends_on],
        "groups": [{"id": name, "solutions": members} for name, members in groups.items()],
        "parallel_batches": batches,
        "_summary": {"can_parallel": len(batches[0]) if batches else 0, "batches_needed": len(batches)},
    }


def selection_document(tracker: Tracker, selection: Selection, *, resumed: bool) -> Document:
    """What `issue next` hands out: the item with its whole solution."""
    item, items = selection.item, tracker.items[selection.queue_id]
    solution = tracker.solutions.get(item.issue_id, {}).get(item.solution_id)
    tasks = solution.tasks if solution else ()
    counts = Counter(one.status for one in items.values())
    done, total = counts[ItemStatus.completed], len(items)
    since = f"it was started at {moment(item.started_at)}" if item.started_at is not None else ""
    return {
        "queue_id": selection.queue_id,
        "item_id": item.item_id,
        "issue_id": item.issue_id,
        "solution_id": item.solution_id,
        "status": item.status,
        "solution": {
            "id": item.solution_id,
            "approach": solution.approach if solution else "",
            "tasks": [task_document(task) for task in tasks],
            "exploration_context": solution.extra.get("exploration_context", {}) if solution else {},
        },
        "resumed": resumed,
        **({"resume_note": since} if resumed and since else {}),
        "execution_hints": {"task_count": len(tasks), "estimated_minutes": sum(map(_minutes, tasks)) or MINUTES},
        "queue_progress": {
            "completed": done,
            "remaining": counts[ItemStatus.pending] + counts[ItemStatus.executing],
            "total": total,
            "progress": f"{done}/{total}",
        },
    }


def issue_ids(items: Items) -> list[str]:
    return list(dict.fromkeys(item.issue_id for item in items.values()))


def _batches(queue: Queue, startable: Items) -> Iterable[list[str]]:
    """From the queue's groups, and for items in none of them by their files."""
    grouped = {name for group in queue.groups for name in group.items}
    for group in queue.groups:
        members = [name for name in group.items if name in startable]
        if group.type is GroupType.sequential:
            yield from ([name] for name in members)
        elif members:
            yield members
    left = {name: item.place.files_touched for name, item in startable.items() if name not in grouped}
    yield from without_common_files(left)


def _node(item: QueueItem, *, is_ready: bool, waits_for: Sequence[str]) -> Document:
    return {
        "id": item.item_id,
        "issue_id": item.issue_id,
        "solution_id": item.solution_id,
        "status": item.status,
        "priority": item.place.semantic_priority,
        "depends_on": item.place.depends_on,
        "task_count": item.place.task_count,
        "files_touched": item.place.files_touched,
        "ready": is_ready,
        "blocked_by": waits_for,
    }


def _index_entry(queue: Queue, items: Items) -> Document:
    return {
        "id": queue.id,
        "status": queue.status,
        **({} if queue.priority is None else {"priority": queue.priority}),
        "issue_ids": issue_ids(items),
        "total_solutions": len(items),
        "completed_solutions": sum(item.status is ItemStatus.completed for item in items.values()),
        "created_at": moment(queue.created_at),
        **(_times(completed_at=queue.completed_at) if queue.status is QueueStatus.completed else {}),
    }


def _conflict(conflict: Conflict, items: Items) -> Document:
    solutions = {item.issue_id: item.solution_id for item in items.values()}
    names = [solutions[name] for name in conflict.issues if name in solutions]
    return {
        "type": "file_conflict",
        "file": conflict.files[0] if conflict.files else "",
        "files": conflict.files,
        "issues": conflict.issues,
        "solutions": names,
        "resolution": conflict.resolution,
        "resolution_order": names,
        "rationale": conflict.rationale,
        "resolved": conflict.resolved,
    }


def _group(group: Group) -> Document:
    return {"id": group.id, "type": group.type, "solution_count": len(group.items), "solutions": group.items}


def _feedback(one: Feedback) -> Document:
    return {"type": one.type, "stage": one.stage, "content": one.content, "created_at": moment(one.created_at)}


def _failure(failure: Failure) -> Document:
    given = _given(task_id=failure.task_id, stack_trace=failure.stack_trace)
    return {
        "error_type": failure.error_type,
        "message": failure.message,
        "timestamp": moment(failure.timestamp),
        **given,
    }


def _moments(item: QueueItem) -> tuple[float, float, float]:
    return item.queued_at, item.started_at or 0, item.completed_at or 0


def _minutes(task: SolutionTask) -> int:
    match task.details.get("estimated_minutes"):
        case int(minutes):
            return minutes
        case _:
            return MINUTES


def _details(change: msgspec.Struct) -> Mapping[str, object]:
    return {key: value for key, value in msgspec.structs.asdict(change).items() if key not in {"path", "action"}}


def _given(**fields: object) -> Document:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value}


def _times(**fields: float | None) -> Document:
    return {name: moment(value) for name, value in fields.items() if value is not None}
