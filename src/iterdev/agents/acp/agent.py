"""Any program that speaks the Agent Client Protocol as an agent: one process and one connection per conversation.

It knows how a program of the table is started alone and quietly, and what the end of a turn means. The protocol's
messages are `acp_wire.py`'s, which is loaded only when a conversation is opened.
"""

import importlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from iterdev.agents.acp.failures import BY_WORDS, LOGIN_REQUIRED, Refusal
from iterdev.agents.acp.programs import Program
from iterdev.agents.command import (
    COMPLAINT_LENGTH,
    Watch,
    death,
    environment,
    forget,
    found_program,
    last_json_object,
    last_words,
    located,
    written,
)
from iterdev.agents.common.failures import FAILURES
from iterdev.agents.common.reset_times import reset_at
from iterdev.agents.common.versions import Known, missing, note_on, packaged_version, probed
from iterdev.agents.contract import (
    AgentFailure,
    Answer,
    Assignment,
    Conversation,
    Probe,
    Process,
    Reply,
    Spawn,
    Spent,
    TroubleKind,
)
from iterdev.core.errors import HostError
from iterdev.core.results import Usage

if TYPE_CHECKING:
    from iterdev.agents.acp.connection import Link, Stop

COMPLAINT = re.compile(
    r"^\W*(?i:(api |request |network )?(error|failed))|\bError: |\b(Network error|Ran into this error): "
)
PRIVATE_FOLDERS = {
    "HOME": ".",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


class AcpAgent(msgspec.Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    program: Program = Program()
    model: str = ""
    args: tuple[str, ...] = ()
    home: str = ""
    """A private home, with nothing of the user's in it; empty for the user's own, and their login."""
    root: str = "."
    """The user's checkout, to which paths in the command are relative."""
    patience: float = 3.0
    """Seconds that an agent has to stop when it is asked to."""
    now: Callable[[], float] = time.time

    @property
    def needs(self) -> tuple[str, ...]:
        return self.program.needs

    def probe(self) -> Probe:
        name, row = self.command[0], self.program
        known = Known(agent=self.name, install=row.install or self._advice(), version=row.version)
        if not found_program(name, (self.root,), os.environ):
            return missing(name, known)
        version = packaged_version(name)
        if row.version and not version:
            return probed(name, known)
        return Probe(installed=True, version=version, note=note_on(version, row.version))

    def _advice(self) -> str:
        return f'install it, or mend "acp" of [agents.{self.name}] in iterdev.toml'

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        home = environment.get("HOME", "")
        return (self.home,) if self.home else tuple(str(Path(home, folder)) for folder in self.program.folders)

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        async with AsyncExitStack() as stack:
            try:
                env = {**environment(assignment, assignment.attempt), **self._variables(assignment)}
                argv = [*located(self.command, root=self.root, assignment=assignment), *self._arguments()]
                started = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(started)
            except (OSError, HostError) as error:
                message = f'The agent "{self.name}" could not be started: {error}'
                yield Stillborn(AgentFailure(kind=TroubleKind.crashed, message=message))
                return
            # The program needs a second to start as well, and other conversations need the event loop meanwhile.
            await anyio.to_thread.run_sync(importlib.import_module, "iterdev.agents.acp.connection")
            from iterdev.agents.acp.connection import Link  # noqa: PLC0415 - see there

            talk = AcpConversation(self, assignment, process, Link(process, assignment, watch), watch)
            stack.push_async_callback(talk.close)
            yield talk

    def _arguments(self) -> tuple[str, ...]:
        model = (self.program.model_flag, self.model) if self.program.model_flag and self.model else ()
        return (*self.program.flags, *model, *self.args)

    def _variables(self, assignment: Assignment) -> dict[str, str]:
        """The program's own variables; settings go where they outrank the user's, or into the private home."""
        row, settings = self.program, self.program.settings
        variables = dict(row.variables)
        if row.model_variable and self.model:
            variables[row.model_variable] = self.model
        if row.settings_variable:
            variables[row.settings_variable] = json.dumps({**settings, **({"model": self.model} if self.model else {})})
        if self.home:
            folders = {**PRIVATE_FOLDERS, **row.home_variables}
            variables |= {name: str(Path(self.home, folder)) for name, folder in folders.items()}
            if row.home_settings:
                write_settings(Path(self.home, row.home_settings), {**settings, **row.key_settings})
        elif row.settings_path_variable:
            folder = assignment.environment.get("TMPDIR") or Path(assignment.result_path).parent
            path = Path(folder, f"{self.name}-settings.json")
            write_settings(path, settings)
            variables[row.settings_path_variable] = str(path)
        return variables

    @property
    def model_by_protocol(self) -> str:
        """The model, where neither a flag nor a variable of the program takes it."""
        row = self.program
        return "" if row.model_flag or row.model_variable or row.settings_variable else self.model


class Stillborn:
    """A conversation with a program that could not be started."""

    def __init__(self, trouble: AgentFailure) -> None:
        self._trouble = trouble

    async def send(self, prompt: str) -> Reply:
        del prompt
        return self._trouble


class AcpConversation:
    def __init__(self, agent: AcpAgent, assignment: Assignment, process: Process, link: "Link", watch: Watch) -> None:
        self._agent = agent
        self._assignment = assignment
        self._process = process
        self._link = link
        self._watch = watch
        self._counted = Usage()
        self._obituary: AgentFailure | None = None
        self._floor = anyio.Lock()
        self._running = anyio.CancelScope()

    async def send(self, prompt: str) -> Reply:
        await self._interrupt()
        async with self._floor:
            with anyio.CancelScope() as self._running:
                return await self._turn(prompt)
        return self._interrupted()

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            busy = self._floor.locked()
            await self._interrupt()
            with anyio.move_on_after(0 if busy else self._agent.program.settling):
                await self._process.wait()
            await self._link.close()

    async def _interrupt(self) -> None:
        """Ends a turn that is still running; an agent that does not stop when asked is not waited for."""
        with anyio.move_on_after(self._agent.patience), suppress(ConnectionError):
            if await self._link.cancel() and self._floor.locked():
                async with self._floor:
                    return
        self._running.cancel()

    async def _turn(self, prompt: str) -> Reply:
        if self._obituary:
            return self._obituary
        forget(self._assignment.result_path)
        try:
            await self._link.begin(resumes=self._agent.program.resumes, model=self._agent.model_by_protocol)
            stop = await self._link.prompt(prompt)
        except ConnectionError:
            self._tell(self._link.heard)
            self._obituary = await self._death()
            return self._obituary
        except Refusal as refusal:
            self._tell(self._link.heard)
            return self._refused(refusal)
        usage = self._spent(stop.usage)
        if stop.reason == "cancelled":
            return self._interrupted()
        body = written(self._assignment.result_path) or last_json_object(stop.text)
        if body is None:
            return self._silence(stop)
        conversation = self._link.session if self._link.keeps_sessions else ""
        return Answer(body=body, usage=usage, conversation=conversation)

    def _spent(self, counted: Usage) -> Usage:
        usage = counted
        if self._agent.program.cumulative:
            usage = Usage(
                input_tokens=max(0, counted.input_tokens - self._counted.input_tokens),
                output_tokens=max(0, counted.output_tokens - self._counted.output_tokens),
            )
            self._counted = counted
        self._tell(usage)
        return usage

    def _tell(self, usage: Usage) -> None:
        if usage.tokens:
            self._watch(Spent(usage))

    async def _death(self) -> AgentFailure:
        ended = await self._process.wait()
        return self._trouble(*death(ended, self._link.stderr, self._assignment.limit))

    def _refused(self, refusal: Refusal) -> AgentFailure:
        words = str(refusal)
        kind = TroubleKind.not_logged_in if refusal.code == LOGIN_REQUIRED else BY_WORDS.of(words)
        return self._explained(kind or TroubleKind.crashed, words)

    def _silence(self, stop: "Stop") -> AgentFailure:
        """Some agents end a turn as if all were well when their provider refused, and complain elsewhere, if at all."""
        said = last_words(stop.text)
        words = said or last_words(self._link.stderr)
        kind = BY_WORDS.of(complaint_in(said) if said else words)
        if kind is None and stop.reason == "max_tokens":
            kind = TroubleKind.too_long
        if kind is None:
            return self._trouble(TroubleKind.silent, f"ended its turn ({stop.reason}) without a result: {words}")
        return self._explained(kind, words)

    def _explained(self, kind: TroubleKind, words: str) -> AgentFailure:
        what = f"{FAILURES.get(kind, 'failed')}: {words[:COMPLAINT_LENGTH]}"
        match kind:
            case TroubleKind.not_logged_in if login := self._agent.program.login:
                home = f"with HOME={self._agent.home}, " if self._agent.home else ""
                return self._trouble(kind, f"{what} ({home}{login})")
            case TroubleKind.limited:
                return self._trouble(kind, what, reset_at(words, self._agent.now()))
            case _:
                return self._trouble(kind, what)

    def _interrupted(self) -> AgentFailure:
        return self._trouble(TroubleKind.timed_out, "was interrupted")

    def _trouble(self, kind: TroubleKind, what: str, reset_at: float | None = None) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._agent.name}" {what}', reset_at=reset_at)


def complaint_in(said: str) -> str:
    """What an agent says of an error of its own, rather than of one in its work; pieces of text have no lines."""
    found = COMPLAINT.search(said)
    return said[found.start() :] if found else ""


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=2))
