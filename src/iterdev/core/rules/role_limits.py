"""How many tasks of a role may run at once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Queue
from iterdev.core.types import Role, TaskId


def within_role_limits(state: State, roles: Mapping[Role, RoleSpec], queues: Iterable[Queue]) -> Iterator[TaskId]:
    """The tasks of the queues in the order of the table, without those of roles of which as many run as may at once."""
    limits = {role.name: role.at_most for role in roles.values() if role.at_most is not None}
    running = Counter(state.tasks.plan[task].role for task in state.attempts.running)
    places = {role: limit - running[role] for role, limit in limits.items()}
    for task in state.tasks.in_order(queue for queue in queues if places.get(queue.role, 1) > 0):
        role = state.tasks.plan[task].role
        places[role] = places.get(role, 1) - (role in limits)
        if places[role] >= 0:
            yield task
