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
    body: str
    """The text that it has."""

    @property
    def number(self) -> int:
        return int(self.url.rstrip("/").rpartition("/")[2])


class ReviewComment(Struct, frozen=True, kw_only=True):
    file: str
    line: int
    text: str


class Review(Struct, frozen=True, kw_only=True):
    commit: str
    text: str
    comments: tuple[ReviewComment, ...] = ()
    """About lines that the difference shows; GitHub refuses others."""

    @property
    def document(self) -> dict[str, object]:
        comments = [{"path": one.file, "line": one.line, "side": "RIGHT", "body": one.text} for one in self.comments]
        return {"commit_id": self.commit, "event": "COMMENT", "body": self.text, "comments": comments}


class GitHub(Protocol):
    def issues(self, wanted: IssueFilter) -> Sequence[RemoteIssue]:
        """The newest issues that fit, with their comments; pull requests are none. Raises `HostError`."""
        ...

    def issue(self, number: int) -> RemoteIssue:
        """Raises `NoSuchIssue` if there is none of that number, and `HostError` for anything else."""
        ...

    def open_pull_request(self, wanted: PullRequest) -> OpenPullRequest:
        """Opens it, or finds the one that is open for the branch, and leaves that as it is. Raises `HostError`."""
        ...

    def change_text(self, number: int, body: str) -> None:
        """Gives a pull request another text."""
        ...

    def reviews(self, number: int) -> Sequence[str]:
        """The texts of the reviews of a pull request."""
        ...

    def add_review(self, number: int, review: Review) -> None:
        """Comments, and neither approves nor requests changes."""
        ...
