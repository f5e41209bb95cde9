"""The beat engine is a list schedule: whatever the table, no place is free while a task is ready.

A small world plays with it in which agents take the time that chance gives them, and nothing else takes any.
"""

import heapq
from random import Random

from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st
from msgspec import Struct
from tests.core.conftest import Outcome, Story, done, task

from iterdev.core.session import events
from iterdev.core.types import Engine, Status, TaskId

PREFIXES = ("DESIGN", "DEV", "VERIFY", "REVIEW")


class Moment(Struct, frozen=True):
    """Nothing is left to decide, and the next agent to end is waited for."""

    running: frozenset[str]
    ready: frozenset[str]
    """Pending, with every dependency completed."""


class World(Struct, frozen=True):
    story: Story
    moments: list[Moment]
    batches: list[tuple[list[str], list[str]]]
    """What was started at once, and what was ready and was not."""


def a_story(chance: Random, size: int, places: int) -> Story:
    rows = []
    for number in range(size):
        above = [row.id for row in rows[-8:]]
        deps = chance.sample(above, chance.randint(0, min(3, len(above))))
        rows.append(task(f"{chance.choice(PREFIXES)}-{number:03d}", *deps))
    chance.shuffle(rows)
    return Story(*rows, engine=Engine.beat, concurrency=places)


def ready(story: Story) -> frozenset[str]:
    state = story.state
    pending = (row for row, progress in state.tasks.rows() if progress.status is Status.pending)
    return frozenset(row.id for row in pending if not state.tasks.unmet(row.id))


def outcome(chance: Random, name: str) -> Outcome:
    writes = name.startswith("DEV") and chance.random() < 0.8
    success = done("did it", commit="c0ffee" if writes else None)
    return events.Failed(error="no luck") if chance.random() < 0.05 else success


def play(chance: Random, story: Story) -> World:
    world = World(story, [], [])
    ends: list[tuple[float, str]] = []
    while True:
        starts = story.goes_on()
        if starts:
            world.batches.append((starts, sorted(ready(story).difference(starts))))
        story.starts(*starts)
        for name in starts:
            heapq.heappush(ends, (story.now + chance.choice((1, 2, 3, 5, 8)), name))
        world.moments.append(Moment(frozenset(story.state.attempts.running), ready(story)))
        if not ends:
            return world
        story.now, ended = heapq.heappop(ends)
        story.ends(ended, outcome(chance, ended))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    chance = Random(draw(st.integers(0, 2**32)))
    return play(chance, a_story(chance, draw(st.integers(1, 40)), draw(st.integers(1, 10))))


@given(worlds())
@chosen(deadline=None)
def test_no_place_is_free_while_a_task_is_ready(world: World) -> None:
    places = world.story.state.policy.concurrency

    assert [moment for moment in world.moments if moment.ready and len(moment.running) < places] == []
    assert max(len(moment.running) for moment in world.moments) <= places


@given(worlds())
@chosen(deadline=None)
def test_of_the_tasks_that_are_ready_the_first_of_the_table_are_started(world: World) -> None:
    order = world.story.state.tasks.order

    for started, left in world.batches:
        assert all(order[TaskId(one)] < order[TaskId(other)] for one in started for other in left)


@given(worlds())
@chosen(deadline=None)
def test_in_the_end_every_task_was_started_once_or_lost_a_dependency(world: World) -> None:
    state = world.story.state
    started = [
        event.task for event in world.story.seen(events.AttemptStarted) if isinstance(event, events.AttemptStarted)
    ]

    assert state.lifecycle.is_over
    assert len(started) == len(set(started))
    assert {row for row in state.tasks.order if row not in started} == {
        row.id for row, progress in state.tasks.rows() if progress.status is Status.skipped
    }
