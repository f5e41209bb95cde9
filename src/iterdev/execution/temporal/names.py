"""Queues, activities and hosts, as a Temporal server knows them. None of their names is encrypted there."""

from msgspec import Struct

from iterdev.core.types import TaskId
from iterdev.execution.wire_format import WIRE

PREFIX = "iterdev.v"
ATTEMPT, CALL = "attempt", "call"
"""The activities: an order for a host, and a question of an attempt to its session."""


def agent_queue(agent: str, wire: int = WIRE) -> str:
    """The queue of the attempts with an agent. A host of another version of the messages never sees them."""
    return f"{PREFIX}{wire}.agent.{agent}"


def tests_queue() -> str:
    """The queue of the tests of work that waits to land, which need no agent."""
    return f"{PREFIX}{WIRE}.tests"


def session_queue(shared_name: str) -> str:
    """The queue of what attempts ask their session."""
    return f"{PREFIX}{WIRE}.session.{shared_name}"


def activity_id(shared_name: str, task: TaskId, fence: int) -> str:
    return f"{shared_name}/{task}/{fence}"


def agent_of(queue: str) -> tuple[str, int] | None:
    """The agent whose attempts are in a queue, and the version of their messages; None for another queue."""
    version, _, rest = queue.removeprefix(PREFIX).partition(".")
    kind, _, agent = rest.partition(".")
    return (agent, int(version)) if queue.startswith(PREFIX) and kind == "agent" and version.isdecimal() else None


class HostIdentity(Struct, frozen=True):
    """A host, as its Temporal workers identify themselves."""

    name: str
    version: str
    """Of iterdev."""

    def __str__(self) -> str:
        return f"{self.name}@iterdev-{self.version}"


def host_identity(identity: str) -> HostIdentity:
    name, _, version = identity.rpartition("@iterdev-")
    return HostIdentity(name or identity, version if name else "")


class OfferedAgent(Struct, frozen=True, kw_only=True):
    agent: str
    slots: int
    busy: int
    wire: int
    """The version of the messages that the host understands."""


class Host(Struct, frozen=True, kw_only=True):
    name: str
    version: str
    """Of iterdev."""
    agents: tuple[OfferedAgent, ...]
    last_seen: float
    """In seconds since the epoch, by the clock of the host."""
    drains: bool = False
    """It takes no more attempts."""
