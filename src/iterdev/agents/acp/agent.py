"""Any program that speaks the Agent Client Protocol as an agent: one process and one connection per conversation."""

import importlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from iterdev.agents.acp.failures import BY_WORDS, LOGIN_REQUIRED, RequestFailed
from iterdev.agents.acp.programs import Program
from iterdev.agents.common.conversation import AgentConversation, FailedConversation
from iterdev.agents.common.environment import agent_environment, find_program, resolve_command
from iterdev.agents.common.output import last_lines
from iterdev.agents.common.versions import Known, not_found, packaged_version, probe_program, version_note
from iterdev.agents.contract import (
    AgentFailure,
    Answer,
    Assignment,
    Conversation,
    FailureKind,
    Probe,
    Process,
    Reply,
    Spawn,
    Watch,
)
from iterdev.core.errors import HostError
from iterdev.core.results import Usage

if TYPE_CHECKING:
    from iterdev.agents.acp.connection import AcpConnection, TurnEnd

ERROR_TEXT = re.compile(
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
    """A private home folder; without one it is the user's own, with their login."""
    root: str = "."
    """The user's checkout, to which paths in the command are relative."""
    stop_timeout: float = 3.0
    """Seconds in which the agent may stop when it is asked to."""
    now: Callable[[], float] = time.time

    @property
    def needs(self) -> tuple[str, ...]:
        return self.program.needs

    def probe(self) -> Probe:
        name, row = self.command[0], self.program
        known = Known(agent=self.name, install=row.install or self._hint(), version=row.version)
        if not find_program(name, (self.root,), os.environ):
            return not_found(name, known)
        version = packaged_version(name)
        if row.version and not version:
            return probe_program(name, known)
        return Probe(installed=True, version=version, note=version_note(version, row.version))

    def _hint(self) -> str:
        return f'install it, or fix "acp" of [agents.{self.name}] in iterdev.toml'

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        home = environment.get("HOME", "")
        return (self.home,) if self.home else tuple(str(Path(home, folder)) for folder in self.program.folders)

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        async with AsyncExitStack() as stack:
            try:
                env = {**agent_environment(assignment, assignment.attempt), **self._variables(assignment)}
                argv = [*resolve_command(self.command, root=self.root, assignment=assignment), *self._arguments()]
                started = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(started)
            except (OSError, HostError) as error:
                yield FailedConversation.of(self.name, error)
                return
            # The program needs a second to start as well, and other conversations need the event loop meanwhile.
            await anyio.to_thread.run_sync(importlib.import_module, "iterdev.agents.acp.connection")
            from iterdev.agents.acp.connection import AcpConnection  # noqa: PLC0415 - it loads pydantic

            connection = AcpConnection(process, assignment, watch)
            conversation = AcpConversation(self, assignment, watch, process, connection)
            stack.push_async_callback(conversation.close)
            yield conversation

    def _arguments(self) -> tuple[str, ...]:
        model = (self.program.model_flag, self.model) if self.program.model_flag and self.model else ()
        return (*self.program.flags, *model, *self.args)

    def _variables(self, assignment: Assignment) -> dict[str, str]:
        """The program's own variables; settings are stored where they override the user's, or in the private home."""
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
        """The model, if the program has neither a flag nor a variable for it."""
        row = self.program
        return "" if row.model_flag or row.model_variable or row.settings_variable else self.model


class AcpConversation(AgentConversation):
    def __init__(
        self, agent: AcpAgent, assignment: Assignment, watch: Watch, process: Process, connection: "AcpConnection"
    ) -> None:
        login = f"with HOME={agent.home}, {agent.program.login}" if agent.home else agent.program.login
        super().__init__(agent.name, assignment, watch, login=login, now=agent.now, stop_timeout=agent.stop_timeout)
        self._agent = agent
        self._process = process
        self._connection = connection
        self._counted = Usage()
        self._ended: AgentFailure | None = None

    async def close(self) -> None:
        busy = self._gate.is_busy
        await super().close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(0 if busy else self._agent.program.save_delay):
                await self._process.wait()
            await self._connection.close()

    async def _ask_to_stop(self) -> bool:
        return await self._connection.cancel()

    async def _turn(self, prompt: str) -> Reply:
        if self._ended:
            return self._ended
        self._delete_result()
        try:
            await self._connection.begin(resumes=self._agent.program.resumes, model=self._agent.model_by_protocol)
            end = await self._connection.prompt(prompt)
        except ConnectionError:
            self._count(self._connection.usage)
            self._ended = self._exited(await self._process.wait(), self._connection.stderr)
            return self._ended
        except RequestFailed as error:
            self._count(self._connection.usage)
            kind = FailureKind.not_logged_in if error.code == LOGIN_REQUIRED else BY_WORDS.find(str(error))
            return self._reported(kind or FailureKind.crashed, str(error))
        usage = self._count(self._turn_usage(end.usage))
        if end.reason == "cancelled":
            return self._interrupted()
        body = self._result(end.text)
        if body is None:
            return self._without_result(end)
        conversation = self._connection.session if self._connection.keeps_sessions else ""
        return Answer(body=body, usage=usage, conversation=conversation)

    def _turn_usage(self, reported: Usage) -> Usage:
        if not self._agent.program.cumulative_usage:
            return reported
        before, self._counted = self._counted, reported
        return Usage(
            input_tokens=max(0, reported.input_tokens - before.input_tokens),
            output_tokens=max(0, reported.output_tokens - before.output_tokens),
        )

    def _without_result(self, end: "TurnEnd") -> AgentFailure:
        """Some agents end a turn normally when their provider failed, and report that elsewhere, if at all."""
        said = last_lines(end.text)
        words = said or last_lines(self._connection.stderr)
        kind = BY_WORDS.find(error_in(said) if said else words)
        if kind is None and end.reason == "max_tokens":
            kind = FailureKind.too_long
        if kind is None:
            return self._failure(FailureKind.silent, f"ended its turn ({end.reason}) without a result: {words}")
        return self._reported(kind, words)


def error_in(said: str) -> str:
    """The part of a text that reports an error of the agent itself, rather than one in its work."""
    found = ERROR_TEXT.search(said)
    return said[found.start() :] if found else ""


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=2))
