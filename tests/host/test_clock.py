"""The time zone of the user, and clocks that do not show the time that passed."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from iterdev.core.ids import moment
from iterdev.host import clock

WINTER = datetime(2026, 1, 15, 12, tzinfo=UTC).timestamp()
SUMMER = datetime(2026, 7, 15, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def berlin() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_time_has_the_offset_that_the_zone_has_then() -> None:
    shown = [moment(at, clock.LOCAL) for at in (WINTER, SUMMER)]

    assert shown == ["2026-01-15T13:00:00+01:00", "2026-07-15T14:00:00+02:00"]


@pytest.mark.usefixtures("berlin")
def test_a_time_in_the_zone_knows_its_offset() -> None:
    offsets = [datetime.fromtimestamp(at, clock.LOCAL).strftime("%z %Z") for at in (WINTER, SUMMER)]

    assert offsets == ["+0100 CET", "+0200 CEST"]


class Machine:
    def __init__(self) -> None:
        self.shown, self.passed = WINTER, 100.0

    def watch(self) -> clock.ClockWatch:
        return clock.ClockWatch(lambda: self.shown, lambda: self.passed)

    def works(self, seconds: float) -> None:
        self.shown, self.passed = self.shown + seconds, self.passed + seconds


def test_time_that_passes_changes_no_clock() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.works(10_000)

    assert not watch.has_changed()
    assert watch.change(machine.shown) == 0


def test_a_clock_that_moved_by_itself_is_told_once() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.works(10)
    machine.shown += 3600
    seen = watch.has_changed(), watch.change(machine.shown)
    machine.works(10)

    assert seen == (True, 3600)
    assert watch.change(machine.shown) == 0


def test_a_clock_that_differs_a_little_has_not_moved() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.shown += 1

    assert watch.change(machine.shown) == 0
