"""What of a session is provably not needed any more. Its folder and its journal always stay."""

from msgspec import Struct

from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import Phase

DAYS_KEPT = 30
"""How long a ref that was removed can be restored."""


class RefFacts(Struct, frozen=True, kw_only=True):
    """A branch or ref of a session, and what git says of it."""

    name: str
    session: str
    commit: str
    contained: bool
    """All its commits are on a branch of the user's."""
    checked_out: str = ""
    """The worktree in which it is checked out."""


def reason_to_keep(ref: RefFacts, session: SessionSummary | None, *, running: bool, accepted: bool) -> str:
    """Why a ref stays; empty if nothing would be lost without it."""
    if session is None:
        return "no session of this name is known here"
    if running:
        return "the session is running"
    if session.phase is not Phase.archived and not accepted:
        accepted_before = "the session was accepted, and is kept active"
        return accepted_before if session.accepted else "the session is neither archived nor accepted"
    if ref.checked_out:
        return f"it is checked out in {ref.checked_out}"
    return "" if ref.contained else "it has commits that are on none of your branches"
