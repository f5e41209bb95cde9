"""The stream of a page: what changed is sent, once, to everybody who looks; and nobody looks for nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from tests.app.conftest import Sessions
from tests.surfaces.web.conftest import Site

from iterdev.core.session import events
from iterdev.surfaces.web.page import Page, Part
from iterdev.surfaces.web.rendering import Rendered
from iterdev.surfaces.web.stream import Stream, changes

PATIENCE = 20


def rendered(*, grows: bool = False, seq: int = 1, **parts: str) -> Rendered:
    made = tuple(Part(name=name, template="", values={}, grows=grows) for name in parts)
    return Rendered(page=Page(title="x", parts=made, seq=seq), parts=parts, mark=str(hash(tuple(parts.items()))))


def patches(messages: list[str]) -> list[dict[str, str]]:
    return [json.loads(message.partition("data: ")[2]) for message in messages]


async def message(stream: AsyncIterator[str], fits: Callable[[str], bool]) -> str:
    async with asyncio.timeout(PATIENCE):
        async for one in stream:
            if fits(one):
                return one
    raise AssertionError("the stream ended")


def test_only_parts_that_changed_are_sent() -> None:
    found = list(changes(rendered(a="1", b="2"), rendered(a="1", b="3", seq=7)))

    assert patches(found) == [{"part": "b", "html": "3"}]
    assert found[0].startswith("id: 7\nevent: patch\n")


def test_of_a_part_that_grows_only_the_end_is_sent_unless_its_beginning_was_cut() -> None:
    grown = changes(rendered(log="one", grows=True), rendered(log="one two", grows=True))
    cut = changes(rendered(log="one two", grows=True), rendered(log="two three", grows=True))

    assert patches(list(grown)) == [{"part": "log", "added": " two"}]
    assert patches(list(cut)) == [{"part": "log", "html": "two three"}]


def test_a_text_with_line_ends_is_one_message() -> None:
    (found,) = changes(rendered(a="1"), rendered(a="<p>\n\ndata: x\r\n</p>"))

    assert found.count("\n") == 4
    assert patches([found]) == [{"part": "a", "html": "<p>\n\ndata: x\r\n</p>"}]


def test_two_listeners_see_what_another_process_writes_and_the_last_one_ends_the_looking(
    site: Site, sessions: Sessions
) -> None:
    session = sessions.start()
    stream = site.application.stream

    async def listen() -> tuple[str, str, bool, bool]:
        first, second = (stream.listen(f"/s/{session}", "") for _ in range(2))
        await message(first, lambda text: '"part":"tasks"' in text)
        await message(second, lambda text: '"part":"tasks"' in text)
        await asyncio.to_thread(sessions.log(session).record, events.Warned("odd"))
        seen = [await message(one, lambda text: "odd" in text) for one in (first, second)]
        following = stream.is_following
        for one in (first, second):
            await one.aclose()
        return seen[0], seen[1], following, stream.is_following

    one, other, during, after = asyncio.run(listen())

    assert one == other
    assert '"part":"head"' in one
    assert one.startswith(f"id: {sessions.state(session).seq}\n")
    assert (during, after) == (True, False)


def test_what_a_page_has_shown_is_still_news_for_the_stream(site: Site, sessions: Sessions) -> None:
    session = sessions.start()
    site.watching.look()
    quiet = site.watching.has_news(), site.watching.look()
    sessions.log(session).record(events.Warned("odd"))

    site.get(f"/s/{session}")

    assert quiet == (False, False)
    assert (site.watching.has_news(), site.watching.look()) == (True, True)
    assert (site.watching.has_news(), site.watching.look()) == (False, False)


def test_a_page_that_is_up_to_date_is_sent_nothing(site: Site, sessions: Sessions) -> None:
    session = sessions.start()
    mark = site.get(f"/s/{session}").text.partition('data-mark="')[2].partition('"')[0]

    async def listen() -> str:
        stream = site.application.stream.listen(f"/s/{session}", mark)
        await anext(stream)
        await asyncio.to_thread(sessions.log(session).record, events.Warned("odd"))
        first = await message(stream, lambda _: True)
        await stream.aclose()
        return first

    assert asyncio.run(listen()).startswith(f"id: {sessions.state(session).seq}\n")


def test_a_listener_that_is_far_behind_is_told_to_load_the_page_again() -> None:
    from iterdev.surfaces.web.stream import MOST_BEHIND, Channel  # noqa: PLC0415

    channel = Channel(rendered(a="0"))
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    channel.listeners.add(queue)

    for number in range(MOST_BEHIND + 5):
        channel.publish(rendered(a=str(number + 1)))

    assert queue.qsize() == MOST_BEHIND + 1
    assert channel.listeners == set()


def test_a_page_that_is_gone_is_loaded_again() -> None:
    versions = iter([rendered(a="1")])
    stream = Stream(lambda: True, lambda _: next(versions))

    async def listen() -> str:
        listening = stream.listen("/x", "")
        found = await message(listening, lambda text: "reload" in text)
        await listening.aclose()
        return found

    assert asyncio.run(listen()) == "event: reload\ndata: {}\n\n"


@pytest.mark.parametrize(
    "view", ["", "/nothing", "/s/x", "https://evil.example/", "/events", "/s/../x", "//[", "/login"]
)
def test_there_is_no_stream_of_a_page_that_does_not_exist(site: Site, view: str) -> None:
    assert site.get(f"/events?view={view}").status == 404
