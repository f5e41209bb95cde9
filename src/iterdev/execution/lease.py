"""How long a host may go on with an attempt: until shortly before the server gives it to another host.

The server gives an attempt away when it has received no heartbeat for some time. A host does not know when a heartbeat
was received, only when it sent it, which was earlier; so it counts from there, and only if the server has answered. All
times are those of the host's monotonic clock: no clocks are compared.
"""

from collections.abc import Iterable
from math import inf

from msgspec import Struct

MARGIN = 0.15
"""The part of the time without a heartbeat that is left to slow machines."""
LEAST_MARGIN = 0.5


class SentHeartbeat(Struct, frozen=True):
    sent: float
    answered: float | None = None
    """When the server's answer came; None if it has not."""


class LeaseTerms(Struct, frozen=True, kw_only=True):
    heartbeat_timeout: float
    """Seconds without a heartbeat after which the server gives the attempt away."""
    grace: float
    """Seconds from asking the agent to end until it is killed."""

    @property
    def seconds(self) -> float:
        """How long a host may go on after it has sent a heartbeat that was answered."""
        margin = max(MARGIN * self.heartbeat_timeout, LEAST_MARGIN)
        return max(0.0, self.heartbeat_timeout - self.grace - margin)


def lease_end(terms: LeaseTerms, heartbeats: Iterable[SentHeartbeat], now: float) -> float:
    """When the agent has to be asked to end, as far as is known now; it may not begin before one was answered."""
    answered = (one.sent for one in heartbeats if one.answered is not None and one.answered <= now)
    return max(answered, default=-inf) + terms.seconds
