"""What is checked after everything: nothing lost, nothing landed twice, no two agents at one task."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

AFTER_FREEZE = 2.5
"""Seconds for which the agent of a host that was frozen may go on when it wakes: the grace, and two of its stamps."""


class AgentRun(Struct, frozen=True, kw_only=True):
    """One process of an agent, by its time stamps on the clock that all machines of the test share."""

    task: str
    host: str
    first: float
    last: float


class Overlap(Struct, frozen=True, kw_only=True):
    """An agent that was alive when the next one at its task had begun."""

    task: str
    host: str
    """Of the older one."""
    seconds: float


class Verdict(Struct, frozen=True, kw_only=True):
    tasks: int
    agents: int
    lost: tuple[str, ...] = ()
    landed_twice: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    left: tuple[str, ...] = ()
    """Agents that are alive when everything has ended."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.landed_twice or self.overlaps or self.left)


def verdict(
    tasks: Sequence[str], files: Iterable[str], landed: Iterable[str], agents: Sequence[AgentRun], frozen: Iterable[str]
) -> Verdict:
    """`files` are those of the session's branch, `landed` is the task of each of its commits."""
    present, times = set(files), Counter(landed)
    allowed = dict.fromkeys(frozen, AFTER_FREEZE)
    return Verdict(
        tasks=len(tasks),
        agents=len(agents),
        lost=tuple(task for task in tasks if f"{task}.txt" not in present or not times[task]),
        landed_twice=tuple(task for task in tasks if times[task] > 1),
        overlaps=tuple(one for one in overlaps(agents) if one.seconds > allowed.get(one.host, 0.0)),
    )


def overlaps(agents: Sequence[AgentRun]) -> list[Overlap]:
    by_task: Mapping[str, list[AgentRun]] = {one.task: [] for one in agents}
    for one in sorted(agents, key=lambda one: one.first):
        by_task[one.task].append(one)
    return [
        Overlap(task=older.task, host=older.host, seconds=older.last - younger.first)
        for runs in by_task.values()
        for place, older in enumerate(runs)
        for younger in runs[place + 1 :]
        if older.last > younger.first
    ]
