"""Opens pull requests for a session of the issue team: one for all of its work, or one for each issue."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from iterdev.app.branches.pull_request import BranchPart, OpenedPullRequest, open_pull_request
from iterdev.core import ids
from iterdev.core.session.events import Entry, Landed
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import refs
from iterdev.teams.issues.state import issue_part, issues_of_build, resolved
from iterdev.tracker.issues import LONGEST_ID
from iterdev.tracker.remote_issues import number_of


class LandedBuild(Struct, frozen=True, kw_only=True):
    issues: tuple[str, ...]
    tip: str
    """The session's branch when its work had landed."""


def has_landed(repository: Repository, session: SessionId) -> bool:
    state = repository.state(session)
    return state.lifecycle.is_finished and state.branch.tip != state.branch.base


def open_for_session(
    repository: Repository, session: SessionId, environment: Mapping[str, str] = os.environ
) -> tuple[OpenedPullRequest, ...]:
    state = repository.state(session)
    title = f"Resolve {', '.join(issue_part(state).issues)}"
    fixes = _numbers(resolved(state))
    part = BranchPart(branch=ids.branch(session), tip=state.branch.tip, title=title, fixes=fixes)
    return (open_pull_request(repository, session, part=part, environment=environment),)


def open_for_issues(
    repository: Repository, session: SessionId, environment: Mapping[str, str] = os.environ
) -> tuple[OpenedPullRequest, ...]:
    """One on top of the other, in the order in which they landed: each was tested with those before it."""
    state, base = repository.state(session), ""
    opened: list[OpenedPullRequest] = []
    for build in _builds(repository, state):
        titles = [f"{name}: {issue_part(state).issues[name].description.title}" for name in build.issues]
        branch = f"{ids.branch(session)}-{ids.slug(build.issues[0], LONGEST_ID)}"
        part = BranchPart(branch=branch, tip=build.tip, title="; ".join(titles), fixes=_numbers(build.issues))
        opened.append(open_pull_request(repository, session, base=base, part=part, environment=environment))
        base = branch
    return tuple(opened)


def _builds(repository: Repository, state: State) -> Iterator[LandedBuild]:
    """The builds whose issues are resolved, by when they landed; what landed after the last one comes with it."""
    done, landed = set(resolved(state)), landed_builds(state, repository.journal.read(state.session.id))
    found = [
        build
        for build in landed
        if done.issuperset(build.issues) and refs.is_ancestor(repository.top, build.tip, state.branch.tip)
    ]
    yield from found[:-1]
    yield from (LandedBuild(issues=last.issues, tip=state.branch.tip) for last in found[-1:])


def landed_builds(state: State, entries: Iterable[Entry]) -> list[LandedBuild]:
    """What was built, in the order of landing.

    What lands again, after a rollback or by the task of a conflict, counts once, where it landed last.
    """
    tips: dict[tuple[str, ...], str] = {}
    for event in (entry.event for entry in entries if isinstance(entry.event, Landed)):
        if issues := issues_of_build(state, event.task):
            tips.pop(issues, None)
            tips[issues] = event.tip
    return [LandedBuild(issues=issues, tip=tip) for issues, tip in tips.items()]


def _numbers(issues: Sequence[str]) -> tuple[int, ...]:
    """Those of GitHub."""
    return tuple(number for name in issues if (number := number_of(name)) is not None)
