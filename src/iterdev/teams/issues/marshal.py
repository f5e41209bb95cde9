"""The order of the solutions: computed from files, dependencies and priorities; an integrator settles conflicts.

The integrator is asked only if solutions touch the same files and nothing says which of them comes first. What it
leaves open is a question to the user.
"""

from itertools import pairwise

from iterdev.core.errors import UserError
from iterdev.core.formatting import counted, one_line
from iterdev.core.session.events import Gate
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.teams.issues.roles import Role, fields
from iterdev.teams.issues.state import issue_part
from iterdev.tracker.issues import Issue
from iterdev.tracker.ordering import WIDTH, Order, candidate, declared_dependencies, ordered

ORDER_GATE = "order"


def unsolved(state: State) -> tuple[str, ...]:
    """The issues for which no solution has been chosen."""
    part = issue_part(state)
    return tuple(issue for issue in part.issues if part.solution(issue) is None)


def obstacle(state: State) -> str:
    """Why no queue can be formed; empty if one can."""
    if missing := unsolved(state):
        return f"no solution is bound to {', '.join(missing)}"
    try:
        queue_order(state)
    except UserError as error:
        return error.message
    return ""


def queue_order(state: State) -> Order:
    """Raises `UserError` if the solutions depend on each other in a circle."""
    part = issue_part(state)
    candidates = [
        candidate(Issue(id=name, description=facts.description), solution)
        for name, facts in part.issues.items()
        if (solution := part.solution(name))
    ]
    width = len(part.issues) if part.separately else WIDTH
    return ordered(candidates, preferred(state), width)


def preferred(state: State) -> tuple[str, ...]:
    """The issues in the order that was chosen for them: by the user first, then by the integrator."""
    part = issue_part(state)
    chosen = dict.fromkeys((*part.first, *(part.preference.order if part.preference else ())))
    return tuple(name for name in chosen if name in part.issues)


def undecided(state: State) -> tuple[tuple[str, ...], ...]:
    """The issues of each conflict whose order no declared dependency decides."""
    order = queue_order(state)
    declared = declared_dependencies([entry.candidate for entry in order.entries])
    return tuple(
        conflict.issues
        for conflict in order.conflicts
        if not all(before in declared[after] for before, after in pairwise(conflict.issues))
    )


def unordered(state: State) -> tuple[str, ...]:
    """The issues of a conflict of which the integrator does not say which comes first; empty if there is none."""
    chosen = set(preferred(state))
    left = (tuple(name for name in issues if name not in chosen) for issues in undecided(state))
    return next((names for names in left if len(names) > 1), ())


def order_gate(issues: tuple[str, ...]) -> Gate:
    question = f"{', '.join(issues)} touch the same files. Which of them is built first?"
    return Gate(kind=ORDER_GATE, subject=issues[0], question=question, choices=issues)


def summary(order: Order) -> str:
    """What the table says of the queue."""
    conflicts = f", {len(order.conflicts)} with common files" if order.conflicts else ""
    groups = "; ".join(f"{number}. {', '.join(issues)}" for number, issues in enumerate(order.groups, 1))
    return f"Queue of {len(order.entries)} in {counted(len(order.groups), 'group')}{conflicts}: {groups}"


def order_reasons(state: State, task: TaskId) -> tuple[str, ...]:
    """Why the issues of a BUILD task come after those of others, one sentence for each issue and reason."""
    queue, row = issue_part(state).queue, state.tasks.plan[task]
    if queue is None or row.role != Role.implementer:
        return ()
    order = queue.order
    declared = declared_dependencies([entry.candidate for entry in order.entries])
    lines: list[str] = []
    for issue in fields(row).issues:
        if needed := declared.get(issue):
            lines.append(f"{issue} comes after {', '.join(needed)}: its solution depends on that")
        for conflict in (one for one in order.conflicts if issue in one.issues):
            if before := conflict.issues[: conflict.issues.index(issue)]:
                too = f"they change {', '.join(conflict.files)} too"
                because = _chosen(state, issue) or conflict.rationale
                lines.append(f"{issue} comes after {', '.join(before)}: {too} ({because})")
    return tuple(lines)


def _chosen(state: State, issue: str) -> str:
    """Why the integrator chose the order of an issue, in its own words."""
    preference = issue_part(state).preference
    said = (one.resolution for one in (preference.conflicts if preference else ()) if issue in one.issues)
    return next((one_line(text) for text in said if text), "")
