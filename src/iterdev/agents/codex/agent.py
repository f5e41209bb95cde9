"""Codex as an agent: one `codex exec` per turn, all turns of a conversation in one thread of Codex.

The user's login is used. Codex reads none of their other settings, and none of the project's.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import anyio
import msgspec

from iterdev.agents.codex import protocol
from iterdev.agents.codex.strict_schema import to_ordinary, to_strict
from iterdev.agents.common.conversation import AgentConversation, usage_since
from iterdev.agents.common.environment import agent_environment
from iterdev.agents.common.result_file import last_json_object, read_result
from iterdev.agents.common.streams import STDERR_KEPT, Lines
from iterdev.agents.common.versions import probe_program
from iterdev.agents.contract import TOOLS, TOOLS_TOKEN, Answer, Assignment, Probe, Reply, Spawn, Watch
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit
from iterdev.core.results import Usage

INSTALL = "npm install -g @openai/codex"
LAST_KNOWN_GOOD = "0.166.0"
KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")

BASE_SETTINGS: Mapping[str, object] = {
    "analytics.enabled": False,
    # These two clone a repository and call a web service at every start.
    "features.plugins": False,
    "features.apps": False,
    "features.hooks": False,
    "skills.include_instructions": False,
    # The default waits forever for a provider that refuses connections.
    "features.unbounded_connection_retries": False,
    # A request for approval is denied at once; it would wait for a person.
    "approval_policy": "never",
    # The agent's commands do not need the provider's key.
    "shell_environment_policy.exclude": [*KEYS, TOOLS_TOKEN],
}


class CodexAgent(msgspec.Struct, frozen=True):
    name: str = "codex"
    program: str = "codex"
    model: str = ""
    args: tuple[str, ...] = ()
    home: str = ""
    """A private CODEX_HOME; without one it is the user's own, with their login."""
    now: Callable[[], float] = time.time

    needs: ClassVar[tuple[str, ...]] = (*KEYS, "OPENAI_BASE_URL", "CODEX_HOME", "CODEX_CA_CERTIFICATE")
    # In a project that is not trusted it ignores AGENTS.md, together with settings that start programs.
    reads: ClassVar[tuple[str, ...]] = ()

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
    def __init__(self, watch: Watch, thread: str, workspace: str) -> None:
        self.thread = thread
        self.totals: Usage | None = None
        self.completed = False
        self.failure = ""
        self.answer = b""
        self.stderr = bytearray()
        self._watch, self._workspace = watch, workspace
        self._lines = {"stdout": Lines(), "stderr": Lines()}

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
        if not output.completed and b"no rollout found" in output.stderr:
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
            return self._reported(protocol.failure_kind(output.failure), output.failure)
        body = self._result(output.answer)
        if body is None:
            return self._failure(FailureKind.silent, "ended without a result: its last message has no JSON object")
        return Answer(body=body, usage=usage, conversation=str(self._thread))

    def _result(self, text: bytes | bytearray) -> bytes | None:
        """The answer follows the strict schema, and the result file does not."""
        found = last_json_object(text)
        return read_result(self._assignment.result_path) or (to_ordinary(found) if found else None)


def command_line(agent: CodexAgent, work: Assignment, thread: str, *, schema: Path, answer: Path) -> list[str]:
    settings = settings_for(work, codex_home(work.environment, agent.home))
    return [
        *(agent.program, "exec", "--json", "--ignore-user-config", "--ignore-rules"),
        *("-C", real_workspace(work), "-o", str(answer)),
        *(["--output-schema", str(schema)] if work.schema else []),
        *(["-m", agent.model] if agent.model else []),
        *(word for name, value in settings.items() for word in ("-c", f"{name}={toml(value)}")),
        *agent.args,
        *(["resume", thread] if thread else []),
        "-",
    ]


def variables(agent: CodexAgent, work: Assignment, attempt: int) -> dict[str, str]:
    private = {"CODEX_HOME": agent.home} if agent.home else {}
    # Codex reads the user's key under another name; it is not needed if they are logged in some other way.
    home = codex_home(work.environment, agent.home)
    openai, *own = (work.environment.get(name) for name in KEYS)
    logged_in = any(own) or (home / "auth.json").exists() or read_login(home).cli_auth_credentials_store
    key = {"CODEX_API_KEY": openai} if openai and not logged_in else {}
    return {**agent_environment(work, attempt), **private, **key}


class Login(msgspec.Struct, frozen=True):
    """The user's settings that say where their login is stored and which provider it is for."""

    cli_auth_credentials_store: str = ""
    openai_base_url: str = ""


def read_login(home: Path) -> Login:
    try:
        return msgspec.toml.decode((home / "config.toml").read_bytes(), type=Login)
    except (OSError, ValueError, RecursionError):
        return Login()


def codex_home(environment: Mapping[str, str], private: str = "") -> Path:
    folder = private or environment.get("CODEX_HOME") or ""
    return Path(folder) if folder else Path(environment.get("HOME", "")) / ".codex"


def real_workspace(work: Assignment) -> str:
    """The path by which Codex knows the workspace."""
    return os.path.realpath(work.workspace)


def settings_for(work: Assignment, home: Path) -> dict[str, object]:
    login, role = read_login(home), work.permissions
    base_url = work.environment.get("OPENAI_BASE_URL") or login.openai_base_url
    store = login.cli_auth_credentials_store
    tools = work.tools and {
        f"mcp_servers.{TOOLS}.url": work.tools.url,
        f"mcp_servers.{TOOLS}.bearer_token_env_var": TOOLS_TOKEN,
        # By default a tool that is not declared read-only is denied.
        f"mcp_servers.{TOOLS}.default_tools_approval_mode": "approve",
    }
    return {
        **BASE_SETTINGS,
        # Otherwise Codex adds the repository to the trusted projects in the user's settings.
        "projects": {real_workspace(work): {"trust_level": "untrusted"}},
        # An outer sandbox limits what the role can write; but its commands have the network.
        "sandbox_mode": "danger-full-access" if work.sandboxed else "workspace-write" if role.write else "read-only",
        "sandbox_workspace_write.network_access": role.network,
        "sandbox_workspace_write.exclude_slash_tmp": "TMPDIR" in work.environment,
        **({} if role.network else {"web_search": "disabled"}),
        **({} if role.shell else {"features.shell_tool": False}),
        **({"openai_base_url": base_url} if base_url else {}),
        **({"cli_auth_credentials_store": store} if store else {}),
        **(tools or {}),
    }


def toml(value: object) -> str:
    match value:
        case Mapping():
            return "{" + ", ".join(f"{toml(name)} = {toml(part)}" for name, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            # Strings, numbers and booleans are the same in TOML and JSON, except for surrogates.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
