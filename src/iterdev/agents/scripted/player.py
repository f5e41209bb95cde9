"""Plays the steps of a rule as if it were an agent: `python -I -S player.py`, with the steps on its standard input.

The agent has chosen, checked and filled the steps. This program is started by path, without site-packages, and knows
nothing of iterdev but the environment of interface.md 3.
"""

# Only the quick parts of the standard library: pathlib and subprocess would add 8 ms to the start.
# ruff: noqa: PTH103, PTH120, PTH123, S606

import json
import os
import signal
import sys
import time
from typing import TypedDict

STEP_FAILED = 3


class Step(TypedDict):
    """The actions of `script.Step` that this program performs."""

    ignore_term: bool
    say: list[str]
    sleep: float
    write: dict[str, str]
    append: dict[str, str]
    delete: list[str]
    run: str
    commit: str
    flood: int
    detach: str
    hang: bool
    result_text: str | None
    print_result: bool


class StepFailed(Exception):
    """A program that a step runs has failed."""


def read_steps() -> list[Step]:
    """Reads the length and the steps, and leaves the prompt after them to the programs that a step runs."""
    length, data = b"", b""
    while (byte := os.read(0, 1)) not in {b"\n", b""}:
        length += byte
    while chunk := os.read(0, int(length) - len(data)):
        data += chunk
    steps: list[Step] = json.loads(data)
    return steps


def play(step: Step) -> None:
    """Performs one step; without a result it leaves none."""
    if step["ignore_term"]:
        # A handler, unlike SIG_IGN, is not inherited by the programs that the step runs.
        signal.signal(signal.SIGTERM, lambda *_: None)
    for line in step["say"]:
        say(line)
    time.sleep(step["sleep"])
    for path, content in step["write"].items():
        write_file(path, content)
    for path, content in step["append"].items():
        write_file(path, content, mode="ab")
    if step["delete"]:
        run_checked(["rm", "-rf", "--", *step["delete"]])
    if step["run"]:
        run_checked(["sh", "-c", step["run"]])
    if step["commit"]:
        commit(step["commit"])
    flood(step["flood"])
    if step["detach"]:
        detach(step["detach"])
    while step["hang"]:
        signal.pause()
    if step["result_text"] is None:
        return
    if step["print_result"]:
        say(step["result_text"])
    else:
        write_file(os.environ["ITERDEV_RESULT"], step["result_text"])


def say(line: str) -> None:
    sys.stdout.buffer.write(f"{line}\n".encode())
    sys.stdout.buffer.flush()


def write_file(path: str, content: str, *, mode: str = "wb") -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, mode) as file:
        file.write(content.encode())


def run_checked(command: list[str]) -> None:
    code = os.spawnvp(os.P_WAIT, command[0], command)
    if code != 0:
        raise StepFailed(f'"{" ".join(command)}" ended with code {code}')


def commit(message: str) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        os.environ.setdefault(f"GIT_{who}_NAME", "scripted agent")
        os.environ.setdefault(f"GIT_{who}_EMAIL", "scripted@iterdev.invalid")
    run_checked(["git", "add", "-A"])
    if os.spawnlp(os.P_WAIT, "git", "git", "diff", "--cached", "--quiet") != 0:
        run_checked(["git", "commit", "--quiet", "-m", message])


def flood(size: int) -> None:
    block = (b"flood " * 170 + b"...\n") * 64
    while size > 0:
        size -= os.write(sys.stdout.fileno(), block[:size])


def detach(command: str) -> None:
    """Starts a program in its own session, without a parent and without the pipes of this one."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.execvp("sh", ["sh", "-c", command])


def main() -> int:
    try:
        for step in read_steps():
            play(step)
    except StepFailed as error:
        sys.stderr.write(f"player: {error}\n")
        return STEP_FAILED
    return int(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
