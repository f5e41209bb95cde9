"""Opens pull requests for a session of the issue team: one for all of its work, or one for each issue."""

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from iterdev.app.branches.pull_request import BranchPart, OpenedPullRequest, open_pull_request
from iterdev.core import ids
from iterdev.core.session.events import Landed
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.repository import Repository
from iterdev.host.git import refs
from iterdev.teams.issues.state import issue_part, issues_of_build, resolved
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
        branch = f"{ids.branch(session)}-{ids.slug(build.issues[0])}"
        part = BranchPart(branch=branch, tip=build.tip, title="; ".join(titles), fixes=_numbers(build.issues))
        opened.append(open_pull_request(repository, session, base=base, part=part, environment=environment))
        base = branch
    return tuple(opened)


def _builds(repository: Repository, state: State) -> Iterator[LandedBuild]:
    """The tasks whose issues are resolved, by when they landed; what landed after the last one comes with it."""
    tips: dict[TaskId, str] = {
        entry.event.task: entry.event.tip
        for entry in repository.journal.read(state.session.id)
        if isinstance(entry.event, Landed)
    }
    done = set(resolved(state))
    found = [
        LandedBuild(issues=issues, tip=tip)
        for task, tip in tips.items()
        if (issues := issues_of_build(state, task)) and done.issuperset(issues)
        if refs.is_ancestor(repository.top, tip, state.branch.tip)
    ]
    yield from found[:-1]
    yield from (LandedBuild(issues=last.issues, tip=state.branch.tip) for last in found[-1:])


def _numbers(issues: Sequence[str]) -> tuple[int, ...]:
    """Those of GitHub."""
    return tuple(number for name in issues if (number := number_of(name)) is not None)
