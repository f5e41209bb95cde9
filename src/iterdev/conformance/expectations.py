"""Expectations on an agent in a scenario, the observation, and the differences between the two as text."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

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


class Observation(Struct, frozen=True, kw_only=True):
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


class Expectation(Struct, frozen=True):
    @abstractmethod
    def miss(self, observation: Observation) -> str:
        """What was observed instead; empty if it is as expected."""


def misses(expected: Sequence[Expectation], observation: Observation) -> tuple[str, ...]:
    """What is not as expected, as text. No scenario may leave a process running."""
    found = [miss for expectation in expected if (miss := expectation.miss(observation))]
    return (*found, *(f"still running: {line[:100]}" for line in observation.left))


class Answered(Expectation, frozen=True):
    """Every turn ended with a valid result, and these are their findings."""

    findings: tuple[str, ...]

    def miss(self, observation: Observation) -> str:
        found = tuple(_findings(reply) for reply in observation.replies)
        return "" if found == self.findings else f"expected an answer, got {', '.join(found)}"


class Discovered(Expectation, frozen=True):
    """The last result has a discovery with this data, nested as it was sent."""

    data: dict[str, object]

    def miss(self, observation: Observation) -> str:
        result = _result(observation.replies[-1])
        found = [each.data for each in result.discoveries] if isinstance(result, Result) else []
        return "" if self.data in found else f"expected the discovery {self.data}, got {found}"


class Failed(Expectation, frozen=True):
    """The first turn ended with a failure of this kind."""

    kind: FailureKind

    def miss(self, observation: Observation) -> str:
        reply = observation.replies[0]
        fits = isinstance(reply, AgentFailure) and reply.kind is self.kind
        return "" if fits else f'expected "{self.kind}", got {_describe(reply)}'


class Recovered(Expectation, frozen=True):
    """The last turn ended with a result that has these findings; the turns before may have failed."""

    findings: str

    def miss(self, observation: Observation) -> str:
        last = _findings(observation.replies[-1])
        return "" if last == self.findings else f"expected an answer to the last turn, got {last}"


class NoReply(Expectation, frozen=True):
    """The first turn did not end within the timeout."""

    def miss(self, observation: Observation) -> str:
        reply = observation.replies[0]
        return "" if reply is None else f"expected no reply, got {_describe(reply)}"


class ResetReported(Expectation, frozen=True):
    """The failure has the time at which the provider works again."""

    seconds: float
    """From the first request."""

    def miss(self, observation: Observation) -> str:
        reply = observation.replies[0]
        if not isinstance(reply, AgentFailure) or reply.reset_at is None or observation.first_request_at is None:
            return "no reset time was reported"
        off = reply.reset_at - (observation.first_request_at + self.seconds)
        return "" if -EARLY <= off <= LATE else f"the reset time is off by {off:.0f} s"


class Wrote(Expectation, frozen=True):
    file: str
    content: str = ""
    """Any, when empty."""

    def miss(self, observation: Observation) -> str:
        there = observation.files.get(self.file)
        if there is None:
            return f"{self.file} was not written"
        return "" if self.content in {"", there} else f"{self.file} was written as {there!r}"


class NotWritten(Expectation, frozen=True):
    file: str

    def miss(self, observation: Observation) -> str:
        return f"{self.file} was written" if self.file in observation.files else ""


class DenialReported(Expectation, frozen=True):
    def miss(self, observation: Observation) -> str:
        denied = any(isinstance(event, PermissionAsked) for event in observation.events)
        return "" if denied else "no denial was reported"


class ToolCalled(Expectation, frozen=True):
    """The tool of the MCP server was called, with the right token."""

    text: str

    def miss(self, observation: Observation) -> str:
        noted = Note(text=self.text, token=observation.token) in observation.notes
        return "" if noted else f"the tool got {list(observation.notes)}"


class RequestContained(Expectation, frozen=True):
    """The last request to the model contains the text, at least so many times."""

    text: str
    times: int = 1

    def miss(self, observation: Observation) -> str:
        count = observation.requests[-1].count(self.text) if observation.requests else 0
        return "" if count >= self.times else f'the request has "{self.text}" {count} times, expected {self.times}'


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
