"""Makes the state from the journal: a table says which parts an event concerns, and each part adds it up.

Folding never judges: what an event means was decided when it was recorded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, get_args

from msgspec.structs import replace

from iterdev.core.collaboration import checkpoints, external_packages, feedback, locks, messages, tech_debt, wisdom
from iterdev.core.collaboration.external_packages import Packages
from iterdev.core.draft import Folding, without
from iterdev.core.limits import budget, providers
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.session import attempts, conflicts, delivery, events, gates, landing_queue, lifecycle, task_table
from iterdev.core.session.events import Entry
from iterdev.core.session.state import BRANCH_EVENTS, Branch, State, evolve_branch
from iterdev.core.types import TeamState


class _EvolvedPart:
    def __init__(self, part: TeamState, evolve: Callable[[TeamState, object, float], TeamState]) -> None:
        self.part, self._evolve = part, evolve

    def apply(self, event: object, at: float, _seq: int) -> None:
        self.part = self._evolve(self.part, event, at)


class TeamFold(Protocol):
    folded: frozenset[type] = frozenset()
    """The events that the part is made of: the team's own, and some of the kernel's."""

    def initial(self) -> TeamState:
        return TeamState()

    def evolve(self, part: TeamState, event: object, at: float) -> TeamState:
        """The part after one of these events; a team with a large part defines `draft` instead."""
        return part

    def draft(self, part: TeamState) -> Folding:
        return _EvolvedPart(part, self.evolve)


Evolve = Callable[[Any, Any, float], Any]


def _undo(without_tasks: Callable[[Any, Any], Any]) -> dict[type, Evolve]:
    return {events.RollbackStarted: lambda part, event, _: without_tasks(part, event.undone)}


def _after_attempt(part: Packages, event: events.AttemptEnded) -> Packages:
    declared = event.outcome.dependencies if isinstance(event.outcome, events.Done) else ()
    if not declared and not event.checked:
        return part
    return external_packages.attempt_ended(part, event.task, event.checked, event.blocked_by, declared)


DRAFTS: Mapping[str, tuple[Iterable[type], Callable[[Any], Folding]]] = {
    "tasks": (task_table.EVENTS, task_table.TaskTableDraft),
    "conflicts": (conflicts.EVENTS, conflicts.ConflictsDraft),
}
"""Large parts of the state: the events that each is made of, and the draft that takes them."""

PARTS: Mapping[str, Mapping[type, Evolve]] = {
    "attempts": dict.fromkeys(attempts.EVENTS, attempts.evolve),
    "landing_queue": dict.fromkeys(landing_queue.EVENTS, landing_queue.evolve),
    "gates": dict.fromkeys(get_args(events.GateEvent | events.RollbackStarted), gates.evolve),
    "branch": dict.fromkeys(BRANCH_EVENTS, evolve_branch),
    "lifecycle": dict.fromkeys(get_args(lifecycle.LifecycleEvent), lifecycle.evolve),
    "delivery": dict.fromkeys(get_args(delivery.DeliveryEvent), delivery.evolve),
    "policy": {events.PolicyChanged: lambda _part, event, _: event.policy},
    "warnings": {events.Warned: lambda part, event, _: part.extended((event.text,))},
    "environments": {events.EnvironmentMade: lambda part, event, _: part.extended((event.text,))},
    "messages": dict.fromkeys(get_args(messages.MessageEvent), messages.evolve),
    "locks": {
        **dict.fromkeys(get_args(locks.LockEvent), locks.evolve),
        ClockChanged: lambda part, event, _: locks.moved(part, event.seconds),
    },
    "checkpoints": {
        **dict.fromkeys(get_args(checkpoints.CheckpointEvent), checkpoints.evolve),
        events.RollbackStarted: lambda part, event, _: without(part, *event.undone),
    },
    "feedback": dict.fromkeys(get_args(feedback.FeedbackEvent), feedback.evolve) | _undo(feedback.without_tasks),
    "debt": dict.fromkeys(get_args(tech_debt.DebtEvent), tech_debt.evolve) | _undo(tech_debt.without_tasks),
    "wisdom": dict.fromkeys(get_args(wisdom.WisdomEvent), wisdom.evolve) | _undo(wisdom.without_tasks),
    "packages": {
        **dict.fromkeys(get_args(external_packages.PackageEvent), external_packages.evolve),
        events.AttemptEnded: lambda part, event, _: _after_attempt(part, event),
    },
    "providers": {
        **dict.fromkeys((*get_args(providers.ProviderEvent), ClockChanged), providers.evolve),
        events.EngineStarted: lambda part, _event, _: replace(part, unusable={}),
    },
    "spending": {
        budget.DaySpent: budget.evolve,
        events.AttemptEnded: lambda part, event, _: budget.spend(part, event.agent, event.outcome.usage),
    },
}
"""Small parts of the state: the events that each is made of, and the function that makes the part after one."""


def _concerned() -> dict[type, tuple[tuple[str, Evolve | None], ...]]:
    table: dict[type, tuple[tuple[str, Evolve | None], ...]] = {}
    for name, (kinds, _) in DRAFTS.items():
        for kind in kinds:
            table[kind] = (*table.get(kind, ()), (name, None))
    for name, evolvers in PARTS.items():
        for kind, evolve in evolvers.items():
            table[kind] = (*table.get(kind, ()), (name, evolve))
    return table


CONCERNED = _concerned()
ENGINES_OWN = (events.EngineStarted, events.EnvironmentMade, events.Paused, delivery.Notified)
NOT_WORK = frozenset({*ENGINES_OWN, messages.Announced, ClockChanged})
"""The events that `State.last` does not mention."""


def replay(entries: Sequence[Entry], team: TeamFold) -> State:
    """The state that a whole journal folds to, which has at least one entry."""
    return evolve(_beginning(entries[0], team), entries, team)


def evolve(state: State, entries: Sequence[Entry], team: TeamFold) -> State:
    """The state after further entries."""
    fold = Fold(state, team)
    for entry in entries:
        fold.apply(entry)
    return fold.state()


def _beginning(entry: Entry, team: TeamFold) -> State:
    if not isinstance(entry.event, events.SessionStarted):
        raise TypeError(f"a journal begins with SessionStarted, not {type(entry.event).__name__}")
    session, policy = entry.event.session, entry.event.policy
    return State(
        session=session,
        policy=policy,
        seq=entry.seq,
        created_at=entry.at,
        updated_at=entry.at,
        last=entry,
        team=team.initial(),
        branch=Branch(tip=session.base, base=session.base),
    )


class Fold:
    """One fold under way. A state taken from it is valid until the next entry is applied."""

    def __init__(self, state: State, team: TeamFold) -> None:
        self._state, self._team, self._folded = state, team, team.folded
        self._drafts: dict[str, Folding] = {}
        self._parts: dict[str, Any] = {}
        self._seq, self._at, self._last = state.seq, state.updated_at, state.last

    def apply(self, entry: Entry) -> None:
        event, at, parts, drafts = entry.event, entry.at, self._parts, self._drafts
        kind = type(event)
        self._seq, self._at = entry.seq, at
        if kind not in NOT_WORK:
            self._last = entry
        for name, evolve in CONCERNED.get(kind, ()):
            if evolve:
                part = parts[name] if name in parts else getattr(self._state, name)
                parts[name] = evolve(part, event, at)
            else:
                draft = drafts[name] if name in drafts else self._draft(name, DRAFTS[name][1])
                draft.apply(event, at, entry.seq)
        if kind in self._folded:
            self._draft("team", self._team.draft).apply(event, at, entry.seq)

    def state(self) -> State:
        parts = self._parts | {name: draft.part for name, draft in self._drafts.items()}
        return replace(self._state, seq=self._seq, updated_at=self._at, last=self._last, **parts)

    def _draft(self, name: str, make: Callable[[Any], Folding]) -> Folding:
        if name not in self._drafts:
            self._drafts[name] = make(getattr(self._state, name))
        return self._drafts[name]
