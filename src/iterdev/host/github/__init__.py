"""GitHub: through its command `gh` where that is installed, or else through its REST API with a token."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from iterdev.core.errors import HostError, UserError
from iterdev.host.github import gh
from iterdev.host.github.contract import GitHub, IssueFilter, NoSuchIssue, PullRequest, Review, ReviewComment
from iterdev.host.github.project import project_at, project_of
from iterdev.host.github.remotes import remotes
from iterdev.tracker.remote_issues import RemoteIssue

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")


def github_of(top: Path, environment: Mapping[str, str]) -> GitHub:
    """The repository of GitHub that a checkout belongs to."""
    if shutil.which("gh", path=environment.get("PATH")):
        return gh.GhCommand(top, environment)
    token = next((environment[name] for name in TOKENS if environment.get(name)), "")
    if not token:
        raise HostError(
            "GitHub cannot be used: `gh` is not installed, and there is no token",
            hint="install gh and run `gh auth login`, or set GITHUB_TOKEN",
        )
    # It takes 50 ms to load, and most commands do not need it.
    from iterdev.host.github.rest import RestApi  # noqa: PLC0415

    return RestApi.of_checkout(top, token, environment)


def read_issue(top: Path, number: int, environment: Mapping[str, str]) -> RemoteIssue:
    return github_of(top, environment).issue(number)


def head_of(top: Path, remote: str, branch: str, environment: Mapping[str, str]) -> str:
    """How a pull request names the branch that was pushed to the remote: with the owner, if that is a fork."""
    pushed = project_at(remotes(top)[remote])
    try:
        base = project_of(top, environment)
    except UserError:
        return branch
    return f"{pushed.owner}:{branch}" if pushed and pushed != base else branch


__all__ = [
    "GitHub",
    "IssueFilter",
    "NoSuchIssue",
    "PullRequest",
    "RemoteIssue",
    "Review",
    "ReviewComment",
    "github_of",
    "head_of",
    "read_issue",
]
