"""Which turn of a script the model plays for a request, and the requests so far."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.agents.scripted.script import Fail, Rule, Script, Step, Usage, completed, load
from iterdev.conformance.model import side_calls, tool_calls
from iterdev.conformance.model.messages import Answered, Asked
from iterdev.conformance.model.tool_server import Note

OVER = Step(say="The script is over.")
_TASK = re.compile(r"^# ([A-Z]+(?:-[A-Za-z]+)*-\d+): ", re.MULTILINE)
_ROLE = re.compile(r"^You are the ([\w-]+) of a development team\.", re.MULTILINE)
SIDE = "side call"


class Scene(Struct, frozen=True, kw_only=True):
    """The model's part in one exchange."""

    scenario: str
    task: str = ""
    turn: Step
    answered: Answered


class Request(Struct, frozen=True, kw_only=True):
    """One request for a turn, and what became of it."""

    time: float
    path: str
    dialect: str
    scenario: str
    """The name of the rule, or its number in the script when it has none."""
    task: str
    step: int
    status: int
    body: str

    @property
    def is_side_call(self) -> bool:
        return self.scenario == SIDE


class Refusals(Struct):
    """How often, and since when, one step of one task was refused."""

    first: float
    count: int = 0


class Playback:
    """A script being played to many clients at once."""

    def __init__(self, script: Script, log: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.notes: list[Note] = []
        self._script = script
        self._log = log
        self._refusals: dict[tuple[str, str, int], Refusals] = {}

    def play(self, asked: Asked, *, path: str, dialect: str, body: bytes) -> Scene:
        scene = scene_for(self._script, asked)
        now = time.time()
        scene = self._after_refusals(scene, now)
        self._remember(
            Request(
                time=now,
                path=path,
                dialect=dialect,
                scenario=scene.scenario,
                task=scene.task,
                step=asked.step,
                status=scene.turn.fail.http_status if scene.turn.fail else 200,
                body=body.decode(),
            )
        )
        return scene

    def _after_refusals(self, scene: Scene, now: float) -> Scene:
        """The scene with its failure as it stands now, or without it when it is over."""
        fail = scene.turn.fail
        if fail is None:
            return scene
        refusals = self._refusals.setdefault((scene.scenario, scene.task, scene.answered.step), Refusals(first=now))
        rest = None if fail.reset_in is None else refusals.first + fail.reset_in - now
        over = (rest is not None and rest <= 0) or (fail.times is not None and refusals.count >= fail.times)
        refusals.count += 1
        left = None if over else msgspec.structs.replace(fail, reset_in=rest)
        return msgspec.structs.replace(scene, turn=msgspec.structs.replace(scene.turn, fail=left))

    def _remember(self, request: Request) -> None:
        self.requests.append(request)
        if self._log:
            with self._log.open("ab") as file:
                file.write(msgspec.json.encode(request) + b"\n")


def default_script() -> Script:
    return load(Path(__file__).with_name("default.toml"), "model")


def named_in(prompt: str) -> tuple[str, str]:
    """The task and the role that a prompt of iterdev names."""
    task, role = _TASK.search(prompt), _ROLE.search(prompt)
    return task[1] if task else "", role[1] if role else ""


def turn_at(rule: Rule, number: int) -> Step:
    """The turn of a conversation that already has so many; the last one is repeated unless it calls a tool."""
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


def scene_for(script: Script, asked: Asked) -> Scene:
    if not asked.tools:
        return _scene(asked, Step(say=side_calls.answer(asked.schema)), scenario=SIDE)
    task, role = named_in(asked.prompt)
    choice = script.choose(asked.prompt, task=task, role=role)
    if choice is None:
        message = f"No rule of the script matches the prompt that ends with {asked.prompt[-200:]!r}."
        return _scene(asked, Step(fail=Fail(status=400, message=message)), scenario="none")
    cwd = tool_calls.cwd_in(asked.text)
    turn = turn_at(choice.rule, asked.step).filled(choice.words | {"cwd": cwd})
    if turn.result is not None:
        turn = msgspec.structs.replace(turn, result=completed(turn.result, task))
    name = choice.rule.name or f"rule {script.rules.index(choice.rule) + 1}"
    return _scene(asked, turn, scenario=name, task=task, cwd=cwd)


def _scene(asked: Asked, turn: Step, *, scenario: str, task: str = "", cwd: str = "") -> Scene:
    calls = tool_calls.calls(turn, asked, cwd)
    result = json.dumps(turn.result, ensure_ascii=False) if turn.result is not None else turn.result_text or ""
    text = "\n".join(part for part in (*turn.lines, "" if calls else result) if part)
    return Scene(
        scenario=scenario,
        task=task,
        turn=turn,
        answered=Answered(
            model=asked.model,
            step=asked.step,
            text=text if text or calls else side_calls.ANSWER,
            calls=calls,
            usage=turn.usage or Usage(),
        ),
    )
