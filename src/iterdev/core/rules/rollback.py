"""Rollback: code, table and memory go back together to where they were before a task ended, or a wave began.

The journal only grows: a rollback is one more entry, which says what no longer holds.
"""

import re
from collections.abc import Sequence

from iterdev.core.errors import UserError
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Entry, Event
from iterdev.core.session.fold import replay
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.types import Status, TaskId

PROCEDURE = "git revert HEAD"
"""What undoes the last landing by hand; iterdev moves the session's branch, and keeps what was on it."""


def snapshot(task: TaskId, progress: Progress) -> str | None:
    """The name of the point to which a rollback of the task leads; only work that succeeded has one."""
    if progress.status is not Status.completed or progress.ended_at is None:
        return None
    return f"snapshot-{task}-{int(progress.ended_at)}"


def plan(entries: Sequence[Entry], team: TeamRules, target: str, reason: str = "") -> tuple[Event, ...]:
    """What no longer holds when the session goes back to before the target, a task or `wave-N`."""
    now = replay(entries, team)
    place = _place(entries, team, _valid_places(entries, team), target)
    if not place:
        known = ", ".join(_targets(now))
        raise UserError(
            f'Cannot roll back to before "{target}": no completed or failed task and no wave has that name',
            hint=f"one of: {known}" if known else "iterdev status",
        )
    before = replay(entries[:place], team)
    undone = [task for task in before.tasks.plan if _differs(before, now, task)]
    progress = now.tasks.progress.get(TaskId(target), Progress())
    started = events.RollbackStarted(
        target=target,
        snapshot=snapshot(TaskId(target), progress) or f"snapshot-{target}-{place}",
        tip=before.branch.tip,
        base=before.branch.base,
        rows=tuple(before.tasks.plan[task] for task in undone),
        removed=tuple(task for task in now.tasks.plan if task not in before.tasks.plan),
        answers=before.gates.answers,
        reason=reason,
    )
    return started, *team.rolled_back(before, now)


def _differs(before: State, now: State, task: TaskId) -> bool:
    """Whether the task has progressed since; one that was over may have been tried again."""
    was, is_ = before.tasks.progress[task], now.tasks.progress[task]
    if before.tasks.plan[task] != now.tasks.plan[task]:
        return True
    if was.status.is_final:
        return (was.status, was.number) != (is_.status, is_.number)
    return is_.status is not Status.pending


def _targets(state: State) -> list[str]:
    ended = {Status.completed, Status.failed}
    done = [task.id for task, progress in state.tasks.rows() if progress.status in ended]
    waves = sorted({state.tasks.plan[TaskId(task)].wave for task in done})
    return [*done, *(f"wave-{wave}" for wave in waves)]


def _valid_places(entries: Sequence[Entry], team: TeamRules) -> list[int]:
    """The places of the entries that no rollback has undone: a rollback cannot go back to what was undone."""
    valid: list[int] = []
    for place, entry in enumerate(entries):
        if isinstance(entry.event, events.RollbackStarted):
            end = _place(entries[:place], team, valid, entry.event.target)
            valid = [kept for kept in valid if end is None or kept < end]
        valid.append(place)
    return valid


def _place(entries: Sequence[Entry], team: TeamRules, valid: Sequence[int], target: str) -> int | None:
    """How many entries were there before the target succeeded, failed, or began as a wave."""
    if wave := re.fullmatch(r"wave-(\d{1,9})", target):
        return _start_of(entries, team, valid, int(wave[1]))
    places = [place for place in valid if _ends(entries[place].event, target)]
    return places[-1] if places else None


def _start_of(entries: Sequence[Entry], team: TeamRules, valid: Sequence[int], wave: int) -> int | None:
    members = {task.id for task in replay(entries, team).tasks.plan.values() if task.wave == wave}
    for place in valid:
        match entries[place].event:
            case events.WaveStarted(number) if number == wave:
                return place
            case events.AttemptStarted(task) if task in members:
                return place
            case _:
                pass
    return None


def _ends(event: Event, target: str) -> bool:
    """Whether the task succeeds or fails with this event; work with a commit has to land first."""
    match event:
        case events.AttemptEnded(task=task, outcome=events.Done(commit=None)):
            return task == target
        case events.AttemptEnded(task=task, status=Status.failed):
            return task == target
        case events.Landed() | events.LandingRefused() | events.TaskCompleted() | events.TaskReported():
            return event.task == target
        case events.TaskFailed(task) | LandingTakenOut(task=task, status=Status.failed):
            return task == target
        case _:
            return False
