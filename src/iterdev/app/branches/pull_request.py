"""Opens a pull request for the branch of a session, with its report as the text."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from iterdev.app import inspect
from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host import github
from iterdev.host.git import refs
from iterdev.host.github import PullRequest
from iterdev.host.github.remotes import push, remotes
from iterdev.tracker.issues import mentioned_ids
from iterdev.tracker.remote_issues import number_of

MOST_TITLE, MOST_BODY = 120, 60_000
"""GitHub refuses a text of more than 65,536 characters."""
CUT = "\n\n(The report is longer.)"


class OpenedPullRequest(Struct, frozen=True, kw_only=True):
    branch: str
    base: str
    title: str
    body: str
    url: str | None = None
    """None if it was only shown."""
    is_new: bool = False


def open_pull_request(
    repository: Repository,
    session: SessionId,
    *,
    base: str = "",
    is_draft: bool = False,
    dry_run: bool = False,
    fixes: Sequence[int] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> OpenedPullRequest:
    """Pushes what has landed, and opens a pull request, or finds the one that is open.

    `fixes` are the issues of GitHub that it resolves; without it, those that the request of a successful session names.
    """
    state = repository.state(session)
    _check(repository, state)
    succeeded = inspect.view(repository, state).outcome.succeeded
    numbers = _issues(state) if fixes is None and succeeded else tuple(fixes or ())
    wanted = OpenedPullRequest(
        branch=ids.branch(session),
        base=base or state.session.branch or refs.current_branch(repository.top),
        title=_title(state),
        body=_body(inspect.report(repository, session, pictures=False), numbers),
    )
    if dry_run:
        return wanted
    target = github.github_of(repository.top, environment)
    remote = _remote(repository)
    push(repository.top, remote, state.branch.tip, wanted.branch)
    head = github.head_of(repository.top, remote, wanted.branch, environment)
    opened = target.open_pull_request(
        PullRequest(head=head, base=wanted.base, title=wanted.title, body=wanted.body, is_draft=is_draft)
    )
    return OpenedPullRequest(
        branch=wanted.branch,
        base=wanted.base,
        title=wanted.title,
        body=wanted.body,
        url=opened.url,
        is_new=opened.is_new,
    )


def _check(repository: Repository, state: State) -> None:
    session = state.session.id
    if repository.engine_alive(state.session):
        raise repository.still_running(session)
    if state.branch.tip == state.branch.base:
        raise UserError(f'Nothing of "{session}" has landed', hint=f"iterdev status {session}")


def _issues(state: State) -> tuple[int, ...]:
    """The issues of GitHub that the request names."""
    named = [*mentioned_ids(state.session.requirement), *([state.session.issue.name] if state.session.issue else [])]
    return tuple(number for name in dict.fromkeys(named) if (number := number_of(name)) is not None)


def _title(state: State) -> str:
    line = next(iter(state.session.requirement.strip().splitlines()), "") or state.session.id
    return line if len(line) <= MOST_TITLE else f"{line[: MOST_TITLE - 1]}…"


def _body(report: str, numbers: Sequence[int]) -> str:
    fixed = "".join(f"Fixes #{number}\n" for number in numbers)
    text = report if len(report) <= MOST_BODY else report[:MOST_BODY] + CUT
    return f"{fixed}\n{text}" if fixed else text


def _remote(repository: Repository) -> str:
    """Where branches are pushed to: origin, or the only remote."""
    known = remotes(repository.top)
    if "origin" in known or len(known) == 1:
        return "origin" if "origin" in known else next(iter(known))
    named = f"which of {', '.join(known)} to push to" if known else "where to push to"
    raise UserError(f"It is not known {named}", hint="git remote add origin https://github.com/OWNER/NAME")
