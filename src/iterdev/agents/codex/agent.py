"""Codex as an agent: one `codex exec` per turn, all turns of a conversation in one thread of Codex.

It knows how a turn is handed over, heard and judged. How Codex is set up, what its lines say and what its failures mean
is known by its siblings.
"""

import json
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec

from iterdev.agents.codex.failures import kind_of
from iterdev.agents.codex.protocol import Totals
from iterdev.agents.codex.settings import KEYS, flags, home_of, key, real_workspace, settings_for
from iterdev.agents.codex.strict_schema import restored, strict
from iterdev.agents.codex.turn import Hearing, Thread
from iterdev.agents.command import (
    COMPLAINT_LENGTH,
    Watch,
    death,
    environment,
    forget,
    hand_over,
    last_json_object,
    written,
)
from iterdev.agents.common.failures import FAILURES
from iterdev.agents.common.reset_times import reset_at
from iterdev.agents.common.turns import Floor
from iterdev.agents.common.versions import Known, probed
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
        return probed(self.program, Known(agent=self.name, install=INSTALL, version=LAST_KNOWN_GOOD))

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        return (str(home_of(environment, self.home)),)

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        if self.home:
            # Codex does not start without it.
            await anyio.Path(self.home).mkdir(parents=True, exist_ok=True)
        talk = CodexConversation(self, assignment, spawn=spawn, watch=watch)
        try:
            yield talk
        finally:
            await talk.close()


class Papers(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one turn, by their paths."""

    schema: str
    answer: str
    """Here Codex writes its last message, which can be too long for a line."""


@contextmanager
def papers_for(work: Assignment) -> Iterator[Papers]:
    with TemporaryDirectory(prefix="codex-", dir=work.environment.get("TMPDIR")) as folder:
        schema = Path(folder, "schema.json")
        schema.write_text(json.dumps(strict(work.schema)), encoding="utf-8")
        yield Papers(schema=str(schema), answer=str(Path(folder, "answer.txt")))


class CodexConversation:
    """One start of Codex per turn, which takes up the thread of the turn before."""

    def __init__(self, agent: CodexAgent, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> None:
        self._agent = agent
        self._assignment = assignment
        self._spawn = spawn
        self._watch = watch
        self._thread = Thread.named(assignment.conversation)
        self._attempt = assignment.attempt - 1
        self._unanswered: list[str] = []
        self._floor = Floor(assignment.limit)

    async def send(self, prompt: str) -> Reply:
        reply = await self._floor.take(partial(self._turn, prompt))
        return reply or self._trouble(TroubleKind.timed_out, "was interrupted")

    async def close(self) -> None:
        await self._floor.close()

    async def _turn(self, prompt: str) -> Reply:
        self._attempt += 1
        self._unanswered.append(prompt)
        try:
            hearing, ended = await self._run(prompt)
            if hearing.has_lost_thread:
                # A thread that was interrupted right after its start was never stored.
                self._thread = Thread()
                hearing, ended = await self._run("\n\n".join(self._unanswered))
        except (OSError, HostError) as error:
            return self._trouble(TroubleKind.crashed, f"could not be started: {error}")
        self._unanswered.clear()
        return self._judge(ended, hearing)

    async def _run(self, prompt: str) -> tuple[Hearing, Exit]:
        work, left = self._assignment, self._floor.time_left
        hearing = Hearing(self._watch, self._thread.id, real_workspace(work))
        if left <= 0:
            return hearing, Exit(code=-signal.SIGTERM, timed_out=True)
        forget(work.result_path)
        with papers_for(work) as papers:
            argv = command_line(self._agent, work, papers, self._thread.id)
            env = variables(self._agent, work, self._attempt)
            try:
                async with self._spawn(argv, cwd=work.workspace, env=env, limit=left) as process:
                    ended = await self._talk(process, prompt, hearing)
            finally:
                # Also after an interruption: what was said so far is in the thread.
                self._thread = msgspec.structs.replace(self._thread, id=hearing.thread)
            hearing.answer = written(papers.answer) or hearing.answer
        return hearing, ended

    async def _talk(self, process: Process, prompt: str, hearing: Hearing) -> Exit:
        async with anyio.create_task_group() as group:
            group.start_soon(hand_over, process, prompt)
            async for stream, chunk in process.output():
                hearing.hear(stream, chunk)
            group.cancel_scope.cancel()
        return await process.wait()

    def _judge(self, ended: Exit, hearing: Hearing) -> Reply:
        """Goes by what was heard last: the exit code says nothing more."""
        usage = self._count(hearing.totals)
        if ended.timed_out or not hearing.completed:
            return self._failed(ended, hearing)
        body = written(self._assignment.result_path) or answer_in(hearing.answer)
        if body is None:
            return self._trouble(TroubleKind.silent, "ended without a result: its last message has no JSON object")
        return Answer(body=body, usage=usage, conversation=str(self._thread))

    def _count(self, totals: Totals | None) -> Usage:
        if totals is None:
            return Usage()
        usage = self._thread.spent(totals)
        self._thread = msgspec.structs.replace(self._thread, counted=self._thread.counted + usage)
        self._watch(Spent(usage))
        return usage

    def _failed(self, ended: Exit, hearing: Hearing) -> AgentFailure:
        words = hearing.failure
        if ended.timed_out or not words:
            return self._trouble(*death(ended, bytes(hearing.complaints), self._assignment.limit))
        kind = kind_of(words)
        home = f"CODEX_HOME={self._agent.home} " if self._agent.home else ""
        advice = f". Log in with `{home}codex login`" if kind is TroubleKind.not_logged_in else ""
        reset = reset_at(words, self._agent.now()) if kind is TroubleKind.limited else None
        return self._trouble(kind, f"{FAILURES.get(kind, 'failed')}: {words[:COMPLAINT_LENGTH]}{advice}", reset)

    def _trouble(self, kind: TroubleKind, what: str, reset: float | None = None) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._agent.name}" {what}', reset_at=reset)


def command_line(agent: CodexAgent, work: Assignment, papers: Papers, thread: str) -> list[str]:
    schema = ["--output-schema", papers.schema] if work.schema else []
    return [
        *(agent.program, "exec", "--json", "--ignore-user-config", "--ignore-rules"),
        *("-C", real_workspace(work), "-o", papers.answer, *schema),
        *(["-m", agent.model] if agent.model else []),
        *flags(settings_for(work, home_of(work.environment, agent.home))),
        *agent.args,
        *(["resume", thread] if thread else []),
        "-",
    ]


def variables(agent: CodexAgent, work: Assignment, attempt: int) -> dict[str, str]:
    home = {"CODEX_HOME": agent.home} if agent.home else {}
    own_key = key(work.environment, home_of(work.environment, agent.home))
    return {**environment(work, attempt), **home, **own_key}


def answer_in(message: bytes) -> bytes | None:
    found = last_json_object(message)
    return restored(found) if found else None
