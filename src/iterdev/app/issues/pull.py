"""Imports GitHub issues into the tracker."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.engine.issue_tracker import edit_tracker, read_tracker
from iterdev.engine.repository import Repository
from iterdev.host import github
from iterdev.host.github import GitHub, IssueFilter, NoSuchIssue, RemoteIssue
from iterdev.tracker.events import IssueCreated, IssueDescribed, StatusChanged
from iterdev.tracker.remote_issues import number_of, open_elsewhere, pulled

STATES = ("open", "closed", "all")
LIMIT = 100


class Pulled(Struct, frozen=True, kw_only=True):
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Issues that GitHub does not have, or not any more."""


def pull(repository: Repository, wanted: IssueFilter, environment: Mapping[str, str] = os.environ) -> Pulled:
    """New issues are added, changed ones are updated.

    Issues that were open, and are not among the open ones any more, are looked at one by one.
    """
    source = github.github_of(repository.top, environment)
    found = list(source.issues(wanted))
    is_complete = wanted.state != "closed" and not wanted.labels and len(found) < wanted.limit
    numbers = open_elsewhere(read_tracker(repository), found) if is_complete else ()
    more, missing = _read(source, numbers)
    return _taken(repository, [*found, *more], missing)


def pull_named(repository: Repository, names: Sequence[str], environment: Mapping[str, str] = os.environ) -> Pulled:
    """Imports single issues, such as `GH-42`."""
    numbers = [number for name in names if (number := number_of(name)) is not None]
    if not numbers:
        return Pulled()
    found, missing = _read(github.github_of(repository.top, environment), numbers)
    return _taken(repository, found, missing)


def issue_filter(state: str, limit: int, labels: str) -> IssueFilter:
    if limit < 1:
        raise UserError(f'"{limit}" is not a number of issues', hint=f"--limit {LIMIT}")
    return IssueFilter(state=state, limit=limit, labels=tuple(filter(None, map(str.strip, labels.split(",")))))


def _read(source: GitHub, numbers: Sequence[int]) -> tuple[list[RemoteIssue], list[str]]:
    found, missing = list[RemoteIssue](), list[str]()
    for number in numbers:
        try:
            found.append(source.issue(number))
        except NoSuchIssue:
            missing.append(f"GH-{number}")
    return found, missing


def _taken(repository: Repository, found: Sequence[RemoteIssue], missing: Sequence[str]) -> Pulled:
    redacted = [repository.redact.struct(one) for one in found]
    with edit_tracker(repository) as log:
        events = log.transact(lambda tracker, at: pulled(tracker, redacted, at))
    added = [event.issue.id for event in events if isinstance(event, IssueCreated)]
    changed = [event.issue_id for event in events if isinstance(event, IssueDescribed | StatusChanged)]
    touched = {*added, *changed}
    return Pulled(
        added=tuple(added),
        updated=tuple(one.name for one in found if one.name in touched and one.name not in added),
        unchanged=tuple(one.name for one in found if one.name not in touched),
        missing=tuple(missing),
    )
