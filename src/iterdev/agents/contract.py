"""The protocol of an agent: it is probed, opened as a conversation, sent prompts, and closed.

Agents do not start processes themselves: they get a `Spawn`, so that every process of an agent is owned, limited and
ended in one place.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import ClassVar, Protocol

from msgspec import Struct

from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit
from iterdev.core.results import Usage


class Said(Struct, frozen=True, tag=True):
    text: str


class Spent(Struct, frozen=True, tag=True):
    usage: Usage


class PermissionAsked(Struct, frozen=True, tag=True):
    """The agent asked for something that its role may not do; it was denied."""

    what: str


AgentEvent = Said | Spent | PermissionAsked

Watch = Callable[[AgentEvent], None]
"""Receives the events of a conversation as they happen."""


class Answer(Struct, frozen=True, kw_only=True):
    """The end of a turn with a result, which is not yet checked against its schema."""

    body: bytes
    usage: Usage = Usage()
    """Of this turn alone, also where the agent counts from the start of the conversation."""
    conversation: str = ""
    """The id with which a later attempt resumes the conversation, in the same workspace."""


class AgentFailure(Struct, frozen=True, kw_only=True):
    kind: FailureKind
    message: str
    reset_at: float | None = None
    """When a limited provider answers again, in seconds since the epoch."""


Reply = Answer | AgentFailure


class Permissions(Struct, frozen=True, kw_only=True):
    """What a role may do. Every other request of an agent is denied at once and recorded."""

    write: bool
    """Inside the workspace; no role may write outside of it."""
    shell: bool = True
    network: bool = False


TOOLS = "iterdev"
"""The name of the team's tools among the MCP servers of an agent."""
TOOLS_URL = "ITERDEV_TOOLS_URL"
TOOLS_TOKEN = "ITERDEV_TOOLS_TOKEN"  # noqa: S105 - the name of a variable
"""Variables of every agent. The token is in one because every user of the machine can read a program's arguments."""

LOOPBACK = "127.0.0.1,localhost"


class ToolServer(Struct, frozen=True, kw_only=True):
    """The team's tools, as an MCP server over HTTP on loopback; the token identifies the attempt."""

    url: str
    token: str

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Address and token for a program's environment, and loopback excluded from the user's proxy."""
        direct = {name: ",".join(filter(None, (environment.get(name), LOOPBACK))) for name in ("NO_PROXY", "no_proxy")}
        return {TOOLS_URL: self.url, TOOLS_TOKEN: self.token, **direct}


class Assignment(Struct, frozen=True, kw_only=True):
    """Everything about one attempt that an agent may know."""

    task: str
    role: str
    attempt: int
    session: str
    session_dir: str
    workspace: str
    result_path: str
    schema: Mapping[str, object]
    permissions: Permissions
    limit: float
    """Seconds for the whole attempt."""
    environment: Mapping[str, str]
    issues: Sequence[str] = ()
    tools: ToolServer | None = None
    conversation: str = ""
    """The conversation of an earlier attempt to resume."""
    programs: str = ""
    """A copy of the session's base, if the command of the agent names files of it."""
    sandboxed: bool = False
    """The program runs in a sandbox already, inside of which it cannot make its own."""


class Process(Protocol):
    """A running program whose whole tree ends with it."""

    async def write(self, data: bytes) -> None: ...
    async def close_input(self) -> None: ...
    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        """Chunks of ("stdout" | "stderr", bytes) until the whole tree has ended."""

    async def wait(self) -> Exit: ...


class Spawn(Protocol):
    def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AbstractAsyncContextManager[Process]:
        """Starts a program; leaving the context ends its whole tree."""


class Conversation(Protocol):
    async def send(self, prompt: str) -> Reply:
        """Starts the agent's next turn; one that is still running is interrupted."""


class FailedConversation(Struct, frozen=True):
    """A conversation with an agent that could not be started: every turn is the same failure."""

    failure: AgentFailure

    async def send(self, prompt: str) -> Reply:
        del prompt
        return self.failure

    @classmethod
    def of(cls, name: str, error: Exception, kind: FailureKind = FailureKind.crashed) -> "FailedConversation":
        return cls(AgentFailure(kind=kind, message=f'The agent "{name}" could not be started: {error}'))


class Probe(Struct, frozen=True, kw_only=True):
    installed: bool
    version: str = ""
    problem: str = ""
    hint: str = ""
    note: str = ""
    """A remark on an agent that can be used."""


class Agent(Protocol):
    """Made from the configuration; one for all attempts."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]:
        """Variables of the user's environment with the login and the address of the provider."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The files of a repository with instructions for agents that the program reads by itself."""

    def probe(self) -> Probe: ...
    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        """Files and folders of the user that the program has to write to, such as its login."""

    def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AbstractAsyncContextManager[Conversation]:
        """Opens a conversation; leaving the context closes it, whatever happened."""


class AgentWithoutLogin(Struct, frozen=True):
    name: str
    needs: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        del environment
        return ()


class UnavailableAgent(AgentWithoutLogin, frozen=True):
    """An agent that is not installed: every turn fails with the reason, so that another agent can take over."""

    problem: str

    def probe(self) -> Probe:
        return Probe(installed=False, problem=self.problem)

    def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> nullcontext[FailedConversation]:
        del assignment, spawn, watch
        return nullcontext(FailedConversation(AgentFailure(kind=FailureKind.not_installed, message=self.problem)))
