"""The stream-JSON messages that Claude Code writes, as values, and those that it reads.

Only what iterdev uses is here. Every release adds kinds of messages, which are skipped.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct, field

from iterdev.core.results import Usage


class Block(Struct, frozen=True):
    type: str
    text: str = ""
    name: str = ""
    input: Mapping[str, object] = {}


class Message(Struct, frozen=True):
    content: tuple[Block, ...] | str = ()


class AssistantMessage(Struct, frozen=True, tag_field="type", tag="assistant"):
    """Text or tool calls of the model."""

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
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # The end of a turn must never be missed.
        unreadable = TurnResult(is_error=True, errors=(f"its result could not be read: {error}",))
        return unreadable if _kind(line) == "result" else None


def _kind(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Kind).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


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


def allow(request: ControlRequest) -> object:
    return _response(request, subtype="success", response={"behavior": "allow", "updatedInput": request.request.input})


def deny(request: ControlRequest, reason: str) -> object:
    return _response(request, subtype="success", response={"behavior": "deny", "message": reason})


def unsupported(request: ControlRequest) -> object:
    """The response to a kind of request that iterdev does not handle."""
    return _response(request, subtype="error", error=f'"{request.request.subtype}" is not supported')


def _response(request: ControlRequest, **outcome: object) -> object:
    return {"type": "control_response", "response": {"request_id": request.request_id, **outcome}}
