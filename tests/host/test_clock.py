"""The time zone of the user."""

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
