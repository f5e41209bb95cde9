"""What can be asked of GitHub about issues, by whatever way."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.tracker.remote_issues import RemoteIssue


class NoSuchIssue(HostError):
    """GitHub has no issue of that number."""


class IssueFilter(Struct, frozen=True, kw_only=True):
    state: str = "open"
    """`open`, `closed` or `all`."""
    limit: int = 100
    labels: tuple[str, ...] = ()
    """An issue needs all of them."""


class IssueSource(Protocol):
    def issues(self, wanted: IssueFilter) -> Sequence[RemoteIssue]:
        """The newest issues that fit, with their comments; pull requests are none. Raises `HostError`."""
        ...

    def issue(self, number: int) -> RemoteIssue:
        """Raises `NoSuchIssue` if there is none of that number, and `HostError` for anything else."""
        ...
