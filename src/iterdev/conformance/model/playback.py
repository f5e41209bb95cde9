"""Which turn of a script the model plays for a request, and the requests so far.

Side calls (titles, routers, summaries), which no script describes, get a short answer that matches their schema.
"""

import json
import re
import shlex
import time
from collections import defaultdict
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail, Rule, Script, Step, Usage, completed
from iterdev.conformance.model import tool_calls
from iterdev.conformance.model.messages import Json, ModelRequest, ModelResponse
from iterdev.conformance.model.tool_server import Note

OVER = Step(say="The script is over.")
SIDE_CALL = "side call"
SIDE_ANSWER = "scripted"
_VALUES: Json = {"object": {}, "array": [], "integer": 1, "number": 1, "boolean": False, "null": None}
"""Values by the type in a schema; every other type is answered with a text."""

_TASK = re.compile(r"^# ([A-Z]+(?:-[A-Za-z]+)*-\d+): ", re.MULTILINE)
_ROLE = re.compile(r"^You are the ([\w-]+) of a development team\.", re.MULTILINE)


class PlayedTurn(Struct, frozen=True, kw_only=True):
    rule: str
    task: str = ""
    turn: Step
    response: ModelResponse


class RecordedRequest(Struct, frozen=True, kw_only=True):
    time: float
    path: str
    dialect: str
    rule: str
    """The name of the rule that was played, or its number in the script."""
    task: str
    turn: int
    status: int
    body: str

    @property
    def is_side_call(self) -> bool:
        return self.rule == SIDE_CALL


class Playback:
    def __init__(self, script: Script) -> None:
        self.requests: list[RecordedRequest] = []
        self.notes: list[Note] = []
        self._script = script
        self._failures = defaultdict[tuple[str, str, int], list[float]](list)
        """The times at which one turn of one task has failed."""

    def play(self, request: ModelRequest, *, path: str, dialect: str, body: bytes) -> PlayedTurn:
        now = time.time()
        played = self._after_failures(turn_for(self._script, request), now)
        recorded = RecordedRequest(
            time=now,
            path=path,
            dialect=dialect,
            rule=played.rule,
            task=played.task,
            turn=request.turn,
            status=played.turn.fail.http_status if played.turn.fail else 200,
            body=body.decode(),
        )
        self.requests.append(recorded)
        return played

    def _after_failures(self, played: PlayedTurn, now: float) -> PlayedTurn:
        """The turn with the rest of its failure, or without it when it is over."""
        fail = played.turn.fail
        if fail is None:
            return played
        failures = self._failures[played.rule, played.task, played.response.turn]
        over = fail.times is not None and len(failures) >= fail.times
        failures.append(now)
        rest = None if fail.reset_in is None else failures[0] + fail.reset_in - now
        over = over or (rest is not None and rest <= 0)
        left = None if over else msgspec.structs.replace(fail, reset_in=rest)
        return msgspec.structs.replace(played, turn=msgspec.structs.replace(played.turn, fail=left))


def turn_at(rule: Rule, number: int) -> Step:
    """The turn after `number` turns of a conversation; the last one is repeated unless it calls a tool."""
    turns = [turn for step in rule.steps for turn in turns_of(step)]
    if number < len(turns):
        return turns[number]
    return OVER if tool_calls.uses_tool(turns[-1]) else turns[-1]


def turns_of(step: Step) -> Iterator[Step]:
    """One turn for each kind of tool that a step uses, and one for its result."""
    deletion = f"rm -rf -- {shlex.join(step.delete)}" if step.delete else ""
    actions: list[tuple[str, object]] = [
        ("read", step.read),
        ("write", step.write),
        ("run", "; ".join(_append(path, content) for path, content in step.append.items())),
        ("run", deletion),
        ("run", step.run),
        ("call", step.call),
    ]
    parts: list[dict[str, object]] = [{key: action} for key, action in actions if action]
    if step.result is not None or step.result_text is not None:
        parts.append({"result": step.result, "result_text": step.result_text})
    parts = parts or [{}]
    parts[0] |= {"say": step.say, "sleep": step.sleep, "fail": step.fail, "usage": step.usage}
    parts[-1] |= {"hang": step.hang, "cut": step.cut}
    for part in parts:
        yield msgspec.structs.replace(Step(), **part)


def _append(path: str, content: str) -> str:
    return f"mkdir -p $(dirname {shlex.quote(path)}); printf %s {shlex.quote(content)} >> {shlex.quote(path)}"


def turn_for(script: Script, request: ModelRequest) -> PlayedTurn:
    if not request.tools:
        return _played(request, Step(say=side_answer(request.schema)), rule=SIDE_CALL)
    # A prompt of iterdev names both.
    task, role = (found[1] if (found := name.search(request.prompt)) else "" for name in (_TASK, _ROLE))
    choice = script.choose(request.prompt, task=task, role=role)
    if choice is None:
        message = f"No rule of the script matches the prompt that ends with {request.prompt[-200:]!r}."
        return _played(request, Step(fail=Fail(status=400, message=message)), rule="none")
    cwd = tool_calls.cwd_in(request.text)
    rule, placeholders = choice
    turn = turn_at(rule, request.turn).filled(placeholders | {"cwd": cwd})
    if turn.result is not None:
        turn = msgspec.structs.replace(turn, result=completed(turn.result, task))
    name = rule.name or f"rule {script.rules.index(rule) + 1}"
    return _played(request, turn, rule=name, task=task, cwd=cwd)


def _played(request: ModelRequest, turn: Step, *, rule: str, task: str = "", cwd: str = "") -> PlayedTurn:
    calls = tool_calls.calls(turn, request, cwd)
    result = json.dumps(turn.result, ensure_ascii=False) if turn.result is not None else turn.result_text or ""
    text = "\n".join(part for part in (*turn.lines, "" if calls else result) if part)
    return PlayedTurn(
        rule=rule,
        task=task,
        turn=turn,
        response=ModelResponse(
            model=request.model,
            turn=request.turn,
            text=text if text or calls else SIDE_ANSWER,
            calls=calls,
            usage=turn.usage or Usage(),
        ),
    )


def side_answer(schema: Json | None) -> str:
    return SIDE_ANSWER if schema is None else json.dumps(smallest(schema))


def smallest(schema: Json) -> object:
    """A small value that matches a JSON Schema, as far as the schemas of side calls go."""
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [dict(first), *_]} | {"oneOf": [dict(first), *_]}:
            return smallest(first)
        case {"properties": dict(properties)}:
            return {name: smallest(inner) for name, inner in properties.items()}
        case {"type": "array" | "ARRAY", "minItems": int(count), "items": dict(items)}:
            return [smallest(items)] * count
        case {"minimum": int(least)}:
            return least
        case {"type": str(kind)} | {"type": [str(kind), *_]}:
            return _VALUES.get(kind.lower(), SIDE_ANSWER)
        case _:
            return SIDE_ANSWER
