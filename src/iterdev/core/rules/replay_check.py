"""Decides a whole journal again: whatever an engine decided then must be what is decided now.

It knows which events come from deciding. What was seen, or said by an agent or a person, is taken as it stands.
"""

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import Struct

from iterdev.core.collaboration import external_packages
from iterdev.core.collaboration.feedback import FeedbackPlanned
from iterdev.core.collaboration.messages import Announced
from iterdev.core.rules.decide import decide
from iterdev.core.rules.record import record
from iterdev.core.rules.schedule import Command, Land, Record, Start
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events
from iterdev.core.session.events import Entry, Event
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.gates import GateKind
from iterdev.core.session.state import State

DECIDED = (
    *get_args(events.WaveEvent | external_packages.PackageEvent),
    *(events.TaskCompleted, events.TaskFailed, events.TaskSkipped, events.TasksAdded, events.TasksReplanned),
    *(events.GateOpened, events.ConflictResolved, events.Finished, FeedbackPlanned),
)
"""Only `decide` makes these while an engine is at work, besides the events of the team."""
PERFORMED = (events.AttemptStarted, events.Landed, events.LandingRefused)
"""What carrying out a command leaves in the journal."""
SEEN = (events.AttemptEnded, events.EngineStarted, events.TableEdited)
"""What the engine itself sees, and decides anew upon."""


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


def compare(entries: Sequence[Entry], team: TeamRules) -> Replay:
    """Folds the journal entry by entry, and stops at the first one that was not decided."""
    walk = _Walk(entries, team)
    difference = walk.first_difference()
    return Replay(entries=len(entries), decisions=walk.decisions, difference=difference)


class _Walk:
    def __init__(self, entries: Sequence[Entry], team: TeamRules) -> None:
        self._entries, self._team = entries, team
        self._before: list[tuple[State, float]] = []
        """The present state, and those from which other processes' entries have led to it since the last decision.

        An engine whose transaction lost a race writes behind the other one, without deciding again. With each state
        comes the time of the entry that led to it.
        """
        self.decisions = 0

    def first_difference(self) -> Difference | None:
        state = replay(self._entries[:1], self._team)
        engine, place = False, 1
        while place < len(self._entries):
            entry = self._entries[place]
            self._before.append((state, self._entries[place - 1].at))
            count = self._decided(place) if engine else 1
            if count is None:
                decided = next(self._alternatives(entry))
                return Difference(seq=entry.seq, at=entry.at, recorded=entry.event, decided=decided)
            state, place = evolve(state, self._entries[place : place + count], self._team), place + count
            engine = self._engine_runs(entry.event, engine=engine)
        return None

    def _engine_runs(self, event: Event, *, engine: bool) -> bool:
        """Whether an engine runs after this; the states before its last decision are dropped."""
        if self._only_decided(event) or isinstance(event, (*SEEN, events.Landed, events.LandingRefused)):
            self._before.clear()
        # A journal that was made again from its folder has an engine without a process.
        return event.pid > 0 if isinstance(event, events.EngineStarted) else engine

    def _decided(self, place: int) -> int | None:
        """How many entries from here on one decision accounts for; None if there is no such decision."""
        entry = self._entries[place]
        if isinstance(entry.event, (*SEEN, Announced)):
            return 1
        for commands in self._alternatives(entry):
            if count := self._accounted(commands, place):
                self.decisions += count
                return count
        return None if self._must_be_decided(entry) else 1

    def _alternatives(self, entry: Entry) -> Iterator[tuple[Command, ...]]:
        """What is decided in the present state, then in those before it; time passes until a decision is written."""
        for state, since in reversed(self._before):
            for now in (entry.at, since):
                yield decide(state, self._team, now)

    def _accounted(self, commands: tuple[Command, ...], place: int) -> int:
        entry, (present, _) = self._entries[place], self._before[-1]
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
                case _:
                    pass
        return 0

    def _must_be_decided(self, entry: Entry) -> bool:
        """Whether only a decision can have led to the event: by its kind, or because one of its kind was due."""
        if self._only_decided(entry.event) or isinstance(entry.event, PERFORMED):
            return True
        due = [command.events[0] for command in next(self._alternatives(entry)) if isinstance(command, Record)]
        return type(entry.event) in map(type, due)

    def _only_decided(self, event: Event) -> bool:
        if isinstance(event, events.GateOpened):
            # A message that escalates opens a question by itself.
            return event.gate.kind not in {GateKind.consensus, GateKind.capability}
        return isinstance(event, (*DECIDED, *self._team.decided))
