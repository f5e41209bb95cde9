"""Issues of GitHub: through its command `gh` where that is installed, or else through its REST API with a token."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from iterdev.core.errors import HostError
from iterdev.host.github import gh
from iterdev.host.github.source import IssueFilter, IssueSource, NoSuchIssue
from iterdev.tracker.remote_issues import RemoteIssue

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")


def issue_source(top: Path, environment: Mapping[str, str]) -> IssueSource:
    """The issues of the repository that a checkout belongs to."""
    if shutil.which("gh", path=environment.get("PATH")):
        return gh.GhCommand(top, environment)
    token = next((environment[name] for name in TOKENS if environment.get(name)), "")
    if not token:
        raise HostError(
            "Issues of GitHub cannot be read: `gh` is not installed, and there is no token",
            hint="install gh and run `gh auth login`, or set GITHUB_TOKEN",
        )
    # It takes 50 ms to load, and most commands do not need it.
    from iterdev.host.github.rest import RestApi  # noqa: PLC0415

    return RestApi.of_checkout(top, token, environment)


def read_issue(top: Path, number: int, environment: Mapping[str, str]) -> RemoteIssue:
    return issue_source(top, environment).issue(number)


__all__ = ["IssueFilter", "IssueSource", "NoSuchIssue", "RemoteIssue", "issue_source", "read_issue"]
