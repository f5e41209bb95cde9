"""The lines that Claude Code writes in its stream-JSON mode, as values, and those that it reads.

Only what iterdev makes use of is here. Every release brings lines of new kinds: they are not read.
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


class Assistant(Struct, frozen=True, tag_field="type", tag="assistant"):
    """A part of what the model says or does."""

    message: Message


class Notice(Struct, frozen=True, tag_field="type", tag="system"):
    subtype: str = ""
    retry_delay_ms: float = 0
    error_status: int | None = None


class RateLimit(Struct, frozen=True, rename="camel"):
    status: str = ""
    resets_at: float | None = None


class RateLimited(Struct, frozen=True, tag_field="type", tag="rate_limit_event"):
    rate_limit_info: RateLimit


class Request(Struct, frozen=True):
    subtype: str
    tool_name: str = ""
    input: Mapping[str, object] = {}


class Asked(Struct, frozen=True, tag_field="type", tag="control_request"):
    """A question that holds up the turn until it is answered."""

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


class Ended(Struct, frozen=True, kw_only=True, tag_field="type", tag="result"):
    """The end of a turn. Its subtype says "success" for most failures too: `is_error` is what counts."""

    is_error: bool = False
    subtype: str = ""
    terminal_reason: str | None = None
    api_error_status: int | None = None
    result: str | None = None
    errors: tuple[str, ...] = ()
    structured_output: Raw = Raw()
    session_id: str = ""
    total_cost_usd: float = 0.0
    """Of the whole conversation, also of the part before it was taken up again."""
    usage: Tokens = Tokens()
    model_usage_since_last_result: Mapping[str, ModelTokens] | None = None

    @property
    def text(self) -> str:
        return self.result or "; ".join(self.errors) or self.subtype

    @property
    def interrupted(self) -> bool:
        return (self.terminal_reason or "").startswith("aborted")


Event = Assistant | Notice | RateLimited | Asked | Ended

_EVENTS: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class _Kind(Struct, frozen=True):
    type: str = ""


def read(line: bytes) -> Event | None:
    """The event of a line, if it is one that we know."""
    try:
        return _EVENTS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Whoever waits for the end of a turn must hear of it in any case.
        unreadable = Ended(is_error=True, errors=(f"its result could not be read: {error}",))
        return unreadable if _kind(line) == "result" else None


def _kind(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=_Kind).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def spent(ended: Ended, cost_before: float | None) -> Usage:
    """What a turn has used; the cost so far is unknown for a conversation that was taken up again."""
    models = ended.model_usage_since_last_result
    if models is not None:
        return Usage(
            input_tokens=sum(_input(model) for model in models.values()),
            output_tokens=sum(model.output_tokens for model in models.values()),
            cost_usd=sum(model.cost for model in models.values()),
        )
    cost = 0.0 if cost_before is None else max(0.0, ended.total_cost_usd - cost_before)
    return Usage(input_tokens=_input(ended.usage), output_tokens=ended.usage.output_tokens, cost_usd=cost)


def _input(tokens: Tokens | ModelTokens) -> int:
    return tokens.input_tokens + tokens.cache_creation_input_tokens + tokens.cache_read_input_tokens


def prompt(text: str) -> object:
    return {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


def interruption(number: int) -> object:
    return {"type": "control_request", "request_id": f"interrupt-{number}", "request": {"subtype": "interrupt"}}


def permission(asked: Asked) -> object:
    return _response(asked, {"behavior": "allow", "updatedInput": asked.request.input})


def denial(asked: Asked, reason: str) -> object:
    return _response(asked, {"behavior": "deny", "message": reason})


def _response(asked: Asked, response: Mapping[str, object]) -> object:
    answer = {"subtype": "success", "request_id": asked.request_id, "response": response}
    return {"type": "control_response", "response": answer}


def refusal(asked: Asked) -> object:
    """Says that a question of this kind is never answered here."""
    error = f'"{asked.request.subtype}" is not supported'
    return {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": asked.request_id, "error": error},
    }
