"""Any program that speaks the Agent Client Protocol as an agent: one process and one connection per conversation."""

import importlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec

from iterdev.agents.acp.programs import Program
from iterdev.agents.common.environment import agent_environment, find_program, resolve_command
from iterdev.agents.common.versions import not_found, packaged_version, probe_program, version_note
from iterdev.agents.contract import Assignment, Conversation, FailedConversation, Probe, Spawn, Watch
from iterdev.core.errors import HostError

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

    @property
    def reads(self) -> tuple[str, ...]:
        return self.program.reads

    def probe(self) -> Probe:
        name, row = self.command[0], self.program
        install = row.install or f'install it, or fix "acp" of [agents.{self.name}] in iterdev.toml'
        if not find_program(name, (self.root,), os.environ):
            return not_found(name, self.name, install)
        version = packaged_version(name)
        if row.version and not version:
            return probe_program(name, agent=self.name, install=install, last_known_good=row.version)
        return Probe(installed=True, version=version, note=version_note(version, row.version))

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        home = environment.get("HOME", "")
        return (self.home,) if self.home else tuple(str(Path(home, folder)) for folder in self.program.folders)

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        async with AsyncExitStack() as stack:
            try:
                env = {**agent_environment(assignment, assignment.attempt), **self._variables(assignment)}
                command = resolve_command(self.command, root=self.root, assignment=assignment)
                model = (self.program.model_flag, self.model) if self.program.model_flag and self.model else ()
                argv = [*command, *self.program.flags, *model, *self.args]
                started = spawn(argv, cwd=assignment.workspace, env=env, limit=assignment.limit)
                process = await stack.enter_async_context(started)
            except (OSError, HostError) as error:
                yield FailedConversation.of(self.name, error)
                return
            # The program needs a second to start as well, and other conversations need the event loop meanwhile.
            await anyio.to_thread.run_sync(importlib.import_module, "iterdev.agents.acp.conversation")
            from iterdev.agents.acp.conversation import AcpConversation  # noqa: PLC0415 - it loads pydantic

            yield await stack.enter_async_context(AcpConversation(self, assignment, watch, process))

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
                Path(self.home).mkdir(parents=True, exist_ok=True)
                write_settings(row.home_settings, {**settings, **row.key_settings}, folder=self.home)
        elif row.settings_path_variable:
            folder = assignment.environment.get("TMPDIR") or Path(assignment.result_path).parent
            name = f"{self.name}-settings.json"
            write_settings(name, settings, folder=folder)
            variables[row.settings_path_variable] = str(Path(folder, name))
        return variables


def write_settings(name: str, settings: Mapping[str, object], *, folder: str | Path) -> None:
    """Writes a file in a folder that agents can write too: a link that one of them put there is not followed."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        *parents, last = Path(name).parts
        for part in parents:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=opened)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inner
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=opened)
        new = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=opened)
        with open(new, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            file.write(json.dumps(settings, indent=2))
    finally:
        os.close(opened)
