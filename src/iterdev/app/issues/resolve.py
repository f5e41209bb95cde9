"""Creates a session of the issue team: which issues, by which pipeline, built by whom."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.app import start
from iterdev.app.issues.pull import pull_named
from iterdev.app.start import Request
from iterdev.core.errors import IterdevError, UserError, did_you_mean
from iterdev.core.types import SessionId
from iterdev.engine.issue_tracker import read_tracker
from iterdev.engine.repository import Repository
from iterdev.teams.issues import pipelines
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.roles import AUTO
from iterdev.teams.issues.team import BUILDER, ISSUES
from iterdev.tracker import rules
from iterdev.tracker.issues import Issue, mentioned_ids
from iterdev.tracker.state import Tracker

PIPELINES = ISSUES.pipelines
DEFAULT_METHOD = "gemini"
ALL_PENDING = "--all-pending"
FLAGS = ("--mode", "--exec", ALL_PENDING)
"""Those that may be in the text of a request."""
_FLAG = re.compile(r"(?<!\S)--(mode|exec)=(\S+)(?!\S)")
_ALL = re.compile(rf"(?<!\S){ALL_PENDING}(?!\S)")


class Words(Struct, frozen=True, kw_only=True):
    """What the text of a request says."""

    text: str
    """Without the flags in it."""
    ids: tuple[str, ...] = ()
    mode: str = ""
    method: str = ""
    all_pending: bool = False


class Found(Struct, frozen=True, kw_only=True):
    issues: tuple[Issue, ...] = ()
    missing: tuple[str, ...] = ()
    """Ids for which there is no issue."""
    unreached: str = ""
    """Why GitHub could not be asked for them."""


def read_words(text: str) -> Words:
    """The issues that a text names, and the flags in it."""
    flags = {found[1]: found[2] for found in _FLAG.finditer(text)}
    rest = " ".join(_ALL.sub(" ", _FLAG.sub(" ", text)).split())
    mode = flags.get("mode", "")
    if mode and mode not in PIPELINES:
        raise UserError(
            f'"{mode}" is not a mode{did_you_mean(mode, PIPELINES)}', hint=f"one of: {', '.join(PIPELINES)}"
        )
    return Words(
        text=rest,
        ids=mentioned_ids(rest),
        mode=mode,
        method=flags.get("exec", ""),
        all_pending=_ALL.search(text) is not None,
    )


def known_ids(repository: Repository, words: Words) -> tuple[str, ...]:
    """The ids that a text names, and the words in it that are ids of the tracker, such as those of imported issues."""
    tracker = read_tracker(repository)
    found = (word.strip(".-") for word in re.findall(r"[A-Za-z0-9._-]+", words.text))
    return tuple(dict.fromkeys(word for word in found if word in words.ids or word in tracker.issues))


def find_issues(repository: Repository, ids: Sequence[str], *, all_pending: bool) -> Found:
    """The issues of the tracker with these ids, and with `all_pending` all on which no work has begun.

    A GitHub issue that the tracker does not know is imported.
    """
    tracker, unreached = read_tracker(repository), ""
    if unknown := [name for name in ids if name not in tracker.issues]:
        try:
            pull_named(repository, unknown)
            tracker = read_tracker(repository)
        except IterdevError as error:
            unreached = error.message
    waiting = rules.waiting(tracker) if all_pending else ()
    named = [tracker.issues[name] for name in ids if name in tracker.issues]
    found = {issue.id: issue for issue in (*named, *waiting)}
    missing = tuple(name for name in ids if name not in tracker.issues)
    return Found(issues=tuple(found.values()), missing=missing, unreached=unreached)


def start_resolving(
    repository: Repository,
    request: Request,
    issues: Sequence[Issue],
    method: str | None,
    *,
    separately: bool = False,
) -> SessionId:
    """Creates the session. An agent that is named for building builds; without any it is the default method.

    With `separately`, each issue is built by a task of its own.
    """
    if separately and len(issues) > 1:
        request = replace(request, pipeline=pipelines.with_separate_builds(request.pipeline))
    if method is not None:
        _check_method(repository, method)
    chosen = method or DEFAULT_METHOD
    builder = request.role_agents.get(BUILDER) or request.agent or _configured(repository)
    agents = dict(request.role_agents)
    if chosen != AUTO and (method is not None or not builder):
        agents[BUILDER] = chosen
    tracker = read_tracker(repository)
    facts = tuple(_facts(tracker, issue) for issue in issues)
    prepared = IssueRequest(issues=facts, method=chosen, separately=separately)
    requirement = request.requirement.strip() or " ".join(issue.id for issue in issues)
    asked = replace(request, requirement=requirement, role_agents=agents, prepared=prepared)
    return start.start(repository, asked, team=ISSUES)


def _check_method(repository: Repository, method: str) -> None:
    known = (AUTO, *KNOWN_AGENTS, *repository.settings.agents)
    if method not in known:
        near = did_you_mean(method, known)
        raise UserError(f'"{method}" is neither an agent nor "{AUTO}"{near}', hint=f"--exec {DEFAULT_METHOD}")


def _configured(repository: Repository) -> str:
    """The agent that the configuration names for building; empty if it names none."""
    settings = repository.settings
    role = settings.roles.get(BUILDER)
    named = role.agent if role and role.agent else ""
    return named or (settings.run.agent if repository.names_setting("run", "agent") else "")


def _facts(tracker: Tracker, issue: Issue) -> IssueFacts:
    return IssueFacts(
        id=issue.id,
        description=issue.description,
        status=issue.status,
        feedback=tuple(f"{one.type}: {one.content}" for one in issue.feedback),
        solutions=tuple(tracker.solutions.get(issue.id, {})),
    )
