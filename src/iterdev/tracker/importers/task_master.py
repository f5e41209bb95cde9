"""Tasks of task-master: `tasks.json`, with one list of tasks, or one list for each of its tags."""

from collections.abc import Iterator, Mapping

from iterdev.tracker.importers.contract import Import, Losses, sections
from iterdev.tracker.issues import DEFAULT_PRIORITY, Description, Issue, IssueStatus, checked_id
from iterdev.tracker.reading import Document, as_object
from iterdev.tracker.solutions import Solution, SolutionTask

TOOL = "task-master"
DEFAULT_TAG = "master"
STATUSES = {"done": IssueStatus.completed, "completed": IssueStatus.completed, "deferred": IssueStatus.paused}
PRIORITIES = {"critical": 5, "high": 4, "medium": 3, "low": 2}


def is_task_master(document: object) -> bool:
    return isinstance(document, dict) and any(True for _ in _lists(document))


def read(document: Document, at: float) -> Import:
    losses, issues, solutions = Losses(), dict[str, Issue](), dict[str, Solution]()
    for tag, tasks in _lists(document):
        for fields in tasks:
            status = str(fields.get("status") or "")
            if status == "cancelled":
                losses.count("cancelled, and left out")
                continue
            if status in {"in-progress", "review"}:
                losses.count("in progress there, registered here, because nobody works on it yet")
            issue = _issue(tag, fields, at)
            issues[issue.id] = issue
            if plan := _solution(tag, issue, fields, at):
                solutions[issue.id] = plan
    if solutions:
        losses.say("subtasks became solutions, which are not bound: look at them, then use `iterdev issue bind`")
    return Import(tool=TOOL, issues=tuple(issues.values()), solutions=solutions, notes=losses.notes("task"))


def _lists(document: Mapping[str, object]) -> Iterator[tuple[str, list[Document]]]:
    """Each list of tasks with its tag."""
    if isinstance(document.get("tasks"), list):
        yield DEFAULT_TAG, _objects(document["tasks"])
        return
    for tag, part in document.items():
        if isinstance(part, dict) and isinstance(part.get("tasks"), list):
            yield tag, _objects(part["tasks"])


def _name(tag: str, number: object) -> str:
    return checked_id(f"TM-{number}" if tag == DEFAULT_TAG else f"TM-{tag}-{number}")


def _issue(tag: str, fields: Document, at: float) -> Issue:
    after = _after(tag, fields)
    status = STATUSES.get(str(fields.get("status") or ""), IssueStatus.registered)
    return Issue(
        id=_name(tag, fields.get("id")),
        description=Description(
            title=str(fields.get("title") or fields.get("id")),
            context=sections(
                ("", fields.get("description")),
                ("Details", fields.get("details")),
                ("How to test it", fields.get("testStrategy")),
                ("Depends on", ", ".join(after)),
            ),
            priority=PRIORITIES.get(str(fields.get("priority") or ""), DEFAULT_PRIORITY),
            tags=() if tag == DEFAULT_TAG else (tag,),
            source=TOOL,
            extra={"depends_on": after} if after else {},
        ),
        status=status,
        created_at=at,
        updated_at=at,
        completed_at=at if status is IssueStatus.completed else None,
    )


def _solution(tag: str, issue: Issue, fields: Document, at: float) -> Solution | None:
    """The subtasks as a plan."""
    subtasks = _objects(fields.get("subtasks"))
    if not subtasks:
        return None
    tasks = tuple(
        SolutionTask(
            id=f"T{one.get('id')}",
            title=str(one.get("title") or one.get("id")),
            description=sections(("", one.get("description")), ("Details", one.get("details"))),
            depends_on=tuple(f"T{number}" for number in _values(one.get("dependencies"))),
            details={"status": str(one["status"])} if one.get("status") else {},
        )
        for one in subtasks
    )
    approach = str(fields.get("details") or fields.get("description") or "")
    name = f"SOL-{issue.id}-1"
    return Solution(id=name, approach=approach, tasks=tasks, dependencies=tuple(_after(tag, fields)), created_at=at)


def _after(tag: str, fields: Document) -> list[str]:
    return [_name(tag, number) for number in _values(fields.get("dependencies"))]


def _values(value: object) -> list[object]:
    return [one for one in value if isinstance(one, int | str)] if isinstance(value, list) else []


def _objects(value: object) -> list[Document]:
    return [as_object(one, "{}") for one in value if isinstance(one, dict)] if isinstance(value, list) else []
