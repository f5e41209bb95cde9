"""What can be expected of an agent in a scenario, what was seen, and in which words the two differ."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from iterdev.agents.contract import AgentEvent, AgentFailure, Answer, PermissionAsked, Reply, TroubleKind
from iterdev.conformance.model.tool_server import Note
from iterdev.core.results import Misfit, Result, decode
from iterdev.core.session.team_rules import Procedure
from iterdev.core.types import TaskId
from iterdev.teams.table import DEFAULT_TEAM, TEAMS

(ROLE,) = (role for role in TEAMS[DEFAULT_TEAM].roles.values() if role.procedure is Procedure.change)
TASK = TaskId(f"{ROLE.prefix}-001")

EARLY, LATE = 2.0, 62.0
"""Seconds by which a reset time may be off; Codex tells the minute only."""


class Answered(Struct, frozen=True):
    """Every turn ended with a result that fits its schema, and these are their findings."""

    findings: tuple[str, ...]


class Discovered(Struct, frozen=True):
    """The last result has a discovery with this data, nested as it was sent."""

    data: dict[str, object]


class Failed(Struct, frozen=True):
    """The first turn ended with trouble of this kind."""

    kind: TroubleKind


class Recovered(Struct, frozen=True):
    """The last turn ended with a result that has these findings, whatever became of the turns before."""

    findings: str


class Unanswered(Struct, frozen=True):
    """The first turn had not ended when the patience was."""


class ResetTold(Struct, frozen=True):
    """The trouble says when the provider answers again."""

    seconds: float
    """From the first request."""


class Wrote(Struct, frozen=True):
    file: str
    content: str = ""
    """Any, when empty."""


class Untouched(Struct, frozen=True):
    file: str


class DenialTold(Struct, frozen=True):
    """That the agent wanted more than it may was seen, and recorded."""


class Noted(Struct, frozen=True):
    """The tool of the MCP server was used, with the right token."""

    text: str


class Heard(Struct, frozen=True):
    """The model's last request has the words in it, so many times at least."""

    words: str
    times: int = 1


Expectation = (
    Answered | Discovered | Failed | Recovered | Unanswered | ResetTold | Wrote | Untouched | DenialTold | Noted | Heard
)


class Seen(Struct, frozen=True, kw_only=True):
    """All that a scenario left behind."""

    replies: Sequence[Reply | None]
    """None for a turn that did not end in time."""
    events: Sequence[AgentEvent]
    asked: Sequence[str]
    """The bodies of the requests for a turn, without side calls."""
    first_asked: float | None
    notes: Sequence[Note]
    token: str
    files: Mapping[str, str]
    """Contents by name, of the workspace."""
    left: Sequence[str] = ()
    """The processes that were alive after the conversation was closed."""


def misses(expected: Sequence[Expectation], seen: Seen) -> tuple[str, ...]:
    """What is not as expected, in words; that nothing is left alive is expected always."""
    found = [miss for expectation in expected if (miss := _miss(expectation, seen))]
    return (*found, *(f"still alive: {line[:100]}" for line in seen.left))


def _miss(expected: Expectation, seen: Seen) -> str:
    match expected:
        case Answered(findings):
            told = tuple(_findings(reply) for reply in seen.replies)
            return "" if told == findings else f"expected an answer, got {', '.join(told)}"
        case Recovered(findings):
            told_last = _findings(seen.replies[-1])
            return "" if told_last == findings else f"expected an answer to the last turn, got {told_last}"
        case Discovered(data):
            result = _result(seen.replies[-1])
            found = [each.data for each in result.discoveries] if isinstance(result, Result) else []
            return "" if data in found else f"expected the discovery {data}, got {found}"
        case Failed(kind):
            reply = seen.replies[0]
            fits = isinstance(reply, AgentFailure) and reply.kind is kind
            return "" if fits else f'expected "{kind}", got {_told(reply)}'
        case Unanswered():
            return "" if seen.replies[0] is None else f"expected silence, got {_told(seen.replies[0])}"
        case ResetTold(seconds):
            return _reset_miss(seconds, seen)
        case Wrote(file, content):
            there = seen.files.get(file)
            fits = there is not None and content in {"", there}
            return "" if fits else f"{file} was {'not written' if there is None else f'written as {there!r}'}"
        case Untouched(file):
            return f"{file} was written" if file in seen.files else ""
        case DenialTold():
            denied = any(isinstance(event, PermissionAsked) for event in seen.events)
            return "" if denied else "no denial was told"
        case Noted(text):
            return "" if Note(text=text, token=seen.token) in seen.notes else f"the tool got {list(seen.notes)}"
        case Heard(words, times):
            count = seen.asked[-1].count(words) if seen.asked else 0
            return "" if count >= times else f'the model heard "{words}" {count} times, expected {times}'
        case _:
            assert_never(expected)


def _reset_miss(seconds: float, seen: Seen) -> str:
    reply = seen.replies[0]
    if not isinstance(reply, AgentFailure) or reply.reset_at is None or seen.first_asked is None:
        return "no reset time was told"
    off = reply.reset_at - (seen.first_asked + seconds)
    return "" if -EARLY <= off <= LATE else f"the reset time told is off by {off:.0f} s"


def _result(reply: Reply | None) -> Result | str:
    """The result in a reply, or what there is instead."""
    if not isinstance(reply, Answer):
        return _told(reply)
    try:
        return decode(reply.body, kind=ROLE.result, task=TASK)
    except Misfit as misfit:
        return f"a result that does not fit ({misfit})"


def _findings(reply: Reply | None) -> str:
    result = _result(reply)
    return result.findings if isinstance(result, Result) else result


def _told(reply: Reply | None) -> str:
    match reply:
        case None:
            return "no reply"
        case AgentFailure(kind=kind, message=message):
            return f'"{kind}" ({message})'
        case Answer(body=body):
            return f"the answer {body[:200].decode(errors='replace')}"
