"""How the issue tracker grows with the number of issues."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from iterdev.core.task_description import Scope
from iterdev.store.issue_folder import IssueFolder
from iterdev.store.journal import NAME, Journal
from iterdev.store.tracker_log import TrackerLog
from iterdev.teams.issues.pipelines import first_tasks
from iterdev.teams.issues.roles import Pipeline
from iterdev.tracker import documents, queue_rules, rules, views
from iterdev.tracker.events import TrackerEvent
from iterdev.tracker.issues import Description
from iterdev.tracker.ordering import ordered
from iterdev.tracker.solutions import FileChange, Solution, SolutionTask
from iterdev.tracker.state import Tracker
from measure import Aim, Effort, Section, ms, timed

BEGIN = 1_772_942_400.0
SHARING = 4
"""Issues that touch the same file."""
LINEAR = 2.0
SCOPE = Scope(requirement="--all-pending", folder="session")
Work: TypeAlias = tuple[Callable[[Path], object], Mapping[int, Path]]
"""What is done, and with which trackers, by their number of issues."""
MEASURED = """\
A tracker whose issues have a bound solution of three tasks each; always four touch the same file. To list is to \
open the journal, fold the tracker, compare its folder, and write every issue as JSON, as `iterdev issue list --json` \
does. The graph is that of `iterdev issue queue dag`, for a queue with all issues. To queue is to order all of them by \
dependencies and common files, and to form a queue with groups. To plan is to open a tracker whose issues are all \
pending and to make the tasks with which `iterdev resolve --all-pending` begins a batch, with their waves."""
WHY = """\
of a list, half is to decode the events and to fold them, a third to compare the files of the folder, the rest to \
write the issues; of a queue, two fifths are to read the paths of all solutions and to order them"""
MOST_PLANNED = 500
"""Issues of one batch that are planned."""


def measure(effort: Effort, root: Path) -> Section:
    made = {size: _made(root / f"issues-{size}", size) for size in effort.issues}
    pending = {size: _pending(root / f"pending-{size}", size) for size in effort.issues if size <= MOST_PLANNED}
    works: Mapping[str, Work] = {
        "listing": (_list, made),
        "the graph": (_graph, made),
        "queueing": (_order, made),
        "planning": (_plan, pending),
    }
    contestants = {
        f"{name} {size}": lambda work=work, path=path: timed(lambda: work(path))
        for name, (work, paths) in works.items()
        for size, path in paths.items()
    }
    taken = effort.stopwatch.medians(effort.repetitions, contestants)
    rows = tuple(
        (f"{size:,}", *(cell for name in works for cell in _cells(taken.get(f"{name} {size}"), size))) for size in made
    )
    return Section(
        title="Issues",
        measured=MEASURED,
        repetitions=f"{effort.repetitions}, the median",
        header=("issues", *(word for name in works for word in (name, "per issue"))),
        rows=rows,
        aims=tuple(_aim(name, {size: taken[f"{name} {size}"] for size in paths}) for name, (_, paths) in works.items()),
    )


def _cells(seconds: float | None, size: int) -> tuple[str, str]:
    return ("-", "-") if seconds is None else (ms(seconds), f"{seconds / size * 1e6:.1f} µs")


def _aim(name: str, seconds: Mapping[int, float]) -> Aim:
    first, last = min(seconds), max(seconds)
    return Aim(
        claim=f"{name} grows linearly: an issue among {last:,} costs at most {LINEAR:g} times what one "
        f"among {first:,} costs",
        value=(seconds[last] / last) / (seconds[first] / first),
        limit=LINEAR,
        unit="times",
        why=WHY,
    )


def _made(path: Path, size: int) -> Path:
    """A tracker whose issues all have a solution, in one queue."""
    with _filled(path, size, _planned) as log:
        names = list(log.tracker.issues)
        log.transact(lambda tracker, at: queue_rules.added(tracker, names, at))
    return path


def _pending(path: Path, size: int) -> Path:
    """A tracker whose issues nobody has begun to work on."""
    with _filled(path, size, _created):
        return path


@contextmanager
def _filled(
    path: Path, size: int, issue: Callable[[Tracker, int, float], Sequence[TrackerEvent]]
) -> Iterator[TrackerLog]:
    path.mkdir()
    with closing(Journal(path / NAME)) as journal:
        log = TrackerLog(journal, now=lambda: BEGIN)
        for number in range(size):
            log.transact(lambda tracker, at, number=number: issue(tracker, number, at))
        yield log
        folder = IssueFolder(path / "issues", journal)
        with folder.held():
            folder.write(log.tracker)


def _created(tracker: Tracker, number: int, at: float) -> Sequence[TrackerEvent]:
    return rules.created(tracker, Description(title="A title", context="x" * 500), at, name=f"GH-{number + 1}")


def _planned(tracker: Tracker, number: int, at: float) -> Sequence[TrackerEvent]:
    name = f"GH-{number + 1}"
    files = (FileChange(path=f"src/file_{number // SHARING}.py"), FileChange(path=f"src/own_{number}.py"))
    tasks = tuple(SolutionTask(id=f"T{one}", title="Do it", files=files) for one in (1, 2, 3))
    plan = Solution(id=f"SOL-{name}-1", approach="as usual", tasks=tasks, created_at=at)
    return (*_created(tracker, number, at), rules.SolutionAdded(name, plan), rules.SolutionBound(name, plan.id))


def _opened(path: Path) -> tuple[Journal, Tracker]:
    journal = Journal(path / NAME)
    return journal, IssueFolder(path / "issues", journal).seen(TrackerLog(journal, now=lambda: BEGIN).tracker, BEGIN)


def _list(path: Path) -> None:
    journal, tracker = _opened(path)
    msgspec.json.encode(documents.issue_list(views.issue_list(tracker)))
    journal.close()


def _graph(path: Path) -> None:
    journal, tracker = _opened(path)
    (queue,) = tracker.queues.values()
    msgspec.json.encode(documents.dependency_graph(views.queue_view(tracker, queue)))
    journal.close()


def _order(path: Path) -> None:
    journal, tracker = _opened(path)
    queue_rules.formed(tracker, ordered(queue_rules.candidates(tracker, list(tracker.issues))), BEGIN)
    journal.close()


def _plan(path: Path) -> None:
    journal, tracker = _opened(path)
    names = [issue.id for issue in rules.waiting(tracker)]
    first_tasks(Pipeline.batch, names, "auto", SCOPE)
    journal.close()
