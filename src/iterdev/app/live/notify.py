"""Sends a test message by every channel of `[notify]`."""

from collections.abc import Callable
from pathlib import Path

import anyio
from msgspec import Struct

from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.core.settings import FILE
from iterdev.core.types import SessionId
from iterdev.core.views.notifications import Notification
from iterdev.engine.notifier import LIMIT
from iterdev.engine.repository import Repository
from iterdev.host.notifications.channel import Misconfigured, channels
from iterdev.host.processes.spawn import Supervisor

TEST = Notification(
    session=SessionId("no-session"),
    kind="test",
    text="This is a test. What needs you will look like this.",
    commands=("iterdev status",),
)


class Tried(Struct, frozen=True, kw_only=True):
    channel: str
    error: str = ""
    """Why the message could not be sent."""


async def try_channels(folder: Path, alert: Callable[[str], bool]) -> tuple[Tried, ...]:
    """One try for each. `alert` says whether there is a terminal."""

    def require_terminal(text: str) -> None:
        if not alert(text):
            raise HostError("there is no terminal")

    repository = Repository(folder)
    settings = repository.settings.notify
    if not settings.is_used:
        hint = f"printf '\\n[notify]\\ndesktop = true\\n' >> {FILE}"
        raise UserError(f"No notifications are configured in {FILE}", hint=hint)
    tried: list[Tried] = []
    async with Supervisor() as supervisor:
        for channel in channels(settings, supervisor.spawn, repository.top, require_terminal):
            if isinstance(channel, Misconfigured):
                tried.append(Tried(channel=channel.name, error=channel.problem))
                continue
            error = ""
            try:
                with anyio.fail_after(LIMIT):
                    await channel.send(TEST)
            except TimeoutError:
                error = f"it took more than {LIMIT:g} s"
            except (IterdevError, OSError) as problem:
                error = str(problem)
            tried.append(Tried(channel=channel.name, error=repository.redact(error)))
    return tuple(tried)
