"""What is checked after everything: nothing lost or landed twice, and no agent at a task that was given away."""

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


class GivenAway(Struct, frozen=True, kw_only=True):
    """An attempt that the engine took for interrupted, by the clock of the agents."""

    task: str
    at: float


class Verdict(Struct, frozen=True, kw_only=True):
    tasks: int
    agents: int
    lost: tuple[str, ...] = ()
    landed_twice: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    outlived: tuple[Overlap, ...] = ()
    """Agents that were alive when their attempt had been given away, be the next one begun or not."""
    left: tuple[str, ...] = ()
    """Agents that are alive when everything has ended."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.landed_twice or self.overlaps or self.outlived or self.left)


def verdict(
    tasks: Sequence[str],
    files: Iterable[str],
    landed: Iterable[str],
    agents: Sequence[AgentRun],
    frozen: Iterable[str],
    given_away: Sequence[GivenAway] = (),
) -> Verdict:
    """`files` are those of the session's branch, `landed` is the task of each of its commits."""
    present, times = set(files), Counter(landed)
    asleep = set(frozen)
    allowed = dict.fromkeys(asleep, AFTER_FREEZE)
    return Verdict(
        tasks=len(tasks),
        agents=len(agents),
        lost=tuple(task for task in tasks if f"{task}.txt" not in present or not times[task]),
        landed_twice=tuple(task for task in tasks if times[task] > 1),
        overlaps=tuple(one for one in overlaps(agents) if one.seconds > allowed.get(one.host, 0.0)),
        outlived=tuple(one for one in outlived(agents, given_away) if one.host not in asleep),
    )


def outlived(agents: Sequence[AgentRun], given_away: Sequence[GivenAway]) -> list[Overlap]:
    return [
        Overlap(task=agent.task, host=agent.host, seconds=agent.last - attempt.at)
        for agent in agents
        for attempt in given_away
        if agent.task == attempt.task and agent.first < attempt.at < agent.last
    ]


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
