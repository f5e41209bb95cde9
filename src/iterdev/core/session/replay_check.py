"""Decides a whole journal again: whatever an engine decided then must be what is decided now.

It knows which events come from deciding. What was seen or said by somebody, such as the end of an attempt or an
answer, is taken as it stands.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from iterdev.core.collaboration.external_packages import DependenciesOverridden, DependenciesRechecked, UpdateNeeded
from iterdev.core.collaboration.feedback import FeedbackTakenUp
from iterdev.core.session import events as session_events
from iterdev.core.session.decide import Command, Land, Record, Start, decide
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State

DECIDED = (
    session_events.PipelineChosen,
    session_events.GateOpened,
    session_events.WaveStarted,
    session_events.WaveMerged,
    session_events.TaskFailed,
    session_events.TaskSkipped,
    session_events.NothingLeft,
    session_events.TasksAdded,
    session_events.TasksReplanned,
    session_events.SprintEnded,
    session_events.SprintStarted,
    session_events.ConflictResolved,
    session_events.RoundStarted,
    session_events.Reverified,
    session_events.ReviewPassed,
    session_events.ConvergenceForced,
    session_events.RoundDecided,
    session_events.Finished,
    DependenciesOverridden,
    DependenciesRechecked,
    UpdateNeeded,
    FeedbackTakenUp,
)
"""Nobody but `decide` makes these while an engine is at work."""
PERFORMED = (session_events.AttemptStarted, session_events.Landed, session_events.LandingRefused)
"""What carrying out a command leaves in the journal."""
SEEN = (session_events.AttemptEnded, session_events.EngineStarted, session_events.TableEdited)
"""What the engine itself sees, and decides anew upon."""


class Difference(Struct, frozen=True, kw_only=True):
    """The first entry that would not be written today."""

    seq: int
    at: float
    recorded: session_events.Event
    decided: tuple[Command, ...]


class Replay(Struct, frozen=True, kw_only=True):
    entries: int
    decisions: int
    """How many entries were compared with what is decided now."""
    difference: Difference | None = None


class _Before(Struct, frozen=True):
    """A state in which an engine may have decided, and the time of the entry that led to it."""

    state: State
    since: float


def compare(entries: Sequence[session_events.Entry]) -> Replay:
    """Folds the journal entry by entry, and stops at the first one that was not decided."""
    walk = _Walk(entries)
    for difference in walk.differences():
        return Replay(entries=len(entries), decisions=walk.decisions, difference=difference)
    return Replay(entries=len(entries), decisions=walk.decisions)


class _Walk:
    def __init__(self, entries: Sequence[session_events.Entry]) -> None:
        self._entries = entries
        self._before: list[_Before] = []
        """The present state, and those from which other processes' entries have led to it since the last decision.

        An engine that is told that somebody wrote before it writes behind that, without deciding again.
        """
        self.decisions = 0

    def differences(self) -> Iterator[Difference]:
        state = replay(self._entries[:1])
        engine, place = False, 1
        while state and place < len(self._entries):
            entry = self._entries[place]
            self._before.append(_Before(state, self._entries[place - 1].at))
            count = self._decided(place) if engine else 1
            if count is None:
                decided = next(self._alternatives(entry))
                yield Difference(seq=entry.seq, at=entry.at, recorded=entry.event, decided=decided)
            taken = self._entries[place : place + (count or 1)]
            state, place = evolve(state, taken), place + len(taken)
            engine = self._goes_on(taken[-1].event, engine=engine)

    def _goes_on(self, event: session_events.Event, *, engine: bool) -> bool:
        """Whether an engine is at work after this; what came before its last decision is forgotten with it."""
        if isinstance(event, (*DECIDED, *SEEN, session_events.Landed, session_events.LandingRefused)):
            self._before.clear()
        # A journal that was made again from its folder has an engine without a process.
        return event.pid > 0 if isinstance(event, session_events.EngineStarted) else engine

    def _decided(self, place: int) -> int | None:
        """How many entries from here on one decision accounts for; None if there is no such decision."""
        entry = self._entries[place]
        if isinstance(entry.event, SEEN):
            return 1
        for commands in self._alternatives(entry):
            if count := self._accounted(commands, place):
                self.decisions += count
                return count
        return None if self._had_to_be(entry) else 1

    def _alternatives(self, entry: session_events.Entry) -> Iterator[tuple[Command, ...]]:
        """What is decided in the present state, then in those before it; time passes until a decision is written."""
        for before in reversed(self._before):
            for now in (entry.at, before.since):
                yield decide(before.state, now)

    def _accounted(self, commands: tuple[Command, ...], place: int) -> int:
        entry = self._entries[place]
        for command in commands:
            match command, entry.event:
                case Record(events), _:
                    written = tuple(other.event for other in self._entries[place : place + len(events)])
                    if written == events:
                        return len(events)
                case Start(task=task, number=number), session_events.AttemptStarted(started, count, _, base):
                    if (task, number, self._before[-1].state.tip) == (started, count, base):
                        return 1
                case Land(task), session_events.Landed(landed) | session_events.LandingRefused(landed):
                    if task == landed:
                        return 1
                case _:
                    pass
        return 0

    def _had_to_be(self, entry: session_events.Entry) -> bool:
        """Whether only a decision can have led to the event: by its kind, or because one of its kind was due."""
        if isinstance(entry.event, (*DECIDED, *PERFORMED)):
            return True
        due = [command.events[0] for command in next(self._alternatives(entry)) if isinstance(command, Record)]
        return type(entry.event) in map(type, due)
