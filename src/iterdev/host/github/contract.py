"""What can be asked of GitHub, by whatever way."""

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


class PullRequest(Struct, frozen=True, kw_only=True):
    head: str
    """The branch, which GitHub has already."""
    base: str
    title: str
    body: str
    is_draft: bool = False


class OpenPullRequest(Struct, frozen=True, kw_only=True):
    url: str
    is_new: bool
    """It was not open before."""


class GitHub(Protocol):
    def issues(self, wanted: IssueFilter) -> Sequence[RemoteIssue]:
        """The newest issues that fit, with their comments; pull requests are none. Raises `HostError`."""
        ...

    def issue(self, number: int) -> RemoteIssue:
        """Raises `NoSuchIssue` if there is none of that number, and `HostError` for anything else."""
        ...

    def open_pull_request(self, wanted: PullRequest) -> OpenPullRequest:
        """Opens it, or finds the one that is open for the branch. Raises `HostError`."""
        ...
