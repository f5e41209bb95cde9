"""The stream of a page: as the session proceeds, the browser gets the parts of the page that changed.

While at least one browser listens, one task looks at the journal. What changed is rendered once for each address, at
most four times a second, and sent to everybody who looks at it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
from anyio import to_thread
from msgspec import Struct

from iterdev.surfaces.web.rendering import Rendered

INTERVAL = 0.05
"""Seconds between two checks of the journal."""
LONGEST = 1.0
"""Seconds after which sessions are checked although nothing was written: a killed engine writes nothing."""
PAUSE = 0.25
"""Seconds between two versions of a page."""
KEEP_ALIVE = 15.0
RELOAD = "event: reload\ndata: {}\n\n"
MOST_BEHIND = 1000
"""How many messages a browser may be behind before it has to reload the page."""

Render = Callable[[str], Rendered]
"""Renders the page at an address."""


class Channel:
    """All browsers that show the page of one address."""

    def __init__(self, rendered: Rendered) -> None:
        self.rendered = rendered
        self.listeners: set[asyncio.Queue[str | None]] = set()
        self.rendered_at = float("-inf")
        """When a version was last sent; the page itself does not count, so that what happens then is seen at once."""
        self.is_stale = False
        self.seen = _pulse(rendered)

    def publish(self, rendered: Rendered) -> None:
        messages = list(changes(self.rendered, rendered))
        self.rendered = rendered
        for queue in list(self.listeners):
            for message in messages:
                if queue.qsize() >= MOST_BEHIND:
                    self.listeners.discard(queue)
                    queue.put_nowait(None)
                    break
                queue.put_nowait(message)


class Stream:
    def __init__(self, look: Callable[[], bool], render: Render, has_news: Callable[[], bool] = lambda: True) -> None:
        """`look` takes its time, in another thread; `has_news` says at once whether there may be something to see."""
        self._look, self._render, self._has_news = look, render, has_news
        self._channels: dict[str, Channel] = {}
        self._follower: asyncio.Task[None] | None = None

    @property
    def is_following(self) -> bool:
        return self._follower is not None

    async def listen(self, address: str, mark: str) -> AsyncIterator[str]:
        """What changes from now on; and first what a page with this mark does not show yet."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        rendered = await to_thread.run_sync(self._render, address)
        channel = self._channels.setdefault(address, Channel(rendered))
        if channel.rendered.mark != rendered.mark:
            channel.publish(rendered)
        channel.listeners.add(queue)
        if self._follower is None:
            self._follower = asyncio.create_task(self._follow())
        try:
            yield ": connected\n\n"
            if rendered.mark != mark:
                for name, html in rendered.parts.items():
                    yield _patch(rendered, name, html=html)
            while True:
                message = await _next(queue)
                if message is None:
                    yield RELOAD
                    return
                yield message
        finally:
            channel.listeners.discard(queue)
            if not channel.listeners:
                self._channels.pop(address, None)
            if not self._channels and self._follower is not None:
                self._follower.cancel()
                self._follower = None

    async def _follow(self) -> None:
        looked_at = float("-inf")
        while True:
            await asyncio.sleep(INTERVAL)
            changed = False
            if self._has_news() or time.monotonic() >= looked_at + LONGEST:
                changed, looked_at = await to_thread.run_sync(self._look), time.monotonic()
            for address, channel in list(self._channels.items()):
                seen = _pulse(channel.rendered)
                if changed or seen != channel.seen:
                    channel.is_stale, channel.seen = True, seen
                if channel.is_stale and time.monotonic() >= channel.rendered_at + PAUSE:
                    await self._update(address, channel)

    async def _update(self, address: str, channel: Channel) -> None:
        channel.is_stale = False
        try:
            rendered = await to_thread.run_sync(self._render, address)
        except Exception:  # noqa: BLE001 - what the page shows is gone, and the page itself will say why
            for queue in channel.listeners:
                queue.put_nowait(None)
        else:
            channel.publish(rendered)
        channel.rendered_at = time.monotonic()


class Patch(Struct, frozen=True, kw_only=True, omit_defaults=True):
    part: str
    html: str | None = None
    """What the part has from now on."""
    added: str | None = None
    """What is new at the end of a part that grows."""


def changes(before: Rendered, after: Rendered) -> Iterator[str]:
    """The messages that turn one version of a page into the next one."""
    if before.parts.keys() != after.parts.keys():
        yield RELOAD
        return
    growing = {part.name for part in after.page.parts if part.grows}
    for name, html in after.parts.items():
        known = before.parts.get(name)
        if known == html:
            continue
        if name in growing and known and html.startswith(known):
            yield _patch(after, name, added=html.removeprefix(known))
        else:
            yield _patch(after, name, html=html)


def _patch(rendered: Rendered, name: str, *, html: str | None = None, added: str | None = None) -> str:
    body = msgspec.json.encode(Patch(part=name, html=html, added=added)).decode()
    return f"id: {rendered.page.seq or 0}\nevent: patch\ndata: {body}\n\n"


async def _next(queue: "asyncio.Queue[str | None]") -> str | None:
    try:
        async with asyncio.timeout(KEEP_ALIVE):
            return await queue.get()
    except TimeoutError:
        return ": keep-alive\n\n"


def _pulse(rendered: Rendered) -> object:
    return rendered.page.changes_with() if rendered.page.changes_with else None
