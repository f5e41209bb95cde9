"""The stream-JSON messages that Claude Code writes, as values, the failures they report, and messages that it reads.

Only what iterdev uses is here. Every release adds kinds of messages, which are skipped.
"""

from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct, field

from iterdev.agents.common.failures import kind_in
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

BY_REASON: Mapping[str, FailureKind] = {
    "error_max_budget_usd": FailureKind.over_budget,
    "prompt_too_long": FailureKind.too_long,
}
BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.not_logged_in,
    402: FailureKind.over_budget,
    403: FailureKind.not_logged_in,
    408: FailureKind.overloaded,
    413: FailureKind.too_long,
    429: FailureKind.limited,
}
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.over_budget: r"credit balance|out of usage credits|spend limit",
    FailureKind.limited: r"rate.?limit|usage limit|hit your .{0,40}limit|limit reached|too many requests",
    FailureKind.too_long: r"(prompt|input) is too long|context (window|length|limit)|exceeds? .{0,40}tokens",
    FailureKind.not_logged_in: r"not logged in|/login|invalid (x-)?api.?key|authenticat|oauth token"
    r"|token (has )?(expired|been revoked)",
    FailureKind.overloaded: r"overloaded|server-side issue|connection|unable to connect|ECONN\w+|socket|stream"
    r"|fetch failed|timed out",
}


class Block(Struct, frozen=True):
    type: str
    text: str = ""
    name: str = ""
    input: Mapping[str, object] = {}


class Message(Struct, frozen=True):
    content: tuple[Block, ...] | str = ()


class AssistantMessage(Struct, frozen=True, tag_field="type", tag="assistant"):
    message: Message


class SystemMessage(Struct, frozen=True, tag_field="type", tag="system"):
    subtype: str = ""
    retry_delay_ms: float = 0
    error_status: int | None = None


class RateLimit(Struct, frozen=True, rename="camel"):
    status: str = ""
    resets_at: float | None = None


class RateLimitEvent(Struct, frozen=True, tag_field="type", tag="rate_limit_event"):
    rate_limit_info: RateLimit


class Request(Struct, frozen=True):
    subtype: str
    tool_name: str = ""
    input: Mapping[str, object] = {}


class ControlRequest(Struct, frozen=True, tag_field="type", tag="control_request"):
    """A request that blocks the turn until it is answered."""

    request_id: str
    request: Request


class Tokens(Struct, frozen=True):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class ModelTokens(Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    cost: float = field(default=0.0, name="costUSD")


class TurnResult(Struct, frozen=True, kw_only=True, tag_field="type", tag="result"):
    """The end of a turn. The subtype is "success" for most failures too: `is_error` decides."""

    is_error: bool = False
    subtype: str = ""
    terminal_reason: str | None = None
    api_error_status: int | None = None
    result: str | None = None
    errors: tuple[str, ...] = ()
    structured_output: Raw = Raw()
    session_id: str = ""
    total_cost_usd: float = 0.0
    """Of the whole conversation, including the part before it was resumed."""
    usage: Tokens = Tokens()
    model_usage_since_last_result: Mapping[str, ModelTokens] | None = None

    @property
    def text(self) -> str:
        return self.result or "; ".join(self.errors) or self.subtype

    @property
    def structured(self) -> bytes:
        """The structured output as JSON; empty when there is none."""
        output = bytes(self.structured_output)
        return b"" if output == b"null" else output

    @property
    def interrupted(self) -> bool:
        return (self.terminal_reason or "").startswith("aborted")


Event = AssistantMessage | SystemMessage | RateLimitEvent | ControlRequest | TurnResult

_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class _Kind(Struct, frozen=True):
    type: str = ""


def read(line: bytes) -> Event | None:
    """The event of a line, if it is of a known kind."""
    try:
        return _EVENTS.decode(line)
    except (ValueError, RecursionError) as error:
        with suppress(ValueError, RecursionError):
            if msgspec.json.decode(line, type=_Kind).type == "result":
                # The end of a turn must never be missed.
                return TurnResult(is_error=True, errors=(f"its result could not be read: {error}",))
        return None


def failure_kind(result: TurnResult) -> FailureKind:
    reason = BY_REASON.get(result.subtype) or BY_REASON.get(result.terminal_reason or "")
    status = result.api_error_status or 0
    by_status = BY_STATUS.get(status) or (FailureKind.overloaded if status >= 500 else None)
    return reason or by_status or kind_in(result.text, BY_MESSAGE) or FailureKind.crashed


def provider_wait(status: int | None, milliseconds: float) -> float | None:
    """The seconds that the provider asks to wait; Claude Code's own waits are random, not whole seconds."""
    asked = status == 429 and milliseconds >= 1000 and milliseconds % 1000 == 0
    return milliseconds / 1000 if asked else None


def turn_usage(result: TurnResult, cost_before: float | None) -> Usage:
    """What a turn has used; the cost before it is unknown in a conversation that was resumed."""
    models = result.model_usage_since_last_result
    if models is not None:
        return Usage(
            input_tokens=sum(_input(model) for model in models.values()),
            output_tokens=sum(model.output_tokens for model in models.values()),
            cost_usd=sum(model.cost for model in models.values()),
        )
    cost = 0.0 if cost_before is None else max(0.0, result.total_cost_usd - cost_before)
    return Usage(input_tokens=_input(result.usage), output_tokens=result.usage.output_tokens, cost_usd=cost)


def _input(tokens: Tokens | ModelTokens) -> int:
    return tokens.input_tokens + tokens.cache_creation_input_tokens + tokens.cache_read_input_tokens


def prompt(text: str) -> object:
    return {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def interrupt(number: int) -> object:
    return {"type": "control_request", "request_id": f"interrupt-{number}", "request": {"subtype": "interrupt"}}


def permission(request: ControlRequest, denial: str) -> object:
    """The response to a request for a permission: allowed as asked, or denied with these words."""
    allowed = {"behavior": "allow", "updatedInput": request.request.input}
    return response(request, subtype="success", response={"behavior": "deny", "message": denial} if denial else allowed)


def response(request: ControlRequest, **outcome: object) -> object:
    return {"type": "control_response", "response": {"request_id": request.request_id, **outcome}}
