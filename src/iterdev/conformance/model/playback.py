"""Which turn is played for a request: pure but for the memory of what was refused and of what was asked."""

import json
import threading
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.conformance.model import side_calls, tool_calls
from iterdev.conformance.model.messages import Answered, Asked
from iterdev.conformance.model.script import Fail, Script, Turn
from iterdev.conformance.model.tool_server import Note

SIDE = "side call"


class Scene(Struct, frozen=True, kw_only=True):
    """The model's part in one exchange."""

    scenario: str
    task: str = ""
    turn: Turn
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


class Stage:
    """A script being played to many clients at once."""

    def __init__(self, script: Script, log: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.notes: list[Note] = []
        self._script = script
        self._log = log
        self._refusals: dict[tuple[str, str, int], Refusals] = {}
        self._lock = threading.Lock()

    def play(self, asked: Asked, *, path: str, dialect: str, body: bytes) -> Scene:
        scene = scene_for(self._script, asked)
        now = time.time()
        with self._lock:
            scene = self._after_refusals(scene, now)
            self._remember(
                Request(
                    time=now,
                    path=path,
                    dialect=dialect,
                    scenario=scene.scenario,
                    task=scene.task,
                    step=asked.step,
                    status=scene.turn.fail.status if scene.turn.fail else 200,
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


def scene_for(script: Script, asked: Asked) -> Scene:
    if not asked.tools:
        return _scene(asked, Turn(say=side_calls.answer(asked.schema)), scenario=SIDE)
    chosen = script.choose(asked.prompt)
    if chosen is None:
        message = f"No rule of the script is for the prompt that ends with {asked.prompt[-200:]!r}."
        return _scene(asked, Turn(fail=Fail(status=400, message=message)), scenario="none")
    cwd = tool_calls.cwd_in(asked.text)
    turn = chosen.rule.turn(asked.step).filled(chosen.words | {"cwd": cwd})
    name = chosen.rule.name or f"rule {script.rules.index(chosen.rule) + 1}"
    return _scene(asked, turn, scenario=name, task=chosen.words["task"], cwd=cwd)


def _scene(asked: Asked, turn: Turn, *, scenario: str, task: str = "", cwd: str = "") -> Scene:
    calls = tool_calls.calls(turn, asked, cwd)
    final = "" if turn.final is None or calls else json.dumps(turn.final, ensure_ascii=False)
    text = "\n".join(part for part in (turn.say, final) if part)
    return Scene(
        scenario=scenario,
        task=task,
        turn=turn,
        answered=Answered(
            model=asked.model,
            step=asked.step,
            text=text if text or calls else side_calls.ANSWER,
            calls=calls,
            usage=turn.usage,
        ),
    )
