"""The short form of `make chaos`."""

import pytest
from tests.chaos.__main__ import SHORT_PLAN
from tests.chaos.machines import missing
from tests.chaos.run import SHORT, run_chaos

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it can be run")


def test_nothing_is_lost_or_done_twice_while_everything_fails() -> None:
    found = run_chaos(SHORT_PLAN, SHORT, print)

    assert found.holds, found
