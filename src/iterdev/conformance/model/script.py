"""What the model says: a script is a list of rules, a rule is a list of turns, and a turn does one thing.

The language is the same in Python, TOML and JSON, and knows neither providers nor coding agents; `default.toml` shows
all of it. A rule is chosen by `[[scenario:NAME]]` in the prompt, or else is the first that is for the task and role
which the prompt names and whose expression is found in it. The turns of a rule are played one after the other over the
whole conversation; the last one is played again and again, unless it asks for a tool.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from iterdev.core.errors import UserError

DEFAULT = Path(__file__).with_name("default.toml")

_SCENARIO = re.compile(r"\[\[scenario:([\w-]+)\]\]")
_TASK = re.compile(r"^# ([A-Z]+(?:-[A-Za-z]+)*-\d+): ", re.MULTILINE)
_ROLE = re.compile(r"^You are the ([\w-]+) of a development team\.", re.MULTILINE)


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a script, in which a misspelt key is an error."""


class Usage(Part, frozen=True):
    """Tokens of one turn; the cached ones are part of the input."""

    input: int = 100
    output: int = 20
    cached: int = 0


class Call(Part, frozen=True):
    tool: str
    """The whole name, or the end of it: coding agents put the name of an MCP server in front, each in its own way."""
    arguments: dict[str, object] = {}
    server: str = ""
    """The MCP server of a tool that may be hidden until it is searched for; then it is called without being offered."""


class Fail(Part, frozen=True):
    """An HTTP error instead of an answer."""

    status: int
    message: str = "This failure is part of the script."
    code: str = ""
    """The provider's own word for the error, where it is not the usual one of the status."""
    retry_after: float | None = None
    reset_in: float | None = None
    """Seconds until a limit is lifted, counted from the first refusal; told in the provider's way, and kept."""
    times: int | None = None
    """How often the same step of the same task is refused before it works; for ever when neither limit is given."""


class Turn(Part, frozen=True):
    """One turn of the model: something said, at most one thing done, and what goes wrong on the way."""

    say: str = ""
    write: dict[str, str] = {}
    """Contents of files by path; several files are written by several calls."""
    read: str = ""
    """The path of a file; some coding agents write over a file only after they have read it."""
    run: str = ""
    """A shell command."""
    call: Call | None = None
    final: dict[str, object] | None = None
    """The JSON answer, through the tool for structured output if there is one, else as text."""
    usage: Usage = Usage()
    fail: Fail | None = None
    delay: float = 0
    """Seconds before anything is answered."""
    hang: bool = False
    """Silence; of a stream, the headers come."""
    cut: bool = False
    """The connection is closed in the middle of the answer."""

    def __post_init__(self) -> None:
        has_final = self.final is not None
        deeds = {"write": self.write, "read": self.read, "run": self.run, "call": self.call, "final": has_final}
        done = [name for name, deed in deeds.items() if deed]
        if len(done) > 1:
            raise ValueError(f"a turn does one thing, not {' and '.join(done)}")

    @property
    def asks_for_tool(self) -> bool:
        return bool(self.write or self.read or self.run or self.call)

    def filled(self, words: Mapping[str, str]) -> "Turn":
        """Puts the values of {task}, {role}, {cwd} and of named groups into every string."""
        return msgspec.convert(_filled(msgspec.to_builtins(self), words), Turn)


OVER = Turn(say="The script is over.")


class Rule(Part, frozen=True):
    turns: Annotated[tuple[Turn, ...], Meta(min_length=1)] = field(name="turn")
    name: str = ""
    task: str = ""
    """The id of a task, or a pattern such as DEV-*."""
    role: str = ""
    match: str = ""
    """A regular expression, looked for in what the user side has said; its named groups are placeholders."""

    def __post_init__(self) -> None:
        if not (self.name or self.task or self.role or self.match):
            raise ValueError("a rule needs a name, a task, a role or a match")
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f'"{self.match}" is not a regular expression: {error}') from error

    @property
    def is_only_named(self) -> bool:
        return not (self.task or self.role or self.match)

    def words(self, prompt: str) -> dict[str, str] | None:
        """The values of the placeholders if the rule is for this prompt."""
        known = words_in(prompt)
        found = re.search(self.match, prompt)
        fits = fnmatchcase(known["task"], self.task or "*") and self.role in {"", known["role"]}
        return known | {name: text or "" for name, text in found.groupdict().items()} if fits and found else None

    def turn(self, step: int) -> Turn:
        if step < len(self.turns):
            return self.turns[step]
        return OVER if self.turns[-1].asks_for_tool else self.turns[-1]


class Chosen(Struct, frozen=True):
    rule: Rule
    words: dict[str, str]


class Script(Part, frozen=True):
    rules: tuple[Rule, ...] = field(name="rule")

    def then(self, other: "Script") -> "Script":
        """The rules of this one, then those of the other."""
        return Script(rules=self.rules + other.rules)

    def choose(self, prompt: str) -> Chosen | None:
        """The rule for a conversation: of several scenarios the one that was named last, else the first that fits."""
        if named := _SCENARIO.findall(prompt):
            rule = next((rule for rule in self.rules if rule.name == named[-1]), None)
            return Chosen(rule, rule.words(prompt) or words_in(prompt)) if rule else None
        choices = ((rule, rule.words(prompt)) for rule in self.rules if not rule.is_only_named)
        return next((Chosen(rule, words) for rule, words in choices if words is not None), None)


def words_in(prompt: str) -> dict[str, str]:
    """The task and the role that a prompt of iterdev names."""
    task, role = _TASK.search(prompt), _ROLE.search(prompt)
    return {"task": task[1] if task else "", "role": role[1] if role else ""}


def load(path: Path) -> Script:
    """Reads a script, TOML or (when its name ends so) JSON."""
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        return decode(path.read_bytes(), type=Script)
    except (OSError, UnicodeError, msgspec.DecodeError) as error:
        raise UserError(
            f'The script "{path}" cannot be used: {error}', hint=f"{DEFAULT} explains the language"
        ) from error


def _filled(value: object, words: Mapping[str, str]) -> object:
    match value:
        case str():
            for word, meaning in words.items():
                value = value.replace(f"{{{word}}}", meaning)
            return value
        case list():
            return [_filled(item, words) for item in value]
        case dict():
            return {_filled(key, words): _filled(item, words) for key, item in value.items()}
        case _:
            return value
