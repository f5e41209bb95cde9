"""What is recorded: events, and in the same transaction all that follows from each of them whatever the rules are.

A message on the bus gets its number and its text here, once.
"""

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from iterdev.core.collaboration import locks
from iterdev.core.collaboration.locks import LockExpired
from iterdev.core.collaboration.messages import Announced, MessageSent, next_number
from iterdev.core.formatting import one_line
from iterdev.core.rules.announcements import announcement
from iterdev.core.rules.escalations import escalated
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Entry, Event
from iterdev.core.session.fold import Fold
from iterdev.core.session.state import State


def record(state: State, team: TeamRules, occurred: Sequence[Event], at: float) -> tuple[list[Entry], State]:
    """The entries to write, and the state after them."""
    fold, entries, queue = Fold(state, team), list[Entry](), deque(occurred)
    while queue:
        event = _as_recorded(queue.popleft(), state)
        entry = Entry(state.seq + 1, at, event)
        entries.append(entry)
        fold.apply(entry)
        state = fold.state()
        announced = announcement(event, state, team)
        queue.extendleft(reversed([*([announced] if announced else []), *_consequences(event, state, team)]))
    return entries, state


def _as_recorded(event: Event, state: State) -> Event:
    """Messages are numbered in their order; one that is read back from a session folder keeps its number."""
    match event:
        case MessageSent() | Announced():
            return replace(event, number=max(event.number, next_number(state.messages)))
        case events.Warned(text):
            return replace(event, text=one_line(text))
        case events.AttemptStarted():
            return replace(event, fence=state.seq + 1)
        case events.EngineStarted() if state.attempts.landing:
            # Work that is about to land may be on the branch already, and a rollback to before it must not stop there.
            return replace(event, tip=state.branch.tip)
        case _:
            return event


def _consequences(event: Event, state: State, team: TeamRules) -> tuple[Event, ...]:
    match event:
        case MessageSent():
            return escalated(state, team, event)
        case LockExpired(resource=resource, task=task):
            return (events.Warned(f'the lock of {task} on "{resource}" expired', announced=False),)
        case events.AttemptEnded(task=task) | events.TaskReported(task=task) | events.TaskCompleted(task):
            return locks.task_ended(state.locks, task)
        case events.TaskFailed(task) | events.TaskSkipped(task):
            return locks.task_ended(state.locks, task)
        case _:
            return ()
