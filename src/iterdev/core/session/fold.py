"""Makes the state from the journal: a table says which parts an event concerns, and each part adds it up.

Folding never judges: what an event means was decided when it was recorded.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, get_args

import msgspec

from iterdev.core.collaboration import checkpoints, external_packages, feedback, locks, messages, tech_debt, wisdom
from iterdev.core.collaboration.checkpoints import CheckpointEvent, Checkpoints
from iterdev.core.collaboration.external_packages import Packages
from iterdev.core.collaboration.messages import Announced
from iterdev.core.collaboration.wisdom import Wisdom
from iterdev.core.draft import Folding, PureDraft
from iterdev.core.limits import providers, spending
from iterdev.core.limits.providers import Providers
from iterdev.core.limits.spending import Spending
from iterdev.core.session import attempts, conflicts, gates, lifecycle, task_table
from iterdev.core.session.events import (
    AttemptEnded,
    AttemptStarted,
    EngineStarted,
    Entry,
    Landed,
    LandingRefused,
    Paused,
    PolicyChanged,
    RollbackCompleted,
    RollbackStarted,
    SessionStarted,
    Warned,
)
from iterdev.core.session.state import Branch, State, evolve_branch
from iterdev.core.types import TeamState


class TeamFold(Protocol):
    """How the team's part of the state is folded."""

    folded: frozenset[type]
    """The events that the part is made of: the team's own, and some of the kernel's."""

    def initial(self) -> TeamState: ...

    def draft(self, part: TeamState) -> Folding: ...


def _checkpoints(part: Checkpoints, event: CheckpointEvent | RollbackStarted, at: float) -> Checkpoints:
    if isinstance(event, RollbackStarted):
        return {task: kept for task, kept in part.items() if task not in event.undone}
    return checkpoints.evolve(part, event, at)


def _feedback(part: feedback.Items, event: feedback.FeedbackEvent | RollbackStarted, _: float) -> feedback.Items:
    if isinstance(event, RollbackStarted):
        return feedback.without_tasks(part, event.undone)
    return feedback.evolve(part, event)


def _debt(part: tech_debt.Items, event: tech_debt.DebtEvent | RollbackStarted, _: float) -> tech_debt.Items:
    if isinstance(event, RollbackStarted):
        return tech_debt.without_tasks(part, event.undone)
    return tech_debt.evolve(part, event)


def _wisdom(part: Wisdom, event: wisdom.WisdomEvent | RollbackStarted, _: float) -> Wisdom:
    if isinstance(event, RollbackStarted):
        return wisdom.without_tasks(part, event.undone)
    return wisdom.evolve(part, event)


def _packages(part: Packages, event: external_packages.PackageEvent | AttemptEnded, _: float) -> Packages:
    if not isinstance(event, AttemptEnded):
        return external_packages.evolve(part, event)
    noted = external_packages.note_checks(part, event.task, event.checked, event.blocked_by)
    return external_packages.declare(noted, event.task, getattr(event.outcome, "dependencies", ()))


def _providers(part: Providers, event: providers.ProviderEvent | EngineStarted, _: float) -> Providers:
    if isinstance(event, EngineStarted):
        return msgspec.structs.replace(part, unusable={})
    return providers.evolve(part, event)


def _spending(part: Spending, event: spending.DaySpent | AttemptEnded, _: float) -> Spending:
    if isinstance(event, AttemptEnded):
        return spending.spend(part, event.agent, event.outcome.usage)
    return spending.evolve(part, event)


class _MessagesDraft(messages.MessagesDraft):
    def apply(self, event: object, at: float, seq: int) -> None:
        if isinstance(event, AttemptStarted):
            self.attempt_started(event.task)
        else:
            super().apply(event, at, seq)


Make = Callable[[Any], Folding]


def _pure(evolve: Callable[[Any, Any, float], Any]) -> Make:
    return lambda part: PureDraft(part, evolve)


PARTS: dict[str, tuple[Iterable[type], Make]] = {
    "tasks": (task_table.EVENTS, task_table.TaskTableDraft),
    "attempts": (attempts.EVENTS, _pure(lambda part, event, _: attempts.evolve(part, event))),
    "conflicts": (conflicts.EVENTS, conflicts.ConflictsDraft),
    "gates": (gates.EVENTS, _pure(lambda part, event, _: gates.evolve(part, event))),
    "branch": (
        (Landed, LandingRefused, EngineStarted, RollbackStarted, RollbackCompleted),
        _pure(lambda part, event, _: evolve_branch(part, event)),
    ),
    "lifecycle": (get_args(lifecycle.LifecycleEvent), _pure(lifecycle.evolve)),
    "policy": ((PolicyChanged,), _pure(lambda _part, event, _: event.policy)),
    "warnings": ((Warned,), _pure(lambda part, event, _: (*part, event.text))),
    "messages": ((*get_args(messages.MessageEvent), AttemptStarted), _MessagesDraft),
    "locks": (get_args(locks.LockEvent), _pure(locks.evolve)),
    "checkpoints": ((*get_args(checkpoints.CheckpointEvent), RollbackStarted), _pure(_checkpoints)),
    "feedback": ((*get_args(feedback.FeedbackEvent), RollbackStarted), _pure(_feedback)),
    "debt": ((*get_args(tech_debt.DebtEvent), RollbackStarted), _pure(_debt)),
    "wisdom": ((*get_args(wisdom.WisdomEvent), RollbackStarted), _pure(_wisdom)),
    "packages": ((*get_args(external_packages.PackageEvent), AttemptEnded), _pure(_packages)),
    "providers": ((*get_args(providers.ProviderEvent), EngineStarted), _pure(_providers)),
    "spending": ((spending.DaySpent, AttemptEnded), _pure(_spending)),
}
"""The parts of the state: the events that each is made of, and how they are folded in."""


def _concerned() -> dict[type, tuple[str, ...]]:
    table: dict[type, tuple[str, ...]] = {}
    for name, (kinds, _) in PARTS.items():
        for kind in kinds:
            table[kind] = (*table.get(kind, ()), name)
    return table


CONCERNED = _concerned()


def replay(entries: Sequence[Entry], team: TeamFold) -> State | None:
    """The state that a whole journal folds to; None for an empty one."""
    return evolve(_beginning(entries[0], team), entries, team) if entries else None


def evolve(state: State, entries: Sequence[Entry], team: TeamFold) -> State:
    """The state after further entries."""
    fold = Fold(state, team)
    for entry in entries:
        fold.apply(entry)
    return fold.state()


def _beginning(entry: Entry, team: TeamFold) -> State:
    if not isinstance(entry.event, SessionStarted):
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
        branch=Branch(tip=session.base),
    )


class Fold:
    """One fold under way. A state taken from it is valid until the next entry is applied."""

    def __init__(self, state: State, team: TeamFold) -> None:
        self._state, self._team = state, team
        self._drafts: dict[str, Folding] = {}
        self._seq, self._at, self._last = state.seq, state.updated_at, state.last

    def apply(self, entry: Entry) -> None:
        event = entry.event
        self._seq, self._at = entry.seq, entry.at
        if not isinstance(event, EngineStarted | Paused | Announced):
            self._last = entry
        for name in CONCERNED.get(type(event), ()):
            self._draft(name).apply(event, entry.at, entry.seq)
        if type(event) in self._team.folded:
            self._draft("team").apply(event, entry.at, entry.seq)

    def state(self) -> State:
        parts = {name: draft.part for name, draft in self._drafts.items()}
        return msgspec.structs.replace(self._state, seq=self._seq, updated_at=self._at, last=self._last, **parts)

    def _draft(self, name: str) -> Folding:
        if name not in self._drafts:
            part = getattr(self._state, name)
            self._drafts[name] = self._team.draft(part) if name == "team" else PARTS[name][1](part)
        return self._drafts[name]
