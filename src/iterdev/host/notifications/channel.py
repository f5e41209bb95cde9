"""What a way to the user is, and which ones are configured."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from iterdev.core.settings import ENCRYPTED, FROM_ENVIRONMENT, NotifySettings
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

    def __init__(self, alert: Callable[[str], object]) -> None:
        self._alert = alert

    async def send(self, notification: Notification) -> None:
        self._alert(f"{notification.title}: {notification.text}")


class Misconfigured(Struct, frozen=True):
    """A channel that cannot be used, and why."""

    name: str
    problem: str


def channels(
    settings: NotifySettings,
    spawn: Spawn,
    folder: Path,
    alert: Callable[[str], object],
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Channel | Misconfigured]:
    """Those that are configured; programs run in the folder."""
    if settings.terminal:
        yield TerminalChannel(alert)
    if settings.desktop:
        yield DesktopChannel(spawn, folder, environment, sys.platform)
    if settings.command:
        yield CommandChannel(settings.command, spawn, folder, environment, settings.env)
    if settings.webhook or settings.slack:
        # It takes 50 ms to load, and most runs do not need it.
        from iterdev.host.notifications.webhook import SlackChannel, WebhookChannel  # noqa: PLC0415

        signed = partial(WebhookChannel, secret=environment.get(SECRET, ""))
        if settings.webhook:
            yield _at("webhook", settings.webhook, environment, signed)
        if settings.slack:
            yield _at("slack", settings.slack, environment, SlackChannel)


def _at(
    name: str, value: str, environment: Mapping[str, str], make: Callable[[str], Channel]
) -> Channel | Misconfigured:
    """The channel to an address, or to the one in a variable."""
    variable = value.removeprefix(FROM_ENVIRONMENT) if value.startswith(FROM_ENVIRONMENT) else ""
    address = environment.get(variable, "") if variable else value
    if not address:
        return Misconfigured(name, f'the variable "{variable}" is not set')
    if not address.startswith(ENCRYPTED):
        return Misconfigured(name, f'the variable "{variable}" has no address with https://')
    return make(address)
