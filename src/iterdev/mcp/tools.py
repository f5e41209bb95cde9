"""Tools and prompts of a server: what each is called, what it takes, and what its answer can be."""

from collections.abc import Mapping
from functools import cache
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from iterdev.mcp.messages import Document

Arguments = TypeVar("Arguments", bound=Struct)


class CallRejected(Exception):
    """A call that cannot be granted; the text says what to do about it."""


class Hints(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a client may know of a tool before it asks the user whether it may be called."""

    read_only_hint: bool = False
    destructive_hint: bool = False
    open_world_hint: bool = False


class Tool(Struct, Generic[Arguments], frozen=True, kw_only=True):
    name: str
    description: str
    arguments: type[Arguments]
    hints: Hints | None = None

    @property
    def schema(self) -> Mapping[str, object]:
        return _schema(self.arguments)

    @property
    def listed(self) -> Document:
        listed: Document = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return listed if self.hints is None else {**listed, "annotations": self.hints}


@cache
def _schema(arguments: type[Struct]) -> Mapping[str, object]:
    """The JSON Schema of the arguments; not a reference at its root, which some agents do not follow."""
    whole = msgspec.json.schema(arguments, schema_hook=lambda _kind: {"title": "any JSON value"})
    root: dict[str, object] = whole["$defs"][arguments.__name__]
    return root


class Prompt(Struct, frozen=True, kw_only=True):
    """A text that the user of a client can have sent to the model; {argument} is what the user typed."""

    name: str
    description: str
    argument: str
    argument_description: str
    text: str

    @property
    def listed(self) -> Document:
        argument = {"name": self.argument, "description": self.argument_description, "required": False}
        return {"name": self.name, "description": self.description, "arguments": [argument]}

    def filled(self, given: Mapping[str, str]) -> Document:
        text = self.text.replace(f"{{{self.argument}}}", given.get(self.argument, ""))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": self.description, "messages": [message]}


class Text(Struct, frozen=True, kw_only=True):
    """What a tool says."""

    text: str
    is_error: bool = False


class Question(Struct, frozen=True, kw_only=True):
    """A question to the user of a client, with choices of which the first one is the default."""

    text: str
    choices: tuple[str, ...]
    titles: Mapping[str, str] = {}
    """What each choice means."""

    FIELD = "choice"

    @property
    def params(self) -> Document:
        """As a form with one field."""
        listed = [{"const": choice, "title": self.titles.get(choice) or choice} for choice in self.choices]
        field = {"type": "string", "title": "Answer", "oneOf": listed, "default": self.choices[0]}
        schema = {"type": "object", "properties": {self.FIELD: field}, "required": [self.FIELD]}
        return {"mode": "form", "message": self.text, "requestedSchema": schema}


class Response(Struct, frozen=True, kw_only=True):
    """What the user said to a question."""

    action: str
    content: Mapping[str, object] | None = None

    @property
    def choice(self) -> str | None:
        """None if the user did not answer."""
        chosen = (self.content or {}).get(Question.FIELD) if self.action == "accept" else None
        return chosen if isinstance(chosen, str) else None


class Asked(Struct, frozen=True):
    """The tool needs answers of the user, and is then to be called again with them."""

    questions: Mapping[str, Question]


class Begun(Struct, frozen=True):
    """The tool goes on as a task of the tasks extension."""

    task: Document


ToolAnswer = Text | Asked | Begun


def as_requests(questions: Mapping[str, Question]) -> Document:
    return {key: {"method": "elicitation/create", "params": one.params} for key, one in questions.items()}


def as_json(document: object) -> Text:
    return Text(text=msgspec.json.encode(document).decode())
