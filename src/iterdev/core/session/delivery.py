"""What left the session: work that the user's branch has, pull requests, and notifications."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.types import AcceptStyle


class Accepted(Struct, frozen=True, tag=True):
    branch: str
    commit: str
    notes: tuple[str, ...] = ()
    """What is left for the user to do."""
    before: str = ""
    """Where the branch was; empty if it had the work already, and in journals of older versions."""
    work: str = ""
    """The commit of the session that was brought in; the branch need not have it, but has its change."""
    style: AcceptStyle = AcceptStyle.fast_forward
    own_author: bool = False
    """The agents' commits were rewritten with the user as their author."""


class AcceptUndone(Struct, frozen=True, tag=True):
    branch: str
    commit: str
    """Where the branch is again."""


class PullRequestOpened(Struct, frozen=True, kw_only=True, tag=True):
    """It is open, and its branch at GitHub is at `head`."""

    branch: str
    url: str
    number: int
    head: str
    """The commit that was pushed."""


class Notified(Struct, frozen=True, tag=True):
    """The user is about to be told: written before it is sent, so that nothing is sent twice."""

    appeared: Mapping[str, str] = {}
    """The text of each need, by what identifies it."""
    gone: tuple[str, ...] = ()


DeliveryEvent = Accepted | AcceptUndone | PullRequestOpened | Notified


class Delivery(Struct, frozen=True, kw_only=True):
    accepted: Accepted | None = None
    """The last one that was not undone; the session may have changed since."""
    pull_requests: Mapping[str, PullRequestOpened] = {}
    """By branch."""
    notified: Mapping[str, str] = {}
    """Needs that the user was notified of, but not yet that they are gone."""


def evolve(part: Delivery, event: DeliveryEvent, _: float) -> Delivery:
    match event:
        case Accepted():
            return replace(part, accepted=event)
        case AcceptUndone():
            return replace(part, accepted=None)
        case PullRequestOpened(branch=branch):
            return replace(part, pull_requests={**part.pull_requests, branch: event})
        case Notified(appeared, gone):
            return replace(part, notified={**without(part.notified, *gone), **appeared})
