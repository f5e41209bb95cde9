"""Scripts for the scripted agent and the scripted model, in one language: docs/scripted-agent.md describes it.

A script is a list of rules. A rule has selectors and steps; the first rule that matches is played. Keys that only one
of the two players understands are rejected for the other when a script is loaded.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.limits.agent_failures import FailureKind

Player = Literal["agent", "model"]

_AGENT_KEYS = ("attempt", "ignore_term", "commit", "flood", "detach", "permission", "print_result", "exit")
ONLY_FOR: Mapping[str, Player] = {**dict.fromkeys(_AGENT_KEYS, "agent"), "call": "model", "cut": "model"}

_SCENARIO = re.compile(r"\[\[scenario:([\w-]+)\]\]")
_STATUS = {
    FailureKind.not_logged_in: 401,
    FailureKind.over_budget: 402,
    FailureKind.too_long: 413,
    FailureKind.limited: 429,
    FailureKind.overloaded: 529,
    FailureKind.not_installed: 500,
}
"""The failures that a script can name, and the HTTP status of each."""


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a script."""


class Usage(Part, frozen=True):
    """Tokens of one step; the cached ones are part of the input."""

    input: int = 100
    output: int = 20
    cached: int = 0


class Call(Part, frozen=True):
    tool: str
    """The name, or the end of it: coding agents add the name of an MCP server in front, each in its own way."""
    arguments: dict[str, object] = {}
    server: str = ""
    """The MCP server of a tool that may be hidden until it is searched for; it is then called without being offered."""


class Fail(Part, frozen=True):
    """A failure of the provider, by its kind or by the HTTP status of its response."""

    kind: FailureKind | None = None
    status: int = 0
    message: str = "this failure is part of the script"
    code: str = ""
    """The provider's own error code, if it is not the usual one for the status."""
    retry_after: float | None = None
    reset_in: float | None = None
    """Seconds until a limit is lifted, counted from the first failure."""
    times: int | None = None
    """How often the step fails before it works; always when neither `times` nor `reset_in` is given."""

    def __post_init__(self) -> None:
        if self.kind is None and not self.status:
            raise ValueError("`fail` needs a `kind` or a `status`")
        if self.kind is not None and self.kind not in _STATUS:
            raise ValueError(f"the `kind` of `fail` must be one of: {', '.join(_STATUS)}")

    @property
    def http_status(self) -> int:
        return self.status or _STATUS[self.failure_kind]

    @property
    def failure_kind(self) -> FailureKind:
        by_status = {status: kind for kind, status in _STATUS.items()}
        by_status |= {403: FailureKind.not_logged_in, 500: FailureKind.overloaded}
        return self.kind or by_status.get(self.status, FailureKind.overloaded)


class Step(Part, frozen=True):
    """Actions, in the order in which they are performed."""

    ignore_term: bool = False
    say: str | tuple[str, ...] = ()
    sleep: float = 0
    read: str = ""
    write: dict[str, str] = {}
    append: dict[str, str] = {}
    delete: tuple[str, ...] = ()
    run: str = ""
    call: Call | None = None
    commit: str = ""
    flood: int = 0
    detach: str = ""
    hang: bool = False
    permission: str = ""
    fail: Fail | None = None
    result: dict[str, object] | None = None
    result_text: str | None = None
    print_result: bool = False
    exit: int | None = None
    usage: Usage | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        if self.result is not None and self.result_text is not None:
            raise ValueError("a step has either `result` or `result_text`")

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.say,) if isinstance(self.say, str) else self.say

    def filled(self, placeholders: Mapping[str, str]) -> "Step":
        """The step with the placeholders replaced in every string."""
        return msgspec.convert(_filled(msgspec.to_builtins(self), placeholders), Step)


class Rule(Part, frozen=True):
    steps: tuple[Step, ...]
    name: str = ""
    """`[[scenario:NAME]]` in a prompt chooses the rule; one without other selectors is chosen by its name only."""
    task: str = ""
    """The id of a task, or a pattern such as DEV-*."""
    role: str = ""
    attempt: int | None = None
    match: str = ""
    """A regular expression, searched for in the prompt; its named groups are placeholders."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f'"{self.match}" is not a regular expression: {error}') from error

    @property
    def is_only_named(self) -> bool:
        return bool(self.name) and not (self.task or self.role or self.attempt or self.match)

    def placeholders(self, prompt: str, task: str, role: str, attempt: int | None) -> dict[str, str] | None:
        """The named groups of `match`, or None if the rule does not match."""
        found = re.search(self.match, prompt)
        matches = fnmatchcase(task, self.task or "*") and self.role in {"", role} and self.attempt in {None, attempt}
        return {name: text or "" for name, text in found.groupdict().items()} if found and matches else None


class Script(Part, frozen=True):
    rules: tuple[Rule, ...]

    def choose(
        self, prompt: str, *, task: str, role: str, attempt: int | None = None
    ) -> tuple[Rule, dict[str, str]] | None:
        """The rule for a prompt, with its placeholders: the one that was named last, else the first that matches."""
        placeholders = {"task": task, "role": role} | ({"attempt": str(attempt)} if attempt else {})
        named = _SCENARIO.findall(prompt)
        for rule in self.rules:
            if rule.name != named[-1] if named else rule.is_only_named:
                continue
            groups = rule.placeholders(prompt, task, role, attempt)
            if groups is not None or named:
                return rule, placeholders | (groups or {})
        return None


def completed(result: Mapping[str, object], task: str) -> dict[str, object]:
    """A result with the members that every result of a task has; outside of a task it is returned as it is."""
    usual = {"id": task, "status": "completed", "findings": f"{task} was played from a script.", "error": ""}
    return {**(usual if task else {}), **result}


_RULE_KEYS = {field.name: field.type for field in msgspec.structs.fields(Rule) if field.name != "steps"}
_STEP_KEYS = {field.name: field.type for field in msgspec.structs.fields(Step)}


def load(path: Path, player: Player) -> Script:
    """Reads a script, TOML or (when its name ends so) JSON, and reports all its errors at once."""
    document = _parse(path)
    content = document if isinstance(document, dict) else {}
    tables: Any = content.get("rule")
    rules: list[Rule] = []
    problems = [f'"{key}" is outside of a rule' for key in content if key != "rule"]
    if not _is_list_of_tables(tables):
        problems.append("it has no list of rules, each of which begins with [[rule]]")
        tables = []
    for number, table in enumerate(tables, 1):
        found = list(_problems(number, table, player))
        try:
            rules += [] if found else [_rule(table)]
        except msgspec.ValidationError as error:
            found.append(f"rule {number}: {error}")
        problems += found
    if problems:
        raise _invalid(path, "; ".join(problems))
    return Script(rules=tuple(rules))


def _parse(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        raise _invalid(path, "it does not exist") from error
    except (OSError, ValueError, RecursionError) as error:
        raise _invalid(path, str(error)) from error


def _invalid(path: Path, problem: str) -> UserError:
    return UserError(f'The script "{path}" cannot be used: {problem}', hint=f"fix {path}, see docs/scripted-agent.md")


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(table, dict) for table in value)


def _problems(number: int, table: dict[str, Any], player: Player) -> Iterator[str]:
    steps, place = table.get("step"), f"rule {number}"
    if steps is None:
        yield from _wrong_keys(place, table, _RULE_KEYS | _STEP_KEYS, player)
        return
    selectors = {key: value for key, value in table.items() if key != "step"}
    yield from _wrong_keys(place, selectors, _RULE_KEYS, player)
    if not _is_list_of_tables(steps):
        yield f'"step" of {place} must be a list of steps, each of which begins with [[rule.step]]'
        return
    for index, step in enumerate(steps, 1):
        yield from _wrong_keys(f"step {index} of {place}", step, _STEP_KEYS, player)


def _wrong_keys(place: str, table: Mapping[str, object], known: Mapping[str, object], player: Player) -> Iterator[str]:
    for key, value in table.items():
        if key not in known:
            yield f'{place} has an unknown key "{key}"{did_you_mean(key, known)}'
        elif ONLY_FOR.get(key, player) != player:
            yield f'"{key}" of {place} is only for the scripted {ONLY_FOR[key]}'
        else:
            try:
                msgspec.convert(value, known[key])
            except msgspec.ValidationError as error:
                yield f'"{key}" of {place}: {error}'


def _rule(table: Mapping[str, object]) -> Rule:
    selectors = {key: value for key, value in table.items() if key in _RULE_KEYS}
    actions = {key: value for key, value in table.items() if key in _STEP_KEYS}
    return msgspec.convert({**selectors, "steps": table.get("step", [actions])}, Rule)


def _filled(value: object, placeholders: Mapping[str, str]) -> object:
    match value:
        case str():
            for name, text in placeholders.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case list() | tuple():
            return [_filled(item, placeholders) for item in value]
        case dict():
            return {_filled(key, placeholders): _filled(item, placeholders) for key, item in value.items()}
        case _:
            return value
