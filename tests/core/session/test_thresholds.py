"""Folding never judges: a stored journal folds to the same state, whatever the limits and thresholds are by then."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from random import Random
from types import ModuleType

import msgspec
import pytest
from tests.core.simulator import History, World
from tests.teams.development.sessions import a_beginning, work

import iterdev.core
from iterdev.core import results
from iterdev.core.collaboration import checkpoints, feedback, locks, tech_debt, wisdom
from iterdev.core.collaboration.messages import Announced
from iterdev.core.limits import providers
from iterdev.core.policy import DebtRule, Policy
from iterdev.core.rules import announcements, escalations
from iterdev.core.session import events, gates
from iterdev.core.session.events import Entry, Event
from iterdev.core.session.fold import replay
from iterdev.core.types import ConflictStrategy, Severity
from iterdev.store.journal import EventCodec
from iterdev.teams.development import critic, pipelines, requirement_analysis
from iterdev.teams.development import events as team_events
from iterdev.teams.development.state import development
from iterdev.teams.development.team import DEVELOPMENT

CODEC = EventCodec()
STRICT = {
    "feedback_kept": 3,
    "checkpoints_kept": 2,
    "lock_seconds": 30.0,
    "contention_seconds": 5.0,
    "first_pause": 7.0,
}
"""Limits that a short history runs into."""
NEEDED = (
    team_events.DesignAccepted, team_events.ReviewScored, team_events.TestsMeasured, team_events.RoundStarted,
    team_events.ConvergenceForced, team_events.SprintEnded, events.ConflictResolved, events.LandingRefused,
    events.RollbackStarted, events.TaskFailed, locks.LockExpired, locks.LockRefused, locks.DeadlockBroken,
    providers.ProviderPaused, providers.AgentReplaced, wisdom.WisdomNoted, Announced,
)  # fmt: skip
KNOWN = {
    (critic, "WEIGHTS"), (critic, "MUST_FIX"), (results, "FINDINGS_LIMIT"), (announcements, "QUOTED"),
    (gates, "MOST_DIGITS"), (escalations, "_PAUSING"), (feedback, "URGENT"), (tech_debt, "POINTS"),
    (wisdom, "INHERITED"), (pipelines, "HEADLINE"), (requirement_analysis, "LOW_COMPLEXITY"),
    (providers, "KNOWN_PROVIDERS"),
}  # fmt: skip


def strict(beginning: list[Event]) -> list[Event]:
    started, *rest = beginning
    assert isinstance(started, events.SessionStarted)
    return [events.SessionStarted(started.session, msgspec.structs.replace(started.policy, **STRICT)), *rest]


def a_history(seed: int) -> History:
    chance = Random(seed)
    beginning = strict(a_beginning(chance, chance.randint(8, 25)))
    return World(chance, DEVELOPMENT, beginning, work, edits=2, rollbacks=2, talks=25).live()


@pytest.fixture(scope="module")
def histories() -> list[History]:
    # The question between two sprints is rare.
    return [a_history(seed) for seed in (*range(60), 107, 127, 148)]


def stored(history: History) -> list[tuple[int, float, bytes]]:
    return [(entry.seq, entry.at, CODEC.encode(entry.event)) for entry in history.entries]


def read(journal: list[tuple[int, float, bytes]]) -> list[Entry]:
    return [Entry(seq, at, CODEC.decode(body)) for seq, at, body in journal]


def test_the_histories_have_met_every_kind_of_judgement(histories: list[History]) -> None:
    seen = {type(entry.event) for history in histories for entry in history.entries}
    all_events = [entry.event for history in histories for entry in history.entries]
    gate_kinds = {event.gate.kind for event in all_events if isinstance(event, events.GateOpened)}

    assert set(NEEDED) <= seen
    assert {"consensus", "capability", "plan", "sprint"} <= gate_kinds
    assert any(event.dropped for event in all_events if isinstance(event, feedback.FeedbackGiven))
    assert any(event.dropped for event in all_events if isinstance(event, checkpoints.CheckpointSaved))
    assert {history.ending for history in histories} == {"over"}


def modules() -> Iterator[ModuleType]:
    for package in (iterdev.core, iterdev.teams):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def changed(value: object) -> object:
    """Another value for a limit, a weight or a set of severities; None for a constant that is none of these."""
    match value:
        case bool():
            return None
        case int() | float():
            return value * 3 + 1
        case Mapping() if value and all(isinstance(one, int | float) for one in value.values()):
            return {name: one * 3 + 1 for name, one in value.items()}
        case Mapping() if value and all(isinstance(one, str) for one in (*value, *value.values())):
            return {}
        case tuple() | frozenset() if value and all(isinstance(one, Severity) for one in value):
            return type(value)()
        case _:
            return None


def constants() -> Iterator[tuple[ModuleType, str, object]]:
    """Every constant of the pure layers that a judgement could be made with, and another value for it."""
    for module in modules():
        for name, value in vars(module).items():
            other = changed(value) if name.isupper() else None
            if other is not None:
                yield module, name, other


def test_a_stored_journal_folds_to_the_same_state_with_every_constant_changed(
    histories: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = [stored(history) for history in histories]
    found = list(constants())
    assert {(module, name) for module, name, _ in found} >= KNOWN

    for module, name, other in found:
        monkeypatch.setattr(module, name, other)

    for history, journal in zip(histories, journals, strict=True):
        state = replay(read(journal), DEVELOPMENT)
        assert state
        assert state.messages == history.state.messages
        assert state == history.state


def other_values(policy: msgspec.Struct) -> dict[str, object]:
    """Another value for every field of a policy."""
    return {name: _other(getattr(policy, name)) for name in policy.__struct_fields__}


def _other(value: object) -> object:
    match value:
        case bool():
            return not value
        case ConflictStrategy():
            return next(one for one in ConflictStrategy if one is not value)
        case int() | float():
            return value * 3 + 1
        case None:
            return 1
        case DebtRule():
            return None
        case _:
            return {"nobody": "nothing"}


def without_limits(event: Event) -> Event:
    """The event as it would stand in the journal if every limit and threshold of its day had been another."""
    match event:
        case events.SessionStarted(session, policy):
            return events.SessionStarted(session, Policy(**other_values(policy)))
        case events.PolicyChanged(policy):
            return events.PolicyChanged(Policy(**other_values(policy)))
        case team_events.TeamStarted(thresholds=thresholds):
            other = team_events.Thresholds(**other_values(thresholds))
            return msgspec.structs.replace(event, thresholds=other)
        case _:
            return event


def test_no_part_of_the_state_but_the_policy_itself_depends_on_the_policy(histories: list[History]) -> None:
    for history in histories:
        entries = [Entry(entry.seq, entry.at, without_limits(entry.event)) for entry in history.entries]
        state = replay(entries, DEVELOPMENT)

        assert state
        assert all(
            getattr(state.policy, name) != getattr(history.state.policy, name) for name in Policy.__struct_fields__
        )
        team = msgspec.structs.replace(development(state), thresholds=development(history.state).thresholds)
        same = msgspec.structs.replace(state, policy=history.state.policy, team=team, last=history.state.last)
        assert same == history.state


def test_a_journal_holds_every_limit_so_that_no_default_is_read_into_it(histories: list[History]) -> None:
    started, team = histories[0].entries[0].event, histories[0].seen(team_events.TeamStarted)[0]

    policy = msgspec.json.decode(CODEC.encode(started))["policy"]
    thresholds = msgspec.json.decode(CODEC.encode(team))["thresholds"]

    assert set(policy) == set(Policy.__struct_fields__)
    assert set(thresholds) == set(team_events.Thresholds.__struct_fields__)
