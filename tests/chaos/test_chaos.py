"""The short form of `make chaos`."""

import pytest
from tests.chaos.__main__ import CONTROL_PLAN, SHORT_PLAN
from tests.chaos.machines import missing
from tests.chaos.run import CUT_OFF, SHORT, run_chaos

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it can be run")


def test_nothing_is_lost_or_done_twice_while_everything_fails() -> None:
    found = run_chaos(SHORT_PLAN, SHORT, print)

    assert found.holds, found


def test_the_heartbeats_of_the_sdk_in_place_of_a_lease_fail_the_check() -> None:
    found = run_chaos(CONTROL_PLAN, CUT_OFF, print, is_control=True)

    assert found.outlived, found
