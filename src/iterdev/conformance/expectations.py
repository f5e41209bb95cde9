"""Expectations on an agent in a scenario, the observation, and the differences between the two as text."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from iterdev.agents.contract import AgentEvent, AgentFailure, Answer, PermissionAsked, Reply
from iterdev.conformance.model.tool_server import Note
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Misfit, Result, decode
from iterdev.core.rules.team_rules import Procedure
from iterdev.core.types import TaskId
from iterdev.teams.table import DEFAULT_TEAM

(ROLE,) = (role for role in DEFAULT_TEAM.roles.values() if role.procedure is Procedure.change)
TASK = TaskId(f"{ROLE.prefix}-001")

EARLY, LATE = 2.0, 62.0
"""Seconds by which a reset time may be off; Codex reports the minute only."""


class Answered(Struct, frozen=True):
    """Every turn ended with a valid result, and these are their findings."""

    findings: tuple[str, ...]


class Discovered(Struct, frozen=True):
    """The last result has a discovery with this data, nested as it was sent."""

    data: dict[str, object]


class Failed(Struct, frozen=True):
    """The first turn ended with a failure of this kind."""

    kind: FailureKind


class Recovered(Struct, frozen=True):
    """The last turn ended with a result that has these findings; the turns before may have failed."""

    findings: str


class NoReply(Struct, frozen=True):
    """The first turn did not end within the timeout."""


class ResetReported(Struct, frozen=True):
    """The failure has the time at which the provider works again."""

    seconds: float
    """From the first request."""


class Wrote(Struct, frozen=True):
    file: str
    content: str = ""
    """Any, when empty."""


class NotWritten(Struct, frozen=True):
    file: str


class DenialReported(Struct, frozen=True):
    """A denied permission was reported."""


class ToolCalled(Struct, frozen=True):
    """The tool of the MCP server was called, with the right token."""

    text: str


class RequestContained(Struct, frozen=True):
    """The last request to the model contains the text, at least so many times."""

    text: str
    times: int = 1


Expectation = (
    Answered
    | Discovered
    | Failed
    | Recovered
    | NoReply
    | ResetReported
    | Wrote
    | NotWritten
    | DenialReported
    | ToolCalled
    | RequestContained
)


class Observation(Struct, frozen=True, kw_only=True):
    """What happened in a scenario."""

    replies: Sequence[Reply | None]
    """None for a turn that did not end in time."""
    events: Sequence[AgentEvent]
    requests: Sequence[str]
    """The bodies of the requests for a turn, without side calls."""
    first_request_at: float | None
    notes: Sequence[Note]
    token: str
    files: Mapping[str, str]
    """The files of the workspace, contents by name."""
    left: Sequence[str] = ()
    """The processes that were still running after the conversation was closed."""


def misses(expected: Sequence[Expectation], observation: Observation) -> tuple[str, ...]:
    """What is not as expected, as text. No scenario may leave a process running."""
    found = [miss for expectation in expected if (miss := _miss(expectation, observation))]
    return (*found, *(f"still running: {line[:100]}" for line in observation.left))


def _miss(expected: Expectation, observation: Observation) -> str:
    match expected:
        case Answered(findings):
            found_findings = tuple(_findings(reply) for reply in observation.replies)
            return "" if found_findings == findings else f"expected an answer, got {', '.join(found_findings)}"
        case Recovered(findings):
            last = _findings(observation.replies[-1])
            return "" if last == findings else f"expected an answer to the last turn, got {last}"
        case Discovered(data):
            result = _result(observation.replies[-1])
            found = [each.data for each in result.discoveries] if isinstance(result, Result) else []
            return "" if data in found else f"expected the discovery {data}, got {found}"
        case Failed(kind):
            reply = observation.replies[0]
            fits = isinstance(reply, AgentFailure) and reply.kind is kind
            return "" if fits else f'expected "{kind}", got {_describe(reply)}'
        case NoReply():
            reply = observation.replies[0]
            return "" if reply is None else f"expected no reply, got {_describe(reply)}"
        case ResetReported(seconds):
            return _reset_miss(seconds, observation)
        case Wrote(file, content):
            there = observation.files.get(file)
            fits = there is not None and content in {"", there}
            return "" if fits else f"{file} was {'not written' if there is None else f'written as {there!r}'}"
        case NotWritten(file):
            return f"{file} was written" if file in observation.files else ""
        case DenialReported():
            denied = any(isinstance(event, PermissionAsked) for event in observation.events)
            return "" if denied else "no denial was reported"
        case ToolCalled(text):
            noted = Note(text=text, token=observation.token) in observation.notes
            return "" if noted else f"the tool got {list(observation.notes)}"
        case RequestContained(text, times):
            count = observation.requests[-1].count(text) if observation.requests else 0
            return "" if count >= times else f'the request has "{text}" {count} times, expected {times}'
        case _:
            assert_never(expected)


def _reset_miss(seconds: float, observation: Observation) -> str:
    reply = observation.replies[0]
    if not isinstance(reply, AgentFailure) or reply.reset_at is None or observation.first_request_at is None:
        return "no reset time was reported"
    off = reply.reset_at - (observation.first_request_at + seconds)
    return "" if -EARLY <= off <= LATE else f"the reset time is off by {off:.0f} s"


def _result(reply: Reply | None) -> Result | str:
    """The result in a reply, or a description of the reply."""
    if not isinstance(reply, Answer):
        return _describe(reply)
    try:
        return decode(reply.body, kind=ROLE.result, task=TASK)
    except Misfit as misfit:
        return f"an invalid result ({misfit})"


def _findings(reply: Reply | None) -> str:
    result = _result(reply)
    return result.findings if isinstance(result, Result) else result


def _describe(reply: Reply | None) -> str:
    match reply:
        case None:
            return "no reply"
        case AgentFailure(kind=kind, message=message):
            return f'"{kind}" ({message})'
        case Answer(body=body):
            return f"the answer {body[:200].decode(errors='replace')}"
