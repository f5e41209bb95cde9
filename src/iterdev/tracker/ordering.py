"""The order of bound solutions, by arithmetic: files that they share, dependencies that they declare, and groups.

An agent may be asked which of two solutions in conflict goes first; nothing else here needs judgement.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.tracker.issues import HIGHEST, Issue
from iterdev.tracker.queues import Conflict
from iterdev.tracker.solutions import Solution, files_touched, only_creates, tidy_path

WIDTH = 3
"""Groups that nothing keeps apart, at most; as many are carried out at once."""
URGENCY = {HIGHEST: 0.9, 4: 0.7, 3: 0.5}
LOW_URGENCY = 0.3
FEW_DEPENDENCIES = 1


class Candidate(Struct, frozen=True, kw_only=True):
    """A bound solution that is to be carried out."""

    issue_id: str
    solution_id: str
    priority: int
    task_count: int
    files: tuple[str, ...]
    dependencies: tuple[str, ...] = ()
    """Issues and solutions, also some that are not carried out now."""
    creates: bool = False


class Ordered(Struct, frozen=True, kw_only=True):
    """One candidate with its place; issues are named by their ids."""

    candidate: Candidate
    order: int
    group: int
    """Counted from 1."""
    depends_on: tuple[str, ...]
    semantic_priority: float


class Order(Struct, frozen=True, kw_only=True):
    entries: tuple[Ordered, ...]
    conflicts: tuple[Conflict, ...]

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The issues of each group, which have no file in common."""
        members: dict[int, list[str]] = {}
        for entry in self.entries:
            members.setdefault(entry.group, []).append(entry.candidate.issue_id)
        return tuple(tuple(members[number]) for number in sorted(members))

    def waits_for(self, group: int) -> tuple[int, ...]:
        """The other groups that have to be carried out before a group."""
        group_of = {entry.candidate.issue_id: entry.group for entry in self.entries}
        needed = (name for entry in self.entries if entry.group == group for name in entry.depends_on)
        return tuple(sorted({group_of[name] for name in needed} - {group}))


def candidate(issue: Issue, solution: Solution) -> Candidate:
    return Candidate(
        issue_id=issue.id,
        solution_id=solution.id,
        priority=issue.description.priority,
        task_count=len(solution.tasks),
        files=files_touched(solution),
        dependencies=solution.dependencies,
        creates=only_creates(solution),
    )


def ordered(candidates: Sequence[Candidate], preferred: Sequence[str] = (), width: int = WIDTH) -> Order:
    """Every candidate in its place; raises `UserError` if they depend on each other in a circle.

    Dependencies come first. Where they leave a choice, the preferred issues come in their order, then those of a higher
    priority, those that others depend on, those with more tasks, and those that create files before those that change
    some. Of candidates that touch the same file, each waits for the one before it.
    """
    declared = declared_dependencies(candidates)
    sequence = _sequence(candidates, declared, {name: place for place, name in enumerate(preferred)})
    overlaps = _overlaps(sequence)
    depends_on = {one.issue_id: dict.fromkeys(declared[one.issue_id]) for one in sequence}
    for path, members in overlaps.items():
        for before, after in _one_after_another(path, members):
            depends_on[after.issue_id].setdefault(before.issue_id)
    groups = _groups(sequence, depends_on, width)
    needed = Counter(name for names in declared.values() for name in names)
    entries = tuple(
        Ordered(
            candidate=one,
            order=place,
            group=groups[one.issue_id],
            depends_on=tuple(depends_on[one.issue_id]),
            semantic_priority=semantic_priority(
                one, is_needed=bool(needed[one.issue_id]), dependencies=len(declared[one.issue_id])
            ),
        )
        for place, one in enumerate(sequence, 1)
    )
    return Order(entries=entries, conflicts=_conflicts(overlaps, set(preferred)))


def semantic_priority(one: Candidate, *, is_needed: bool, dependencies: int) -> float:
    """From 0 to 1: the urgency of the issue, a little more for large work and for what others build on."""
    size = 0.1 if one.task_count >= 5 else 0.05 if one.task_count >= 3 else 0
    few = 0.05 if dependencies <= FEW_DEPENDENCIES else 0
    total = URGENCY.get(one.priority, LOW_URGENCY) + size + (0.1 if is_needed else 0) + few
    return round(min(total, 1.0), 2)


def declared_dependencies(candidates: Iterable[Candidate]) -> dict[str, tuple[str, ...]]:
    """The issues that each issue depends on by its solution's word, of those that are carried out with it."""
    named = {name: one.issue_id for one in candidates for name in (one.issue_id, one.solution_id)}
    return {
        one.issue_id: tuple(
            dict.fromkeys(named[name] for name in one.dependencies if named.get(name, one.issue_id) != one.issue_id)
        )
        for one in candidates
    }


def _sequence(
    candidates: Sequence[Candidate], declared: Mapping[str, Sequence[str]], preferred: Mapping[str, int]
) -> list[Candidate]:
    check_no_circle(declared)
    by_issue = {one.issue_id: one for one in candidates}
    dependants: dict[str, list[str]] = {name: [] for name in by_issue}
    for name, needed in declared.items():
        for before in needed:
            dependants[before].append(name)
    waiting = {name: len(needed) for name, needed in declared.items()}

    def rank(place: int, one: Candidate) -> tuple[object, ...]:
        choice = preferred.get(one.issue_id, len(preferred))
        return (choice, -one.priority, -len(dependants[one.issue_id]), -one.task_count, not one.creates, place)

    ranks = {one.issue_id: rank(place, one) for place, one in enumerate(candidates)}
    ready = [(ranks[name], name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    sequence: list[Candidate] = []
    while ready:
        _, name = heapq.heappop(ready)
        sequence.append(by_issue[name])
        for after in dependants[name]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(ready, (ranks[after], after))
    return sequence


def check_no_circle(depends_on: Mapping[str, Sequence[str]]) -> None:
    """Raises `UserError` if issues wait for each other in a circle."""
    try:
        TopologicalSorter(depends_on).prepare()
    except CycleError as error:
        # Each one is needed by the next, and the last is the first again.
        found: list[str] = error.args[1][:0:-1]
        first = found.index(min(found))
        circle = " -> ".join([*found[first:], *found[: first + 1]])
        raise UserError(
            f"The solutions depend on each other in a circle: {circle}",
            hint="bind a solution of one of them that does not depend on the others",
        ) from error


def _overlaps(sequence: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Those that touch the same path, or something below it, in their order; paths of a single one are left out."""
    touching: dict[str, list[Candidate]] = {}
    named = {path for one in sequence for path in one.files}
    for one in sequence:
        for path in dict.fromkeys(place for file in one.files for place in _with_parents(file) if place in named):
            touching.setdefault(path, []).append(one)
    return {path: members for path, members in touching.items() if len(members) > 1}


def _one_after_another(path: str, members: Iterable[Candidate]) -> Iterator[tuple[Candidate, Candidate]]:
    """Pairs in which the second waits for the first. Two that touch different files of a folder do not."""
    whole: Candidate | None = None
    below: list[Candidate] = []
    for one in members:
        before = [*([whole] if whole else []), *(below if path in one.files else [])]
        yield from ((earlier, one) for earlier in before)
        if path in one.files:
            whole, below = one, []
        else:
            below.append(one)


def _with_parents(path: str) -> Iterator[str]:
    """The path, and the folders that it is in."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _conflicts(overlaps: Mapping[str, Sequence[Candidate]], preferred: set[str]) -> tuple[Conflict, ...]:
    """One conflict for all files that the same issues touch."""
    files: dict[tuple[str, ...], list[str]] = {}
    for path, members in overlaps.items():
        files.setdefault(tuple(one.issue_id for one in members), []).append(path)
    return tuple(
        Conflict(
            issues=members,
            files=tuple(sorted(paths)),
            rationale="the order was chosen" if preferred & {*members} else "by dependencies and priority",
        )
        for members, paths in files.items()
    )


def _groups(sequence: Sequence[Candidate], depends_on: Mapping[str, Iterable[str]], width: int) -> dict[str, int]:
    """The number of each issue's group. What an issue depends on is in an earlier one.

    Issues of the same depth share no file; they are dealt out to at most `width` groups of about equal work.
    """
    depth: dict[str, int] = {}
    for one in sequence:
        depth[one.issue_id] = 1 + max((depth[name] for name in depends_on[one.issue_id]), default=0)
    levels: dict[int, list[Candidate]] = {}
    for one in sequence:
        levels.setdefault(depth[one.issue_id], []).append(one)
    groups: dict[str, int] = {}
    first = 1
    for level in sorted(levels):
        members = levels[level]
        work = [(0, number) for number in range(first, first + min(width, len(members)))]
        for one in members:
            load, number = heapq.heappop(work)
            groups[one.issue_id] = number
            heapq.heappush(work, (load + max(one.task_count, 1), number))
        first += min(width, len(members))
    return groups


def without_common_files(files: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names in as few batches as a greedy pass needs, in none of which two have a file in common."""
    batches: list[list[str]] = []
    used: dict[str, set[int]] = {}
    lowest: dict[str, int] = {}
    for name, paths in files.items():
        touched = [tidy_path(path) for path in paths]
        # Every batch below `lowest` of a file has it; so the search does not begin at the first one each time.
        number = max((lowest.get(path, 0) for path in touched), default=0)
        while any(number in used.get(path, ()) for path in touched):
            number += 1
        if number == len(batches):
            batches.append([])
        batches[number].append(name)
        for path in touched:
            taken = used.setdefault(path, set())
            taken.add(number)
            while lowest.get(path, 0) in taken:
                lowest[path] = lowest.get(path, 0) + 1
    return batches
