"""Decides a whole journal again: whatever an engine decided then must be what is decided now.

It knows which events come from deciding. What was seen, or said by an agent or a person, is taken as it stands.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import get_args

from msgspec import Struct

from iterdev.core.collaboration import external_packages
from iterdev.core.collaboration.feedback import FeedbackPlanned
from iterdev.core.collaboration.messages import Announced
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.rules.decide import decide
from iterdev.core.rules.record import record
from iterdev.core.rules.schedule import Command, Land, Record, RunLandingTest, Start
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Entry, Event
from iterdev.core.session.fold import Fold, replay
from iterdev.core.session.gates import GateKind
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded, LandingTestStarted
from iterdev.core.session.state import State

DECIDED = (
    *get_args(events.WaveEvent | external_packages.PackageEvent),
    *(events.TaskCompleted, events.TaskFailed, events.TaskSkipped, events.TasksAdded, events.TasksReplanned),
    *(events.GateOpened, events.ConflictResolved, events.Finished, FeedbackPlanned, LandingTakenOut),
)
"""Only `decide` makes these while an engine is at work, besides the events of the team."""
PERFORMED = (events.AttemptStarted, events.Landed, events.LandingRefused, LandingTestStarted)
"""What carrying out a command leaves in the journal."""
SEEN = (
    *(events.AttemptPlaced, events.AttemptEnded, LandingTestEnded),
    *(events.EngineStarted, events.TableEdited, ClockChanged),
)
"""What the engine itself sees, and decides anew upon."""

OFTEN = 500
"""Entries after which it is told how many have been compared."""


class Difference(Struct, frozen=True, kw_only=True):
    seq: int
    at: float
    recorded: Event
    decided: tuple[Command, ...]


class Replay(Struct, frozen=True, kw_only=True):
    entries: int
    decisions: int
    """How many entries were compared with what is decided now."""
    difference: Difference | None = None


def compare(
    entries: Sequence[Entry], team: TeamRules, seen: Callable[[int, int], None] = lambda _done, _total: None
) -> Replay:
    """Folds the journal entry by entry, and stops at the first one that was not decided.

    It says now and then how many entries it has `seen`, and how many there are.
    """
    walk = _Walk(entries, team)
    difference = walk.first_difference(seen)
    return Replay(entries=len(entries), decisions=walk.decisions, difference=difference)


class _Walk:
    """One fold through the journal.

    An engine whose transaction lost a race writes after the other process, without deciding again. What is recorded
    may therefore have been decided in any state since the engine's last decision.
    """

    def __init__(self, entries: Sequence[Entry], team: TeamRules) -> None:
        self._entries, self._team = entries, team
        self._fold = Fold(replay(entries[:1], team), team)
        self._since = 1
        """The place of the first entry whose state may be the one that the engine decided in."""
        self._earlier: list[tuple[Command, ...]] = []
        """What was to be done in the states from there on, without repetitions."""
        self.decisions = 0

    def first_difference(self, seen: Callable[[int, int], None]) -> Difference | None:
        engine, place, told = False, 1, 0
        while place < len(self._entries):
            if place - told >= OFTEN:
                told = place
                seen(place, len(self._entries))
            entry, state = self._entries[place], self._fold.state()
            count = self._decided(state, place) if engine else 1
            if count is None:
                decided = decide(state, self._team, entry.at)
                return Difference(seq=entry.seq, at=entry.at, recorded=entry.event, decided=decided)
            for written in self._entries[place : place + count]:
                self._fold.apply(written)
            place += count
            if self._decides_anew(entry.event):
                self._since, self._earlier = place, []
            # A journal that was made again from its folder has an engine without a process.
            engine = entry.event.pid > 0 if isinstance(entry.event, events.EngineStarted) else engine
        return None

    def _decides_anew(self, event: Event) -> bool:
        """Whether an engine that has written this decides before it writes again."""
        landing = (events.Landed, events.LandingRefused, LandingTestStarted)
        return self._only_decided(event) or isinstance(event, (*SEEN, *landing))

    def _decided(self, state: State, place: int) -> int | None:
        """How many entries from here on one decision accounts for; None if there is no such decision."""
        entry = self._entries[place]
        if isinstance(entry.event, (*SEEN, Announced)):
            return 1
        due = _to_do(decide(state, self._team, entry.at))
        must = self._must_be_decided(entry.event, due)
        again = self._later_decisions(place) if must else ()
        known = chain((due,), self._just_before(state, place), self._earlier[::-1], again)
        counts = (self._accounted(state, commands, place) for commands in known)
        count = next(filter(None, counts), 0)
        self.decisions += count
        self._remember(due)
        return count or (None if must else 1)

    def _just_before(self, state: State, place: int) -> Iterator[tuple[Command, ...]]:
        """What was decided when the state was new: time passes until a decision is written."""
        if self._entries[place - 1].at != self._entries[place].at:
            commands = _to_do(decide(state, self._team, self._entries[place - 1].at))
            self._remember(commands)
            yield commands

    def _remember(self, commands: tuple[Command, ...]) -> None:
        if commands and commands not in self._earlier[-2:]:
            self._earlier.append(commands)

    def _later_decisions(self, place: int) -> Iterator[tuple[Command, ...]]:
        """What is decided in the earlier states at the time of this entry; they are folded again, which is rare."""
        fold = Fold(replay(self._entries[: self._since], self._team), self._team)
        for entry in self._entries[self._since : place]:
            yield _to_do(decide(fold.state(), self._team, self._entries[place].at))
            fold.apply(entry)

    def _accounted(self, present: State, commands: tuple[Command, ...], place: int) -> int:
        entry = self._entries[place]
        for command in commands:
            match command, entry.event:
                case Record(decided), _ if decided and decided[0] == entry.event:
                    written, _ = record(present, self._team, decided, entry.at)
                    if written == list(self._entries[place : place + len(written)]):
                        return len(written)
                case Start(task=task, number=number), events.AttemptStarted(started, count, _, base):
                    if (task, number, present.branch.tip) == (started, count, base):
                        return 1
                case Land(task), events.Landed(task=landed) | events.LandingRefused(task=landed):
                    if task == landed:
                        return 1
                case RunLandingTest(tasks), LandingTestStarted(tasks=merged, tip=tip):
                    # What git cannot merge ends the part of the queue that is tested.
                    if tasks[: len(merged)] == merged and tip == present.branch.tip:
                        return 1
                case RunLandingTest(tasks), events.LandingRefused(task=refused):
                    if tasks[0] == refused:
                        return 1
                case _:
                    pass
        return 0

    def _must_be_decided(self, event: Event, due: tuple[Command, ...]) -> bool:
        """Whether only a decision can have led to the event: by its kind, or because one of its kind was due."""
        if self._only_decided(event) or isinstance(event, PERFORMED):
            return True
        return type(event) in {type(command.events[0]) for command in due if isinstance(command, Record)}

    def _only_decided(self, event: Event) -> bool:
        if isinstance(event, events.GateOpened):
            # A message that escalates opens a question by itself.
            return event.gate.kind not in {GateKind.consensus, GateKind.capability}
        return isinstance(event, (*DECIDED, *self._team.decided))


def _to_do(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """The commands that leave something in the journal."""
    return tuple(command for command in commands if isinstance(command, Record | Start | Land | RunLandingTest))
