"""Plays one step of a script as if it were an agent: `python -I -S player.py SCRIPT`.

It knows the script language and the environment of interface.md 3, and nothing else of iterdev: it is started
by path, without site-packages. The language is described in docs/scripted-agent.md.
"""

# Only the standard library's quick parts: pathlib and subprocess would add 8 ms to a start of 38 ms.
# ruff: noqa: PTH103, PTH120, PTH123, S606

import difflib
import json
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypedDict, cast, get_args

MARKER = "::iterdev-player::"
"""Begins a line on standard output that tells what a real provider's protocol would tell, as one JSON object."""

PERMISSION_LENGTH = 200
"""A marker has to fit into one line of a transcript."""

BAD_SCRIPT = 3


Failure = Literal["not installed", "not logged in", "rate limited", "overloaded", "context too long", "budget used up"]
"""What a provider, or the program that talks to it, can complain about."""


class Limit(TypedDict, total=False):
    reset_in: float
    reset_at: float


class Step(TypedDict, total=False):
    """One step of a script: three selectors, then the actions in the order in which they are performed."""

    task: str
    role: str
    attempt: int
    ignore_term: bool
    say: list[str]
    sleep: float
    write: dict[str, str]
    append: dict[str, str]
    delete: list[str]
    outside: dict[str, str]
    run: str
    commit: str
    flood: int
    detach: str
    hang: bool
    permission: str
    limit: Limit
    trouble: Failure
    result: dict[str, object]
    result_text: str
    print_result: bool
    exit: int


class BadScript(Exception):
    """All that is wrong with a script, in sentences."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return is_whole(value) or isinstance(value, float)


def is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_files(value: object) -> bool:
    return isinstance(value, dict) and is_texts(list(value.values()))


def is_limit(value: object) -> bool:
    return isinstance(value, dict) and list(value) in (["reset_in"], ["reset_at"]) and is_number(*value.values())


KEYS: dict[str, object] = Step.__annotations__

FORMS: dict[object, tuple[Callable[[object], bool], str]] = {
    str: (lambda value: isinstance(value, str), "a string"),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (is_whole, "a whole number"),
    float: (is_number, "a number of seconds"),
    list[str]: (is_texts, "a list of strings"),
    dict[str, str]: (is_files, "a table of path = content"),
    dict[str, object]: (lambda value: isinstance(value, dict), "a table"),
    Failure: (lambda value: value in get_args(Failure), f"one of: {', '.join(get_args(Failure))}"),
    Limit: (is_limit, "{ reset_in = seconds } or { reset_at = seconds since the epoch }"),
}


def load(path: str) -> list[Step]:
    """Reads a script, TOML or (when its name ends so) JSON, and checks it before anything is played."""
    script = parse(path)
    steps = script.get("step") if isinstance(script, dict) else script
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise BadScript([f'the script "{path}" has no list of steps, each of which begins with [[step]]'])
    outside = sorted(script.keys() - {"step"}) if isinstance(script, dict) else []
    problems = [f'"{key}" stands outside of a step' for key in outside]
    problems += [problem for number, step in enumerate(steps, 1) for problem in wrong_in(number, step)]
    if problems:
        raise BadScript(problems)
    return cast("list[Step]", steps)


def parse(path: str) -> object:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except FileNotFoundError:
        raise BadScript([f'the script "{path}" does not exist']) from None
    except (OSError, ValueError) as error:
        raise BadScript([f'the script "{path}" cannot be read: {error}']) from error


def wrong_in(number: int, step: dict[str, object]) -> list[str]:
    problems = [wrong_with(number, key, value) for key, value in step.items()]
    if "result" in step and "result_text" in step:
        problems.append(f'step {number} has both "result" and "result_text"')
    return [problem for problem in problems if problem]


def wrong_with(number: int, key: str, value: object) -> str:
    if key not in KEYS:
        return f'step {number} has an unknown key "{key}"{nearest(key)}'
    fits, form = FORMS[KEYS[key]]
    return "" if fits(value) else f'"{key}" of step {number} must be {form}'


def nearest(key: str) -> str:
    # 3 ms that only a misspelt script has to wait for.

    close = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.5)
    return f'; did you mean "{close[0]}"?' if close else ""


def matches(step: Step, task: str, role: str, attempt: int) -> bool:
    return (
        fnmatchcase(task, step.get("task", "*"))
        and role == step.get("role", role)
        and attempt == step.get("attempt", attempt)
    )


def filled(value: object, words: dict[str, str]) -> object:
    """Puts the values of {task}, {role} and {attempt} into every string, the names of files included."""
    if isinstance(value, str):
        for word, meaning in words.items():
            value = value.replace(f"{{{word}}}", meaning)
        return value
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if isinstance(value, dict):
        return {filled(key, words): filled(item, words) for key, item in value.items()}
    return value


def choose(steps: Sequence[Step], environment: dict[str, str]) -> Step:
    """Finds the first step that is meant for this task, role and attempt, with its placeholders filled."""
    task, role = environment.get("ITERDEV_TASK", ""), environment.get("ITERDEV_ROLE", "")
    attempt = int(environment.get("ITERDEV_ATTEMPT", "1"))
    step = next((step for step in steps if matches(step, task, role, attempt)), None)
    if step is None:
        raise BadScript([f'no step is for task "{task}", role "{role}", attempt {attempt}'])
    return cast("Step", filled(step, {"task": task, "role": role, "attempt": str(attempt)}))


def play(step: Step) -> int:
    """Performs one step and returns the exit code; a step without a result key leaves no result."""
    if step.get("ignore_term"):
        # A handler, unlike SIG_IGN, is not inherited by the programs that the step runs.
        signal.signal(signal.SIGTERM, lambda *_: None)
    for line in step.get("say", ()):
        say(line)
    time.sleep(step.get("sleep", 0))
    change_files(step)
    run_programs(step)
    while step.get("hang"):
        signal.pause()
    if "permission" in step:
        mark({"permission": step["permission"][:PERMISSION_LENGTH]})
        return step.get("exit", 0)
    if "limit" in step:
        mark({"reset_at": reset_time(step["limit"])})
        return step.get("exit", 1)
    if "trouble" in step:
        mark({"trouble": step["trouble"]})
        return step.get("exit", 1)
    give_result(step)
    return step.get("exit", 0)


def say(line: str) -> None:
    sys.stdout.buffer.write(f"{line}\n".encode())
    sys.stdout.buffer.flush()


def mark(news: dict[str, object]) -> None:
    say(f"{MARKER} {json.dumps(news, ensure_ascii=False)}")


def reset_time(limit: Limit) -> float:
    return limit["reset_at"] if "reset_at" in limit else time.time() + limit["reset_in"]


def change_files(step: Step) -> None:
    for path, content in step.get("write", {}).items():
        put(path, content)
    for path, content in step.get("append", {}).items():
        put(path, content, mode="ab")
    if paths := step.get("delete"):
        must(["rm", "-rf", "--", *paths])
    for path, content in step.get("outside", {}).items():
        put(path, content)


def put(path: str, content: str, *, mode: str = "wb") -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, mode) as file:
        file.write(content.encode())


def run_programs(step: Step) -> None:
    if "run" in step:
        must(["sh", "-c", step["run"]])
    if "commit" in step:
        commit(step["commit"])
    flood(step.get("flood", 0))
    if "detach" in step:
        detach(step["detach"])


def must(command: list[str]) -> None:
    code = os.spawnvp(os.P_WAIT, command[0], command)
    if code != 0:
        raise BadScript([f'"{" ".join(command)}" ended with code {code}'])


def commit(message: str) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        os.environ.setdefault(f"GIT_{who}_NAME", "scripted agent")
        os.environ.setdefault(f"GIT_{who}_EMAIL", "scripted@iterdev.invalid")
    must(["git", "add", "-A"])
    if os.spawnlp(os.P_WAIT, "git", "git", "diff", "--cached", "--quiet") != 0:
        must(["git", "commit", "--quiet", "-m", message])


def flood(size: int) -> None:
    block = (b"flood " * 170 + b"...\n") * 64
    while size > 0:
        size -= os.write(sys.stdout.fileno(), block[:size])


def detach(command: str) -> None:
    """Leaves a program behind that is in a session of its own, has no parent, and holds none of our pipes."""
    if between := os.fork():
        os.waitpid(between, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.execvp("sh", ["sh", "-c", command])


def give_result(step: Step) -> None:
    if "result" in step:
        task = os.environ.get("ITERDEV_TASK", "")
        played = {"id": task, "status": "completed", "findings": f"{task} was played from a script.", "error": ""}
        text = json.dumps(played | step["result"], ensure_ascii=False)
    elif "result_text" in step:
        text = step["result_text"]
    else:
        return
    if step.get("print_result"):
        say(text)
    else:
        put(os.environ["ITERDEV_RESULT"], text)


def main() -> int:
    if len(sys.argv) != 2:
        sys.stderr.write("usage: player.py SCRIPT\n")
        return BAD_SCRIPT
    try:
        return play(choose(load(sys.argv[1]), dict(os.environ)))
    except BadScript as error:
        sys.stderr.write(f"player: {error}\n")
        return BAD_SCRIPT


if __name__ == "__main__":
    sys.exit(main())
