"""The past of a session: every attempt at every task, and what happened beside them. A fold of its own.

The state knows the last attempt at a task; a time line and a cost over time need all of them, also those that a
rollback has undone.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.events import Entry, TeamEvent
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.types import TaskId
from iterdev.core.views.team import TeamViews


class AttemptOutcome(StrEnum):
    running = "running"
    """It has not ended, as far as the journal knows; without a living engine it is interrupted."""
    done = "done"
    failed = "failed"
    limited = "limited"
    interrupted = "interrupted"
    unmet = "unmet"
    reported = "reported"
    """The task was reported as completed while the attempt ran."""


OUTCOMES: Mapping[type, AttemptOutcome] = {
    events.Done: AttemptOutcome.done,
    events.Failed: AttemptOutcome.failed,
    events.Limited: AttemptOutcome.limited,
    events.Interrupted: AttemptOutcome.interrupted,
    events.Unmet: AttemptOutcome.unmet,
}


class PastAttempt(Struct, frozen=True, kw_only=True):
    task: TaskId
    number: int
    agent: str
    base: str
    """The commit that it worked on."""
    started_at: float
    ended_at: float | None = None
    outcome: AttemptOutcome = AttemptOutcome.running
    error: str = ""
    commit: str | None = None
    landed_at: float | None = None
    undone_at: float | None = None
    """When a rollback took it back."""
    requests: int = 0
    usage: Usage = Usage()
    denied: tuple[str, ...] = ()


class SpanKind(StrEnum):
    engine = "engine"
    wave = "wave"
    question = "question"
    pause = "pause"
    """Of a provider."""
    rollback = "rollback"
    milestone = "milestone"
    """What the team began, such as a fix round."""


class Span(Struct, frozen=True, kw_only=True):
    """Something beside the attempts, from its beginning to its end."""

    kind: SpanKind
    name: str
    begun_at: float
    ended_at: float | None = None
    """None while it lasts; a milestone and a rollback begin and end at once."""
    text: str = ""


class History(Struct, frozen=True, kw_only=True):
    seq: int = 0
    """The last entry that is in it."""
    attempts: tuple[PastAttempt, ...] = ()
    """In the order in which they were started."""
    spans: tuple[Span, ...] = ()
    """In the order in which they began."""

    def of_task(self, task: TaskId) -> tuple[PastAttempt, ...]:
        return tuple(attempt for attempt in self.attempts if attempt.task == task)


def evolve(history: History, entries: Iterable[Entry], team: TeamViews) -> History:
    """The history after further entries."""
    fold = _Fold(history, team)
    for entry in entries:
        fold.apply(entry)
    return History(seq=fold.seq, attempts=tuple(fold.attempts), spans=tuple(fold.spans))


class Spent(Struct, frozen=True):
    at: float
    total: Usage


def spending(history: History) -> tuple[Spent, ...]:
    """What was spent in all, at the end of each attempt that spent something."""
    ended = [(one.ended_at, one.usage) for one in history.attempts if one.ended_at is not None and one.usage != Usage()]
    ended.sort(key=lambda item: item[0])
    totals = accumulate((usage for _, usage in ended), initial=Usage())
    return tuple(Spent(at, total) for (at, _), total in zip(ended, list(totals)[1:], strict=True))


class _Fold:
    """One fold under way."""

    def __init__(self, history: History, team: TeamViews) -> None:
        self.seq, self._team = history.seq, team
        self.attempts, self.spans = list(history.attempts), list(history.spans)
        self._last = {attempt.task: place for place, attempt in enumerate(self.attempts)}
        self._open = {(span.kind, span.name): place for place, span in enumerate(self.spans) if span.ended_at is None}

    def apply(self, entry: Entry) -> None:
        self.seq = entry.seq
        self._of_attempt(entry.event, entry.at)
        self._of_session(entry.event, entry.at)

    def _of_attempt(self, event: object, at: float) -> None:
        match event:
            case events.AttemptStarted(task, number, agent, base):
                self._last[task] = len(self.attempts)
                self.attempts.append(PastAttempt(task=task, number=number, agent=agent, base=base, started_at=at))
            case events.AttemptEnded(task=task, outcome=outcome):
                self._change(
                    [task],
                    agent=event.agent,
                    ended_at=at,
                    outcome=OUTCOMES[type(outcome)],
                    error=event.error or getattr(outcome, "error", ""),
                    commit=outcome.commit,
                    requests=event.requests,
                    usage=outcome.usage,
                    denied=event.denied,
                )
            case events.Landed(task=task):
                self._change([task], landed_at=at)
            case LandingTakenOut(task=task, error=error):
                self._change([task], error=error)
            case events.TaskReported(task=task):
                self._end_running([task], at, AttemptOutcome.reported)
            case events.RollbackStarted(undone=undone):
                self._end_running(undone, at, AttemptOutcome.interrupted)
                for place, attempt in enumerate(self.attempts):
                    if attempt.task in undone and attempt.undone_at is None:
                        self.attempts[place] = replace(attempt, undone_at=at)
            case _:
                pass

    def _of_session(self, event: object, at: float) -> None:
        match event:
            case events.EngineStarted(pid):
                # A killed engine left no word of its end.
                self._end(SpanKind.engine, at)
                self._begin(SpanKind.engine, str(pid), at)
            case events.Paused(why) | events.Finished(why):
                self._end(SpanKind.engine, at, text=why)
            case events.WaveStarted(wave):
                self._begin(SpanKind.wave, str(wave), at)
            case events.WaveMerged(wave):
                self._end(SpanKind.wave, at, str(wave))
            case events.GateOpened(gate):
                self._begin(SpanKind.question, gate.id, at, text=gate.question)
            case events.GateAnswered(gate, choice):
                self._end(SpanKind.question, at, gate, text=choice)
            case ProviderPaused(provider, until, why):
                self.spans.append(Span(kind=SpanKind.pause, name=provider, begun_at=at, ended_at=until, text=why))
            case events.RollbackStarted(target=target, reason=reason):
                self._end(SpanKind.wave, at)
                self._end(SpanKind.question, at)
                self._happened(SpanKind.rollback, target, at, reason)
            case TeamEvent() if milestone := self._team.milestone(event):
                self._happened(SpanKind.milestone, milestone, at)
            case _:
                pass

    def _change(self, tasks: Iterable[TaskId], **fields: object) -> None:
        """Changes the last attempt at each of the tasks."""
        for task in tasks:
            if (place := self._last.get(task)) is not None:
                self.attempts[place] = replace(self.attempts[place], **fields)

    def _end_running(self, tasks: Iterable[TaskId], at: float, outcome: AttemptOutcome) -> None:
        self._change(self._running(tasks), ended_at=at, outcome=outcome)

    def _running(self, tasks: Iterable[TaskId]) -> Iterator[TaskId]:
        for task in tasks:
            if (place := self._last.get(task)) is not None and self.attempts[place].ended_at is None:
                yield task

    def _begin(self, kind: SpanKind, name: str, at: float, text: str = "") -> None:
        self._open[kind, name] = len(self.spans)
        self.spans.append(Span(kind=kind, name=name, begun_at=at, text=text))

    def _happened(self, kind: SpanKind, name: str, at: float, text: str = "") -> None:
        self.spans.append(Span(kind=kind, name=name, begun_at=at, ended_at=at, text=text))

    def _end(self, kind: SpanKind, at: float, name: str | None = None, text: str = "") -> None:
        """Ends what is open of a kind, or only that of one name; a text takes the place of the one it began with."""
        for key in [key for key in self._open if key[0] is kind and name in (None, key[1])]:
            place = self._open.pop(key)
            span = self.spans[place]
            self.spans[place] = replace(span, ended_at=at, text=text or span.text)
