"""Any program as an agent: interface.md 3, to the letter.

It knows how a turn is handed to a program and where its result is found. It does not know whether a result fits
its role, and starts nothing itself.
"""

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec

from iterdev.agents.common.turns import Floor
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    Conversation,
    Probe,
    Process,
    Reply,
    Said,
    Spawn,
    Spent,
    TroubleKind,
)
from iterdev.core.errors import HostError
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

Watch = Callable[[AgentEvent], None]

LINE_LENGTH = 16_384
"""Characters of a line that are passed on."""

STDOUT_KEPT = 256 * 1024
STDERR_KEPT = 4 * 1024
RESULT_LIMIT = 16 * 1024 * 1024
COMPLAINT_LENGTH = 1_000

NESTED_TOO_DEEP = 500
"""Characters that an object has at the very least when the decoder gives up on its depth."""

# A float takes a number of any length, where an int refuses more than 4300 digits.
DECODER = json.JSONDecoder(parse_int=float)


class CommandAgent(msgspec.Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    root: str
    """The user's checkout, to which paths in the command are relative."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def probe(self) -> Probe:
        setting = f'"command" of [agents.{self.name}] in iterdev.toml'
        if not self.command:
            problem = f'The agent "{self.name}" has an empty command'
            return Probe(installed=False, problem=problem, hint=f"name a program in {setting}")
        program = self.command[0]
        if found_program(program, (self.root,), os.environ):
            return Probe(installed=True)
        if is_file(absolute(self.root, program)):
            problem = f'The program "{program}" of the agent "{self.name}" is not executable'
            return Probe(installed=False, problem=problem, hint=f"chmod +x {program}")
        problem = f'The program "{program}" of the agent "{self.name}" was not found'
        return Probe(installed=False, problem=problem, hint=f"install {program}, or mend {setting}")

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        del environment
        return ()

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        talk = CommandConversation(self, assignment, spawn=spawn, watch=watch)
        try:
            yield talk
        finally:
            await talk.close()


class CommandConversation:
    """One start of the command per turn; the program itself remembers nothing, so it is told again what it is about."""

    def __init__(self, agent: CommandAgent, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> None:
        self._agent = agent
        self._assignment = assignment
        self._spawn = spawn
        self._watch = watch
        self._turns = 0
        self._first = ""
        self._floor = Floor(assignment.limit)

    async def send(self, prompt: str) -> Reply:
        reply = await self._floor.take(partial(self._turn, prompt))
        return reply or self._trouble(TroubleKind.timed_out, "was interrupted")

    async def close(self) -> None:
        await self._floor.close()

    async def _turn(self, prompt: str) -> Reply:
        attempt = self._assignment.attempt + self._turns
        self._turns += 1
        text = f"{self._first}\n\n---\n\n{prompt}" if self._first else prompt
        self._first = self._first or prompt
        ears = {"stdout": Ear(self._watch, keep=STDOUT_KEPT), "stderr": Ear(self._watch, keep=STDERR_KEPT)}
        try:
            forget(self._assignment.result_path)
            ended = await self._run(text, attempt, ears)
        except (OSError, HostError) as error:
            return self._trouble(TroubleKind.crashed, f"could not be started: {error}")
        return self._judge(ended, ears)

    async def _run(self, prompt: str, attempt: int, ears: Mapping[str, "Ear"]) -> Exit:
        work, left = self._assignment, self._floor.time_left
        if left <= 0:
            return Exit(code=-signal.SIGTERM, timed_out=True)
        argv = located(self._agent.command, root=self._agent.root, assignment=work)
        async with (
            self._spawn(argv, cwd=work.workspace, env=environment(work, attempt), limit=left) as process,
            anyio.create_task_group() as group,
        ):
            group.start_soon(hand_over, process, prompt)
            async for stream, chunk in process.output():
                ears[stream].hear(chunk)
            ended = await process.wait()
            group.cancel_scope.cancel()
        for ear in ears.values():
            ear.finish()
        return ended

    def _judge(self, ended: Exit, ears: Mapping[str, "Ear"]) -> Reply:
        body = written(self._assignment.result_path) or last_json_object(bytes(ears["stdout"].kept))
        usage = self._spent(body)
        if ended.timed_out or ended.code != 0:
            return self._trouble(*death(ended, bytes(ears["stderr"].kept), self._assignment.limit))
        if body is None:
            missing = "ended without a result: no file at ITERDEV_RESULT, no JSON object on standard output"
            return self._trouble(TroubleKind.silent, missing)
        return Answer(body=body, usage=usage)

    def _spent(self, body: bytes | None) -> Usage:
        """Also of a turn that failed, if it came as far as a result."""
        usage = reported_usage(body) if body else None
        if usage is None:
            return Usage()
        self._watch(Spent(usage))
        return usage

    def _trouble(self, kind: TroubleKind, what: str) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._agent.name}" {what}')


class Ear:
    """Hears one stream: passes on every line, cut to a length, and keeps only the end of the whole."""

    def __init__(self, watch: Watch, *, keep: int) -> None:
        self.kept = bytearray()
        self._keep = keep
        self._watch = watch
        self._line = bytearray()

    def hear(self, chunk: bytes) -> None:
        self.kept += chunk
        del self.kept[: -self._keep]
        *ended, begun = chunk.split(b"\n")
        for piece in ended:
            self._extend(piece)
            self._pass_on()
        self._extend(begun)

    def finish(self) -> None:
        if self._line:
            self._pass_on()

    def _extend(self, piece: bytes) -> None:
        # A character takes at most four bytes; what comes after the cut is not stored, however long the line is.
        self._line += piece[: 4 * LINE_LENGTH - len(self._line)]

    def _pass_on(self) -> None:
        text = self._line.decode(errors="replace").rstrip("\r")
        self._line.clear()
        self._watch(Said(text[:LINE_LENGTH]))


async def hand_over(process: Process, prompt: str) -> None:
    # A program is free to end, or to close its input, before it has read everything.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.write(prompt.encode(errors="replace"))
        await process.close_input()


def environment(assignment: Assignment, attempt: int) -> dict[str, str]:
    return {
        **assignment.environment,
        "ITERDEV_TASK": assignment.task,
        "ITERDEV_ROLE": assignment.role,
        "ITERDEV_ATTEMPT": str(attempt),
        "ITERDEV_SESSION": assignment.session,
        "ITERDEV_SESSION_DIR": assignment.session_dir,
        "ITERDEV_ISSUES": ";".join(assignment.issues),
        "ITERDEV_RESULT": assignment.result_path,
        **(assignment.tools.variables(assignment.environment) if assignment.tools else {}),
    }


def located(command: Sequence[str], *, root: str, assignment: Assignment) -> list[str]:
    """Makes a command of the user's checkout work in a workspace, which lacks the files that are not committed."""
    program, *arguments = command
    found = found_program(program, (assignment.workspace, root), assignment.environment) or program
    return [found, *(located_argument(argument, root, assignment.workspace) for argument in arguments)]


def located_argument(argument: str, root: str, workspace: str) -> str:
    original = absolute(root, argument)
    return original if is_file(original) and not os.path.lexists(absolute(workspace, argument)) else argument


def found_program(program: str, folders: Sequence[str], variables: Mapping[str, str]) -> str | None:
    """Looks for a name on the PATH, as a shell does, and for anything else in the folders."""
    if os.sep not in program and shutil.which(program, path=variables.get("PATH")):
        return program
    paths = (absolute(folder, program) for folder in folders)
    return next((path for path in paths if is_file(path) and os.access(path, os.X_OK)), None)


def absolute(folder: str, path: str) -> str:
    return os.path.normpath(Path(folder).absolute() / path)


def is_file(path: str) -> bool:
    # An argument can be a whole text, which Path.is_file answers with an error because it is too long for a name.
    return os.path.isfile(path)  # noqa: PTH113


def death(ended: Exit, stderr: bytes, limit: float) -> tuple[TroubleKind, str]:
    """What became of a program that ended without a result, in words that go on after its name."""
    if ended.timed_out:
        return TroubleKind.timed_out, f"ran longer than {limit:g} s"
    complaint = last_words(stderr)
    return TroubleKind.crashed, ending(ended.code) + (f": {complaint}" if complaint else "")


def ending(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"


def last_words(stderr: bytes) -> str:
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-COMPLAINT_LENGTH:]


def forget(result_path: str) -> None:
    Path(result_path).unlink(missing_ok=True)


def written(path: str) -> bytes | None:
    """Reads a result file; a blank one counts as absent, and one beyond all measure is cut."""
    if not is_file(path):
        return None
    with Path(path).open("rb") as file:
        body = file.read(RESULT_LIMIT)
    return body if body.strip() else None


class Reported(msgspec.Struct, frozen=True):
    usage: Usage | None = None


def reported_usage(body: bytes) -> Usage | None:
    try:
        return msgspec.json.decode(body, type=Reported).usage
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def last_json_object(text: bytes) -> bytes | None:
    """Finds the last whole JSON object among lines of any kind; the parts of an object do not count.

    What a failed try has read is not read again, so that the time grows with the length of the text only.
    """
    source, place, last = text.decode(errors="replace"), 0, None
    while (start := source.find("{", place)) >= 0:
        if start > 4096:
            # An error counts all lines that stand before it: 15 s for 256 KiB of braces, unless there are few.
            source, start = source[start:], 0
        try:
            _, place = DECODER.raw_decode(source, start)
            last = source[start:place]
        except json.JSONDecodeError as error:
            place = max(error.pos, start + 1)
        except RecursionError:
            place = start + NESTED_TOO_DEEP
    return None if last is None else last.encode()
