"""Revisions of the protocol, and what a client of each can do.

Up to 2025-11-25 a client says who it is once, in a handshake. From 2026-07-28 on, every request says it.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

HANDSHAKE = ("2024-11-05", "2025-06-18", "2025-11-25")
"""Those that have the same few messages. The one between the first two has lists of messages, which nobody sends."""
STATELESS = ("2026-07-28",)
TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which a tool answers with a task."""


class Capabilities(Struct, frozen=True, kw_only=True):
    elicitation: Mapping[str, object] | None = None
    extensions: Mapping[str, object] | None = None


class Caller(Struct, frozen=True, kw_only=True):
    """The client that a request is from."""

    revision: str = HANDSHAKE[-1]
    capabilities: Capabilities = Capabilities()

    @property
    def is_stateless(self) -> bool:
        return self.revision in STATELESS

    @property
    def can_ask(self) -> bool:
        """Whether it can show the user a question with choices."""
        modes = self.capabilities.elicitation
        return modes is not None and (not modes or "form" in modes)

    @property
    def has_tasks(self) -> bool:
        return self.is_stateless and TASKS in (self.capabilities.extensions or {})


class InitializeParams(Struct, frozen=True, kw_only=True):
    version: str = msgspec.field(name="protocolVersion")
    capabilities: Capabilities = Capabilities()


class _Meta(Struct, frozen=True, kw_only=True):
    revision: str | None = msgspec.field(name="io.modelcontextprotocol/protocolVersion", default=None)
    capabilities: Capabilities = msgspec.field(
        name="io.modelcontextprotocol/clientCapabilities", default=Capabilities()
    )
    progress_token: int | str | None = msgspec.field(name="progressToken", default=None)


class RequestParams(Struct, frozen=True, kw_only=True):
    """What every request may say of itself."""

    meta: _Meta | None = msgspec.field(name="_meta", default=None)

    @property
    def progress_token(self) -> int | str | None:
        return self.meta.progress_token if self.meta else None

    @property
    def caller(self) -> Caller | None:
        """The client, in a revision in which every request says it."""
        if self.meta is None or self.meta.revision is None:
            return None
        return Caller(revision=self.meta.revision, capabilities=self.meta.capabilities)


def agreed(offered: str) -> str:
    """The revision for a client that offers one in a handshake: never one that is newer than that."""
    return max((known for known in HANDSHAKE if known <= offered), default=HANDSHAKE[0])


def initialized(params: Raw) -> Caller:
    """The client that says who it is in a handshake."""
    asked = msgspec.json.decode(params, type=InitializeParams)
    return Caller(revision=agreed(asked.version), capabilities=asked.capabilities)
