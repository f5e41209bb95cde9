"""What a way to the user is, and which ones are configured."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from iterdev.core.errors import UserError
from iterdev.core.settings import FILE, FROM_ENVIRONMENT, NotifySettings
from iterdev.core.views.notifications import Notification
from iterdev.host.notifications.programs import CommandChannel, DesktopChannel
from iterdev.host.processes.spawn import Spawn

SECRET = "ITERDEV_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable


class Channel(Protocol):
    @property
    def name(self) -> str: ...

    async def send(self, notification: Notification) -> None:
        """Raises `HostError` or `OSError` if it could not be sent. The caller limits the time."""
        ...


class TerminalChannel:
    """The terminal in which a run is shown."""

    name = "terminal"

    def __init__(self, alert: Callable[[str], None]) -> None:
        self._alert = alert

    async def send(self, notification: Notification) -> None:
        self._alert(f"{notification.title}: {notification.text}")


def channels(
    settings: NotifySettings,
    spawn: Spawn,
    folder: Path,
    alert: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Channel]:
    """Those that are configured; programs run in the folder. Raises `UserError` for a variable that is not set."""
    if settings.terminal:
        yield TerminalChannel(alert)
    if settings.desktop:
        yield DesktopChannel(spawn, folder, environment, sys.platform)
    if settings.command:
        yield CommandChannel(settings.command, spawn, folder, environment, settings.env)
    if settings.webhook or settings.slack:
        # It takes 50 ms to load, and most runs do not need it.
        from iterdev.host.notifications.webhook import SlackChannel, WebhookChannel  # noqa: PLC0415

        if settings.webhook:
            yield WebhookChannel(_address("webhook", settings.webhook, environment), environment.get(SECRET, ""))
        if settings.slack:
            yield SlackChannel(_address("slack", settings.slack, environment))


def _address(key: str, value: str, environment: Mapping[str, str]) -> str:
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    name = value.removeprefix(FROM_ENVIRONMENT)
    if not environment.get(name):
        problem = f'[notify] {key} of {FILE} names the variable "{name}", which is not set'
        raise UserError(problem, hint=f"export {name}=https://...")
    return environment[name]
