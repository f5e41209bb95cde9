"""What every dialect is read into and written from: a question with its history and tools, an answer with its calls.

How either looks on the wire is known to the dialects alone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from iterdev.agents.scripted.script import Fail, Usage

Json = Mapping[str, object]

TOKENS = 100
"""The answer to whoever asks for the length of a text."""

_CALL_ID = re.compile(r"turn_(\d+)_call_\d+")
_NOT_OURS = re.compile(r"Got it\. Thanks for the context!|No response requested\.")
"""Turns that qwen and claude put into the model's mouth."""


class Parameters(Struct, frozen=True):
    """As much of a tool's JSON Schema as is needed to call it."""

    properties: Mapping[str, object] = {}
    required: tuple[str, ...] = ()


class Format(Struct, frozen=True):
    schema: dict[str, object] | None = None


class Form(Struct, frozen=True):
    """What a request says about the form of the answer, in two of the dialects."""

    format: Format | None = None

    @property
    def schema(self) -> Json | None:
        return self.format.schema if self.format else None


class Tool(Struct, frozen=True, kw_only=True):
    name: str
    parameters: Parameters = Parameters()
    freeform: bool = False
    """It takes one text instead of named arguments."""
    namespace: str = ""


class Speaker(StrEnum):
    user = "user"
    model = "model"
    other = "other"
    """The system, and the tools."""


class Spoken(Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    by: Speaker
    text: str = ""
    calls: tuple[str, ...] = ()
    """The ids of the tool calls that it makes."""


class Asked(Struct, frozen=True, kw_only=True):
    """A request for the model's next turn."""

    model: str
    streaming: bool
    history: tuple[Spoken, ...]
    tools: tuple[Tool, ...] = ()
    schema: Json | None = None
    """That the answer has to fit."""

    @property
    def prompt(self) -> str:
        return "\n".join(spoken.text for spoken in self.history if spoken.by is Speaker.user)

    @property
    def text(self) -> str:
        return "\n".join(spoken.text for spoken in self.history)

    @property
    def step(self) -> int:
        return step_after(self.history)


class ToolCall(Struct, frozen=True, kw_only=True):
    tool: str
    arguments: Json | str
    """A text for a tool that takes one."""
    namespace: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}__{self.tool}" if self.namespace else self.tool


class Answered(Struct, frozen=True, kw_only=True):
    """The model's next turn."""

    model: str
    step: int = 0
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()

    def identified(self) -> Iterator[tuple[str, ToolCall]]:
        """The calls with their ids, which are the same when the same step is asked for again."""
        for number, call in enumerate(self.calls):
            yield f"turn_{self.step}_call_{number}", call


class Event(Struct, frozen=True):
    """One server-sent event; most dialects leave the name out."""

    data: Json | str
    name: str = ""


class Failure(Struct, frozen=True, kw_only=True):
    body: Json
    headers: Mapping[str, str] = {}


class Dialect(Protocol):
    """A module that speaks one provider's protocol."""

    NAME: str
    PATH: re.Pattern[str]
    """Where requests for a turn go to."""

    def read(self, path: str, body: bytes, /) -> Asked: ...
    def whole(self, answered: Answered, /) -> Json: ...
    def stream(self, answered: Answered, /) -> Iterable[Event]: ...
    def failure(self, fail: Fail, now: float, /) -> Failure: ...


def step_after(history: Sequence[Spoken]) -> int:
    """How many turns the model has had.

    The ids of its calls tell: they stay right when a client drops a message, or sends the text and the calls of one
    turn as two. Turns without calls are counted, neighbours as one.
    """
    turns, before = 0, Speaker.other
    for spoken in history:
        if spoken.by is Speaker.model:
            if numbered := _CALL_ID.search(" ".join(spoken.calls)):
                turns = int(numbered[1]) + 1
            elif before is not Speaker.model and not _NOT_OURS.match(spoken.text):
                turns += 1
        before = spoken.by
    return turns


def pieces(text: str) -> tuple[str, ...]:
    """A text as a stream brings it: in more than one piece."""
    middle = (len(text) + 1) // 2
    return tuple(piece for piece in (text[:middle], text[middle:]) if piece)


def retry_headers(fail: Fail) -> dict[str, str]:
    """When to come back, in the one header that every provider and client knows."""
    seconds = fail.retry_after if fail.retry_after is not None else fail.reset_in
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}
