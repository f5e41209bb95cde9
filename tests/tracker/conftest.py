"""What the tests of the tracker share: a tracker to which things happen one after another."""

from collections.abc import Sequence

import pytest

from iterdev.tracker import queue_rules, rules
from iterdev.tracker.events import TrackerEntry, TrackerEvent
from iterdev.tracker.issues import Description, Issue
from iterdev.tracker.queues import Failure, Items, Queue
from iterdev.tracker.solutions import FileChange, Solution, SolutionTask
from iterdev.tracker.state import Tracker, evolve

BEGIN = 1_772_942_400.0
"""2026-03-08, 12:00:00 in UTC+8."""


def solution(name: str, *files: str, after: Sequence[str] = (), tasks: int = 1) -> Solution:
    """A solution whose first task touches the files."""
    first = SolutionTask(id="T1", title="Do it", files=tuple(FileChange(path=path) for path in files))
    more = (SolutionTask(id=f"T{number}", title="More") for number in range(2, tasks + 1))
    return Solution(id=name, approach="as usual", tasks=(first, *more), dependencies=tuple(after))


class Story:
    """The tracker, and what a person does to it."""

    def __init__(self) -> None:
        self.tracker, self.at = Tracker(), BEGIN

    def happened(self, *events: TrackerEvent) -> None:
        self.at += 1
        entries = (TrackerEntry(seq, self.at, event) for seq, event in enumerate(events, self.tracker.seq + 1))
        self.tracker = evolve(self.tracker, list(entries))

    def issue(self, name: str, priority: int = 3) -> Issue:
        described = Description(title=f"Title of {name}", priority=priority)
        self.happened(*rules.created(self.tracker, described, self.at, name=name))
        return self.tracker.issues[name]

    def planned(self, name: str, *files: str, priority: int = 3, after: Sequence[str] = (), tasks: int = 1) -> None:
        """An issue with a bound solution."""
        self.issue(name, priority)
        plan = solution(f"SOL-{name}-1", *files, after=after, tasks=tasks)
        self.happened(*rules.solved_and_bound(self.tracker, name, plan, self.at))

    def queued(self, *names: str) -> None:
        self.happened(*queue_rules.added(self.tracker, names, self.at))

    def formed(self, *names: str) -> None:
        self.happened(*queue_rules.formed_from(self.tracker, names, self.at))

    def started(self, item: str) -> None:
        self.happened(*queue_rules.started(self.tracker, queue_rules.find_item(self.tracker, item)))

    def done(self, item: str) -> None:
        self.happened(*queue_rules.completed(self.tracker, queue_rules.find_item(self.tracker, item), {}))

    def failed(self, item: str, why: str = "it broke") -> None:
        found = queue_rules.find_item(self.tracker, item)
        self.happened(*queue_rules.failed(self.tracker, found, Failure(message=why), self.at))

    @property
    def queue(self) -> Queue:
        """The only active queue."""
        return self.tracker.queues[self.tracker.active[0]]

    @property
    def items(self) -> Items:
        return self.tracker.items[self.queue.id]

    def status(self, name: str) -> str:
        return self.tracker.issues[name].status.value


@pytest.fixture
def story() -> Story:
    return Story()
