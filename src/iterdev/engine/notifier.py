"""Tells the user what needs them, by the channels that are configured. No work waits for it.

A message is in the journal before it is sent, so that it is sent at most once, even after a kill.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.errors import IterdevError
from iterdev.core.session.delivery import Notified
from iterdev.core.types import NotificationKind
from iterdev.core.views.notifications import Notification, changes, due, joined
from iterdev.core.views.session import session_view
from iterdev.execution.contract import Effect
from iterdev.host.notifications.channel import Channel
from iterdev.store.session_log import SessionLog

LOOK = 0.5
"""Seconds between two checks of the session."""
LIMIT = 5.0
"""Seconds that a try may take."""
RETRIES = (1.0, 5.0, 25.0)
"""Seconds until a message that could not be sent is tried again."""
AT_END = 3.0
"""Seconds that the end of a run waits for messages that are not sent yet: the user waits for the end meanwhile."""


class Journal(Struct, frozen=True, kw_only=True):
    """How a notifier writes to the session."""

    record: Callable[[Notified], None]
    warn: Callable[[str], None]
    redact: Callable[[str], str]


class Notifier:
    def __init__(
        self,
        log: SessionLog,
        channels: Sequence[Channel],
        kinds: Collection[NotificationKind],
        journal: Journal,
        effect: Effect,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        at_end: float = AT_END,
    ) -> None:
        self._log, self._channels, self._kinds, self._journal = log, channels, kinds, journal
        self._effect, self._sleep, self._at_end = effect, sleep, at_end
        self._sent: list[float] = []
        self._seen = -1
        self._waiting: tuple[Notification, ...] = ()
        self._open: list[str] = []
        """The channels by which messages are being sent."""
        self._idle = anyio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Watches the session; what is new at the end is sent too."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group)
            yield
            self.look(group, is_end=True)
            with anyio.move_on_after(self._at_end):
                while self._open:
                    await self._idle.wait()
            if self._open:
                names = ", ".join(dict.fromkeys(self._open))
                self._journal.warn(f"a notification could not be sent by {names} before the run ended")
            group.cancel_scope.cancel()

    async def _watch(self, group: TaskGroup) -> None:
        while True:
            self.look(group)
            await anyio.sleep(LOOK)

    def look(self, group: TaskGroup, *, is_end: bool = False) -> None:
        """Begins to send what is due."""
        state, now = self._log.state, self._log.now()
        if state.seq != self._seen:
            needs = session_view(state, self._log.team, engine_alive=True, room=0).needs
            self._waiting = changes(self._log.session, needs, state.delivery.notified, self._kinds)
            self._seen = state.seq
        if not self._waiting:
            return
        messages = due(self._waiting, self._sent, now)
        if is_end and not messages:
            messages = (joined(self._waiting),)
        for message in messages:
            self._journal.record(message.event)
            self._sent = [*self._sent[-10:], now]
            for channel in self._channels:
                self._open.append(channel.name)
                group.start_soon(self._deliver, channel, replace(message, text=self._journal.redact(message.text)))
        if messages:
            self._waiting = ()

    async def _deliver(self, channel: Channel, message: Notification) -> None:
        problem = ""
        try:
            for pause in (0.0, *RETRIES):
                if pause:
                    await self._sleep(pause)
                if not (problem := await self._try(channel, message)):
                    return
            self._journal.warn(f"a notification could not be sent by {channel.name}: {self._journal.redact(problem)}")
        finally:
            self._open.remove(channel.name)
            self._idle.set()
            self._idle = anyio.Event()

    async def _try(self, channel: Channel, message: Notification) -> str:
        """Why it could not be sent; empty if it was."""
        try:
            with self._effect("notify", channel=channel.name, kind=message.kind), anyio.fail_after(LIMIT):
                await channel.send(message)
        except TimeoutError:
            return f"it took more than {LIMIT:g} s"
        except (IterdevError, OSError) as error:
            return str(error)
        return ""
