"""What needs the user now: each with its reason, and the commands that do something about it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.formatting import counted, one_line
from iterdev.core.ids import ZONE
from iterdev.core.session.events import Finished
from iterdev.core.session.state import State
from iterdev.core.types import Phase, SessionId, Status, TaskId
from iterdev.core.views.gates import GateView
from iterdev.core.views.outcome import OutcomeView
from iterdev.core.views.why import pause_text, pauses, stall

NAMED = 5
"""Tasks that a sentence names."""


class NeedKind(StrEnum):
    """The most severe first."""

    question = "question"
    failed = "failed"
    conflict = "conflict"
    """Work is not on the branch, because it could not be merged."""
    stalled = "stalled"
    """Nothing is ready, nothing runs, and something waits."""
    agent = "agent"
    """An agent cannot be used."""
    unfinished = "unfinished"
    """There is work to do, and no engine that does it."""
    denied = "denied"
    """Agents asked for what they may not do."""
    ready = "ready"
    """The work is done, and not accepted."""
    paused = "paused"
    """A provider is paused, which ends by itself: there is nothing to do."""


ORDER = {kind: number for number, kind in enumerate(NeedKind)}


class Need(Struct, frozen=True, kw_only=True):
    kind: NeedKind
    session: SessionId
    about: str
    """A task, an agent, a provider, or the session."""
    since: float
    text: str
    """The reason, in one sentence."""
    commands: tuple[str, ...] = ()
    """What can be pasted, the likeliest first."""
    gate: str = ""
    """The id of the question, if it is one."""


def needs(
    state: State,
    outcome: OutcomeView,
    gates: Sequence[GateView],
    verdicts: Sequence[str],
    *,
    engine_alive: bool,
    zone: tzinfo = ZONE,
) -> tuple[Need, ...]:
    """All that a session needs; an archived or accepted one needs nothing."""
    if state.lifecycle.phase is Phase.archived or state.lifecycle.accepted:
        return ()
    found = (
        *_questions(state, gates, engine_alive=engine_alive),
        *_failures(state, outcome),
        *_conflicts(state, outcome),
        *_ready(state, outcome, verdicts),
    )
    if not state.lifecycle.is_finished:
        found += (*_standstill(state, engine_alive=engine_alive), *_agents(state), *_pauses(state, zone))
    return in_order(found)


def in_order(found: Iterable[Need]) -> tuple[Need, ...]:
    """The most severe first, and of the same kind the oldest."""
    return tuple(sorted(found, key=lambda need: (ORDER[need.kind], need.since)))


def _need(
    state: State, kind: NeedKind, text: str, *commands: str, about: str = "the session", since: float | None = None
) -> Need:
    at = state.updated_at if since is None else since
    return Need(kind=kind, session=state.session.id, about=about, since=at, text=text, commands=commands)


def _command(state: State, verb: str, *words: str) -> str:
    return " ".join(("iterdev", verb, state.session.id, *words))


def _questions(state: State, gates: Sequence[GateView], *, engine_alive: bool) -> Iterator[Need]:
    # A session that ran in the background goes on there by itself.
    then = () if engine_alive or state.lifecycle.detached else (_command(state, "resume"),)
    for gate in gates:
        answers = (_command(state, "answer", gate.id, choice) for choice in gate.choices[: gate.listed])
        kind, since = NeedKind.question, gate.opened_at
        asked = _need(state, kind, gate.question, *answers, *then, about=gate.about, since=since)
        yield replace(asked, gate=gate.id)


def _failures(state: State, outcome: OutcomeView) -> Iterator[Need]:
    """Tasks that failed, and what else speaks against a session that is over; a rejected plan is no failure."""
    if state.lifecycle.why == Finished.WHY_REJECTED:
        return
    retry = (_command(state, "retry"),) if state.lifecycle.is_finished else ()
    failed = {task: one for task, one in state.tasks.progress.items() if one.status is Status.failed}
    if failed:
        task, progress = next(iter(failed.items()))
        text = f"{task} failed: {one_line(progress.error)}" if len(failed) == 1 else f"{_named(failed)} failed"
        logs = _command(state, "logs", task)
        yield _need(state, NeedKind.failed, text, logs, *retry, about=task, since=progress.ended_at)
    elif outcome.reasons:
        text, since = f"not successful: {'; '.join(outcome.reasons)}", state.lifecycle.finished_at
        yield _need(state, NeedKind.failed, text, _command(state, "report"), *retry, since=since)
    for task, progress in failed.items():
        if progress.denied:
            text, why = f"{task} asked for, and was denied: {progress.denied[-1]}", _command(state, "why", task)
            yield _need(state, NeedKind.denied, text, why, about=task, since=progress.ended_at)


def _named(tasks: Iterable[TaskId]) -> str:
    names = list(tasks)
    rest = f" and {counted(len(names) - NAMED, 'other')}" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{rest}"


def _conflicts(state: State, outcome: OutcomeView) -> Iterator[Need]:
    for task, text in outcome.not_landed.items():
        diff, since = _command(state, "diff", task), state.tasks.progress[task].ended_at
        yield _need(state, NeedKind.conflict, f"{task}: {text}", diff, about=task, since=since)


def _ready(state: State, outcome: OutcomeView, verdicts: Sequence[str]) -> Iterator[Need]:
    if outcome.succeeded and state.branch.tip != state.branch.base:
        text = "; ".join((f"{counted(state.tasks.completed, 'task')} completed, not accepted yet", *verdicts))
        commands = _command(state, "diff"), _command(state, "accept")
        yield _need(state, NeedKind.ready, text, *commands, since=state.lifecycle.finished_at)


def _standstill(state: State, *, engine_alive: bool) -> Iterator[Need]:
    """A session that asks nothing, and has nothing that could start, or no engine that would start it."""
    if state.gates.open:
        return
    if blocked := stall(state, engine_alive=engine_alive):
        commands = _command(state, "resume"), _command(state, "why", blocked.split()[0])
        yield _need(state, NeedKind.stalled, blocked, *commands, since=state.last.at)
    elif not engine_alive:
        left = f"; left unfinished: {_named(state.attempts.running)}" if state.attempts.running else ""
        text = f"no engine is running: {state.why or 'the last one ended without saying why'}{left}"
        yield _need(state, NeedKind.unfinished, text, _command(state, "resume"))


def _agents(state: State) -> Iterator[Need]:
    for agent, why in state.providers.unusable.items():
        yield _need(state, NeedKind.agent, f"{agent} cannot be used: {why}", "iterdev doctor", about=agent)


def _pauses(state: State, zone: tzinfo) -> Iterator[Need]:
    return (_need(state, NeedKind.paused, pause_text(one), about=one.provider) for one in pauses(state, zone))
