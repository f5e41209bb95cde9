"""Each screen at each size, as text."""

import functools

import pytest
from tests.surfaces.tui.conftest import (
    SIZES,
    Compare,
    StorySource,
    asking,
    drive,
    finished,
    press,
    screen_text,
    shown,
    tasks,
)
from textual.pilot import Pilot

from iterdev.surfaces.tui.dashboard import Dashboard

SCREENS = {
    "needs": ["p"],
    "timeline": ["t"],
    "sessions": ["s"],
    "task": ["enter"],
    "changes": ["d"],
    "round": ["d", "]"],
    "output": ["o"],
    "keys": ["?"],
    "command": [":"],
}
"""How each screen is opened from the first one."""
sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


@functools.cache
def walk(size: tuple[int, int]) -> dict[str, str]:
    """All screens of a session with ten tasks, opened one after the other."""
    seen: dict[str, str] = {}

    async def steps(pilot: Pilot[bool], dashboard: Dashboard) -> None:
        for name, keys in SCREENS.items():
            await press(pilot, *keys)
            seen[name] = screen_text(dashboard)
            await press(pilot, "escape")

    drive(StorySource(tasks(10)), steps, size)
    return seen


@sizes
@pytest.mark.parametrize("count", [0, 10, 1000])
def test_the_tasks_of_a_session(count: int, size: tuple[int, int], compare: Compare) -> None:
    source = StorySource(tasks(count) if count else None)

    text = shown(source, size=size)

    compare(f"main-{count}-{size[0]}x{size[1]}", text)


@sizes
@pytest.mark.parametrize("name", SCREENS)
def test_every_other_screen(name: str, size: tuple[int, int], compare: Compare) -> None:
    compare(f"{name}-{size[0]}x{size[1]}", walk(size)[name])


@sizes
def test_a_question_with_the_choice_that_is_to_be_confirmed(size: tuple[int, int], compare: Compare) -> None:
    text = shown(StorySource(asking()), "a", "1", size=size)

    compare(f"question-{size[0]}x{size[1]}", text)


@sizes
def test_what_accept_would_do(size: tuple[int, int], compare: Compare) -> None:
    text = shown(StorySource(finished(), alive=False), ":", *"accept", "enter", size=size)

    compare(f"preview-{size[0]}x{size[1]}", text)
