"""What tasks.csv and task-ledger.json say of each task; after an event, only affected entries are rewritten."""

from collections.abc import Collection, Iterator

from iterdev.core.draft import differing
from iterdev.core.session.conflicts import Conflicts
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.store.session_folder import json_records, tasks_csv
from iterdev.teams.contract import Team


class TaskTexts:
    def __init__(self, team: Team) -> None:
        self._team = team
        self._state: State | None = None
        """The state that the texts were made from."""
        self._rows: dict[TaskId, str] = {}
        self._entries: dict[TaskId, str] = {}

    def update(self, state: State) -> None:
        for task in _changed(state, self._state, self._team) if self._state else state.tasks.plan:
            if task in state.tasks.plan:
                self._rows[task] = tasks_csv.row(state, self._team, task)
                self._entries[task] = json_records.ledger_entry(state, self._team, task)
            else:
                self._rows.pop(task, None)
                self._entries.pop(task, None)
        self._state = state

    def table(self, state: State) -> str:
        return tasks_csv.joined(self._team, map(self._rows.__getitem__, state.tasks.order))

    def entries(self, state: State) -> Iterator[str]:
        """Those of the ledger, in the order of the table."""
        return map(self._entries.__getitem__, state.tasks.order)


def _changed(state: State, since: State, team: Team) -> Collection[TaskId]:
    """The tasks whose texts may differ from those in an earlier state, and those that are gone."""
    now, then = state.tasks, since.tasks
    changed = differing(now.plan, then.plan) | differing(now.progress, then.progress)
    changed |= differing(now.dependants, then.dependants)
    changed.update(team.shown_otherwise(state, since))
    # Whether a conflict is resolved depends on other tasks too.
    changed |= _in_conflict(state.conflicts) | _in_conflict(since.conflicts)
    if state.packages is not since.packages:
        # The newest check of a package counts for every task that declared it.
        for part in (state.packages, since.packages):
            changed |= part.declared.keys() | part.checked.keys() | part.blocked.keys()
    return changed


def _in_conflict(part: Conflicts) -> set[TaskId]:
    """The tasks that are in conflict, and those that resolve it."""
    fixes = (conflict.resolved_by for conflict in part.by_task.values())
    return {*part.by_task, *(fix for fix in fixes if fix)}
