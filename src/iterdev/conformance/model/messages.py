"""Requests to a model and its responses, independent of the provider; the dialect modules read and write them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from iterdev.agents.scripted.script import Fail, Usage

Json = Mapping[str, object]

TOKENS = 100
"""The response to a request for the number of tokens of a text."""

_CALL_ID = re.compile(r"turn_(\d+)_call_\d+")
_INSERTED = re.compile(r"Got it\. Thanks for the context!|No response requested\.")
"""Messages that qwen and claude insert in the name of the model."""


class Parameters(Struct, frozen=True):
    """The part of a tool's JSON Schema that is needed to call it."""

    properties: Mapping[str, object] = {}
    required: tuple[str, ...] = ()


class TextPart(Struct, frozen=True):
    """A part of a message; parts of other kinds have no text."""

    text: str = ""


class Tool(Struct, frozen=True, kw_only=True):
    name: str
    parameters: Parameters = Parameters()
    freeform: bool = False
    """It takes one text instead of named arguments."""
    namespace: str = ""


class Author(StrEnum):
    user = "user"
    model = "model"
    other = "other"
    """The system, and the tools."""


AUTHORS = {"user": Author.user, "assistant": Author.model, "model": Author.model}
"""By their names in the dialects."""


class Message(Struct, frozen=True, kw_only=True):
    author: Author = Author.other
    text: str = ""
    calls: tuple[str, ...] = ()
    """The ids of the tool calls that it makes."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    model: str
    streaming: bool
    history: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: Json | None = None
    """The answer has to match it."""

    @property
    def prompt(self) -> str:
        return "\n".join(message.text for message in self.history if message.author is Author.user)

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.history)

    @property
    def turn(self) -> int:
        """How many turns the model has had.

        The ids of its calls contain the number, which is right even when a client drops a message, or sends the text
        and the calls of one turn as two messages. Turns without calls are counted, adjacent ones as one.
        """
        turns, before = 0, Author.other
        for message in self.history:
            if message.author is Author.model:
                if numbered := _CALL_ID.search(" ".join(message.calls)):
                    turns = int(numbered[1]) + 1
                elif before is not Author.model and not _INSERTED.match(message.text):
                    turns += 1
            before = message.author
        return turns


class ToolCall(Struct, frozen=True, kw_only=True):
    tool: str
    arguments: Json | str
    """A text for a tool that takes one."""
    namespace: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}__{self.tool}" if self.namespace else self.tool


class ModelResponse(Struct, frozen=True, kw_only=True):
    model: str
    turn: int = 0
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()

    def calls_with_ids(self) -> Iterator[tuple[str, ToolCall]]:
        """The calls with their ids, which are the same when the same turn is requested again."""
        for number, call in enumerate(self.calls):
            yield f"turn_{self.turn}_call_{number}", call


class Failure(Struct, frozen=True, kw_only=True):
    body: Json
    headers: Mapping[str, str] = {}


class Dialect(Protocol):
    """A module for the protocol of one provider."""

    NAME: str
    PATH: re.Pattern[str]
    """The path of requests for a turn."""

    def read(self, path: str, body: bytes, /) -> ModelRequest: ...
    def whole(self, response: ModelResponse, /) -> Json: ...
    def stream(self, response: ModelResponse, /) -> Iterable[Json | str]:
        """The data of server-sent events; an event has a name if its data has a type."""

    def failure(self, fail: Fail, now: float, /) -> Failure: ...


def text_of(content: str | Sequence[TextPart] | None) -> str:
    return content if isinstance(content, str) else "\n".join(part.text for part in content or () if part.text)


def schema_in(config: Json | None) -> Json | None:
    """The schema of the answer, in the part of a request that configures the answer."""
    match config:
        case (
            {"format": {"schema": dict(schema)}}
            | {"json_schema": {"schema": dict(schema)}}
            | {"responseJsonSchema": dict(schema)}
            | {"responseSchema": dict(schema)}
        ):
            return schema
        case _:
            return None


def pieces(text: str) -> tuple[str, ...]:
    """A text in the pieces of a stream."""
    middle = (len(text) + 1) // 2
    return tuple(piece for piece in (text[:middle], text[middle:]) if piece)


def retry_headers(fail: Fail) -> dict[str, str]:
    """The header for the time of a retry, which all providers and clients share."""
    seconds = fail.retry_after if fail.retry_after is not None else fail.reset_in
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}
