"""Codex as an agent: one `codex exec` per turn, all turns of a conversation in one thread of Codex."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import anyio
import msgspec

from iterdev.agents.codex import protocol
from iterdev.agents.codex.failures import failure_kind
from iterdev.agents.codex.settings import KEYS, codex_home, key_variable, override_flags, real_workspace, settings_for
from iterdev.agents.codex.strict_schema import to_ordinary, to_strict
from iterdev.agents.common.conversation import AgentConversation, usage_since
from iterdev.agents.common.environment import agent_environment
from iterdev.agents.common.json_lines import Lines
from iterdev.agents.common.output import STDERR_KEPT
from iterdev.agents.common.result_file import last_json_object, read_result
from iterdev.agents.common.versions import probe_program
from iterdev.agents.contract import Answer, Assignment, Probe, Reply, Spawn, Watch
from iterdev.core.limits.agent_failures import FailureKind
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

    needs: ClassVar[tuple[str, ...]] = (*KEYS, "OPENAI_BASE_URL", "CODEX_HOME", "CODEX_CA_CERTIFICATE")

    def probe(self) -> Probe:
        return probe_program(self.program, agent=self.name, install=INSTALL, last_known_good=LAST_KNOWN_GOOD)

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        return (str(codex_home(environment, self.home)),)

    def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> "CodexConversation":
        if self.home:
            # Codex does not start without it.
            Path(self.home).mkdir(parents=True, exist_ok=True)
        return CodexConversation(self, assignment, spawn=spawn, watch=watch)


class Thread(msgspec.Struct, frozen=True):
    """A conversation as Codex stores it, and the usage counted so far: Codex reports totals since its start."""

    id: str = ""
    counted: Usage = Usage()

    def __str__(self) -> str:
        return f"{self.id} {self.counted.input_tokens} {self.counted.output_tokens}" if self.id else ""

    @classmethod
    def parse(cls, conversation: str) -> "Thread":
        match conversation.split():
            case [id_, counted_in, counted_out]:
                return cls(id_, Usage(input_tokens=int(counted_in), output_tokens=int(counted_out)))
            case _:
                return cls(conversation)


class TurnOutput:
    """What one turn has written so far."""

    def __init__(self, watch: Watch, thread: str, workspace: str) -> None:
        self.thread = thread
        self.totals: Usage | None = None
        self.completed = False
        self.failure = ""
        self.answer = b""
        self.stderr = bytearray()
        self._watch, self._workspace = watch, workspace
        self._lines = {"stdout": Lines(), "stderr": Lines()}

    @property
    def has_lost_thread(self) -> bool:
        return not self.completed and b"no rollout found" in self.stderr

    def feed(self, stream: str, chunk: bytes) -> None:
        if stream == "stderr":
            self.stderr += chunk
            del self.stderr[:-STDERR_KEPT]
        for line in self._lines[stream].feed(chunk):
            if stream == "stdout":
                self._handle(line)
            elif denied := protocol.denied_permission(line):
                self._watch(denied)

    def _handle(self, line: bytes) -> None:
        event = protocol.read(line)
        if event is None:
            return
        # Codex continued after an error that it had reported, so a later end has another cause.
        self.failure = ""
        match event:
            case protocol.ThreadStarted(thread):
                self.thread = thread
            case protocol.ItemCompleted(protocol.Item(type="agent_message", text=text)):
                self.answer = text.encode(errors="replace")
            case protocol.TurnCompleted(totals):
                self.completed, self.totals = True, totals
            case protocol.TurnFailed(protocol.Failure(message)) | protocol.ErrorReported(message):
                self.failure = message
            case _:
                pass
        if described := protocol.describe(event, self._workspace):
            self._watch(described)


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
        with TemporaryDirectory(prefix="codex-", dir=work.environment.get("TMPDIR")) as folder:
            # Codex writes its last message to a file as well, because it can be too long for a line.
            schema, answer = Path(folder, "schema.json"), Path(folder, "answer.txt")
            await anyio.Path(schema).write_text(json.dumps(to_strict(work.schema)), encoding="utf-8")
            try:
                ended = await self._run_program(
                    self._spawn,
                    command_line(self._agent, work, self._thread.id, schema=schema, answer=answer),
                    variables(self._agent, work, self._attempt),
                    prompt.encode(errors="replace"),
                    output.feed,
                )
            finally:
                # Also after an interruption: what was said so far is in the thread.
                self._thread = msgspec.structs.replace(self._thread, id=output.thread)
            output.answer = read_result(str(answer)) or output.answer
        return output, ended

    def _reply_to(self, ended: Exit, output: TurnOutput) -> Reply:
        """Goes by the last event of the turn: the exit code adds nothing."""
        usage = Usage()
        if output.totals:
            usage = self._count(usage_since(self._thread.counted, output.totals))
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


def command_line(agent: CodexAgent, work: Assignment, thread: str, *, schema: Path, answer: Path) -> list[str]:
    return [
        *(agent.program, "exec", "--json", "--ignore-user-config", "--ignore-rules"),
        *("-C", real_workspace(work), "-o", str(answer)),
        *(["--output-schema", str(schema)] if work.schema else []),
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
