"""A lease ends before the server gives the attempt away, whatever is lost or late on the way."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from iterdev.execution.lease import LeaseTerms, SentHeartbeat, lease_end

TERMS = LeaseTerms(heartbeat_timeout=120, grace=5)
SECONDS = st.floats(min_value=0, max_value=1e5)


class Delivery(Struct, frozen=True):
    """A heartbeat on its way to the server and back."""

    sent: float
    received: float | None
    answered: float | None

    @property
    def known(self) -> SentHeartbeat:
        return SentHeartbeat(self.sent, self.answered)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    sent = draw(SECONDS)
    received = sent + draw(SECONDS) if draw(st.booleans()) else None
    answered = received + draw(SECONDS) if received is not None and draw(st.booleans()) else None
    return Delivery(sent, received, answered)


@st.composite
def terms(draw: st.DrawFn) -> LeaseTerms:
    grace = draw(st.floats(min_value=0, max_value=60))
    least = grace / 0.85 + 0.6
    return LeaseTerms(heartbeat_timeout=draw(st.floats(min_value=least, max_value=3600)), grace=grace)


@given(terms(), st.lists(deliveries(), max_size=8), SECONDS)
def test_the_agent_is_dead_before_the_server_gives_its_attempt_away(
    terms: LeaseTerms, heartbeats: list[Delivery], now: float
) -> None:
    received = [one.received for one in heartbeats if one.received is not None and one.received <= now]

    end = lease_end(terms, [one.known for one in heartbeats], now)

    given_away = max(received, default=-inf) + terms.heartbeat_timeout
    assert end == -inf or end + terms.grace < given_away


@given(st.lists(deliveries(), max_size=8), SECONDS, SECONDS)
def test_what_becomes_known_later_never_shortens_a_lease(heartbeats: list[Delivery], now: float, passed: float) -> None:
    known = [one.known for one in heartbeats]

    assert lease_end(TERMS, known, now) <= lease_end(TERMS, known, now + passed)


def test_no_lease_is_held_before_the_server_has_answered() -> None:
    assert lease_end(TERMS, [SentHeartbeat(0)], now=1) == -inf


def test_an_answer_counts_from_when_its_heartbeat_was_sent() -> None:
    heartbeats = [SentHeartbeat(0, 1), SentHeartbeat(10, 40), SentHeartbeat(20)]

    assert lease_end(TERMS, heartbeats, now=39) == 97
    assert lease_end(TERMS, heartbeats, now=40) == 107


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(30, 20.5), (120, 97), (600, 505), (3, 0)],
)
def test_a_lease_is_shorter_than_the_servers_patience_by_grace_and_margin(timeout: float, seconds: float) -> None:
    assert LeaseTerms(heartbeat_timeout=timeout, grace=5).seconds == pytest.approx(seconds)
