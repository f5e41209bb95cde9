"""Codex as an agent: one `codex exec` per turn, all turns of a conversation in one thread of Codex."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec

from iterdev.agents.codex.failures import failure_kind
from iterdev.agents.codex.settings import KEYS, codex_home, key_variable, override_flags, real_workspace, settings_for
from iterdev.agents.codex.strict_schema import to_ordinary, to_strict
from iterdev.agents.codex.turn import Thread, TurnOutput
from iterdev.agents.common.conversation import AgentConversation
from iterdev.agents.common.environment import agent_environment
from iterdev.agents.common.result_file import last_json_object, read_result
from iterdev.agents.common.turns import run_turn
from iterdev.agents.common.versions import Known, probe_program
from iterdev.agents.contract import Answer, Assignment, Conversation, FailureKind, Probe, Reply, Spawn, Watch
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

INSTALL = "npm install -g @openai/codex"
LAST_KNOWN_GOOD = "0.166.0"


class CodexAgent(msgspec.Struct, frozen=True):
    name: str = "codex"
    program: str = "codex"
    model: str = ""
    args: tuple[str, ...] = ()
    home: str = ""
    """A private CODEX_HOME; without one it is the user's own, with their login."""
    now: Callable[[], float] = time.time

    @property
    def needs(self) -> tuple[str, ...]:
        return (*KEYS, "OPENAI_BASE_URL", "CODEX_HOME", "CODEX_CA_CERTIFICATE")

    def probe(self) -> Probe:
        return probe_program(self.program, Known(agent=self.name, install=INSTALL, version=LAST_KNOWN_GOOD))

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        return (str(codex_home(environment, self.home)),)

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        if self.home:
            # Codex does not start without it.
            await anyio.Path(self.home).mkdir(parents=True, exist_ok=True)
        conversation = CodexConversation(self, assignment, spawn=spawn, watch=watch)
        try:
            yield conversation
        finally:
            await conversation.close()


class TurnFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one turn, by their paths."""

    schema: str
    answer: str
    """Codex writes its last message here; the message can be too long for a line."""


@contextmanager
def turn_files(work: Assignment) -> Iterator[TurnFiles]:
    with TemporaryDirectory(prefix="codex-", dir=work.environment.get("TMPDIR")) as folder:
        schema = Path(folder, "schema.json")
        schema.write_text(json.dumps(to_strict(work.schema)), encoding="utf-8")
        yield TurnFiles(schema=str(schema), answer=str(Path(folder, "answer.txt")))


class CodexConversation(AgentConversation):
    """One start of Codex per turn, which resumes the thread of the turn before."""

    def __init__(self, agent: CodexAgent, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> None:
        login = f"CODEX_HOME={agent.home} codex login" if agent.home else "codex login"
        super().__init__(agent.name, assignment, watch, login=f"log in with `{login}`", now=agent.now)
        self._agent = agent
        self._spawn = spawn
        self._thread = Thread.parse(assignment.conversation)
        self._attempt = assignment.attempt - 1
        self._unanswered: list[str] = []

    async def _turn(self, prompt: str) -> Reply:
        self._attempt += 1
        self._unanswered.append(prompt)
        output, ended = await self._run(prompt)
        if output.has_lost_thread:
            # A thread that was interrupted right after its start was never stored.
            self._thread = Thread()
            output, ended = await self._run("\n\n".join(self._unanswered))
        self._unanswered.clear()
        return self._reply_to(ended, output)

    async def _run(self, prompt: str) -> tuple[TurnOutput, Exit]:
        work = self._assignment
        output = TurnOutput(self._watch, self._thread.id, real_workspace(work))
        self._delete_result()
        with turn_files(work) as files:
            try:
                ended = await run_turn(
                    self._spawn,
                    command_line(self._agent, work, files, self._thread.id),
                    prompt.encode(errors="replace"),
                    cwd=work.workspace,
                    env=variables(self._agent, work, self._attempt),
                    limit=self._gate.time_left,
                    feed=output.feed,
                )
            finally:
                # Also after an interruption: what was said so far is in the thread.
                self._thread = msgspec.structs.replace(self._thread, id=output.thread)
            output.answer = read_result(files.answer) or output.answer
        return output, ended

    def _reply_to(self, ended: Exit, output: TurnOutput) -> Reply:
        """Goes by the last event of the turn: the exit code adds nothing."""
        usage = Usage()
        if output.totals:
            usage = self._count(self._thread.usage_since(output.totals))
            self._thread = msgspec.structs.replace(self._thread, counted=self._thread.counted + usage)
        if ended.timed_out or not (output.completed or output.failure):
            return self._exited(ended, output.stderr)
        if not output.completed:
            return self._reported(failure_kind(output.failure), output.failure)
        body = self._result(output.answer)
        if body is None:
            return self._failure(FailureKind.silent, "ended without a result: its last message has no JSON object")
        return Answer(body=body, usage=usage, conversation=str(self._thread))

    def _result(self, text: bytes | bytearray) -> bytes | None:
        """The answer follows the strict schema, and the result file does not."""
        found = last_json_object(text)
        return read_result(self._assignment.result_path) or (to_ordinary(found) if found else None)


def command_line(agent: CodexAgent, work: Assignment, files: TurnFiles, thread: str) -> list[str]:
    schema = ["--output-schema", files.schema] if work.schema else []
    return [
        *(agent.program, "exec", "--json", "--ignore-user-config", "--ignore-rules"),
        *("-C", real_workspace(work), "-o", files.answer, *schema),
        *(["-m", agent.model] if agent.model else []),
        *override_flags(settings_for(work, codex_home(work.environment, agent.home))),
        *agent.args,
        *(["resume", thread] if thread else []),
        "-",
    ]


def variables(agent: CodexAgent, work: Assignment, attempt: int) -> dict[str, str]:
    home = {"CODEX_HOME": agent.home} if agent.home else {}
    own_key = key_variable(work.environment, codex_home(work.environment, agent.home))
    return {**agent_environment(work, attempt), **home, **own_key}
