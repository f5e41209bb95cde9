"""How many tasks of a role may run at once."""

from collections import Counter
from collections.abc import Collection, Mapping

from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.state import State
from iterdev.core.types import Role, TaskId


def within_role_limits(
    state: State, roles: Mapping[Role, RoleSpec], candidates: Collection[TaskId]
) -> Collection[TaskId]:
    """The candidates without those for which as many tasks of their role run as may at once."""
    limits = {role.name: role.at_most for role in roles.values() if role.at_most is not None}
    if not limits:
        return candidates
    running = Counter(state.tasks.plan[task].role for task in state.attempts.running)
    places = {role: limit - running[role] for role, limit in limits.items()}
    admitted = []
    for task in sorted(candidates, key=state.tasks.order.__getitem__):
        role = state.tasks.plan[task].role
        places[role] = places.get(role, 1) - (role in limits)
        if places[role] >= 0:
            admitted.append(task)
    return admitted
