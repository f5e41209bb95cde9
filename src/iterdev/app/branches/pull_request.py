"""Opens a pull request for the branch of a session, with its report as the text, or brings one up to date.

The report is between two markers; what people write around them stays.
"""

import os
import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from iterdev.app import inspect
from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.formatting import counted
from iterdev.core.results import shortened
from iterdev.core.session.delivery import PullRequestOpened
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.previews import PullRequestPreview, refusal
from iterdev.core.views.team import FindingView
from iterdev.engine.repository import Repository
from iterdev.host import github
from iterdev.host.git import diffs, refs
from iterdev.host.git.merge import merge_base
from iterdev.host.github import PullRequest
from iterdev.host.github.remotes import push, remotes
from iterdev.tracker.issues import mentioned_ids
from iterdev.tracker.remote_issues import number_of

MOST_TITLE, MOST_BODY = 120, 60_000
"""GitHub refuses a text of more than 65,536 characters."""
CUT = "\n\n(The report is longer.)"
BEGIN, END = "<!-- iterdev: begin -->", "<!-- iterdev: end -->"
REFERENCE = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)|\bGH-(?=\d)|/(?:issues|pull|discussions)/(?=\d)", re.IGNORECASE)
UNSEEN = "\u2060"
"""A character without width, which joins words."""
MOST_COMMENTS = 20


class BranchPart(Struct, frozen=True, kw_only=True):
    """A part of what has landed, for a pull request of its own."""

    branch: str
    tip: str
    title: str
    fixes: tuple[int, ...] = ()
    """The issues of GitHub that it resolves."""


class PullRequestOptions(Struct, frozen=True, kw_only=True):
    is_draft: bool = False
    with_findings: bool = False
    """What was found in reviews is added, as comments of a review; once."""


class OpenedPullRequest(Struct, frozen=True, kw_only=True):
    branch: str
    base: str
    title: str
    body: str
    url: str | None = None
    """None if it was only shown."""
    is_new: bool = False
    findings: tuple[FindingView, ...] = ()
    """What was found in reviews, if it was asked for: comments of a review of the pull request."""


def open_pull_request(
    repository: Repository,
    session: SessionId,
    *,
    base: str = "",
    options: PullRequestOptions = PullRequestOptions(),  # noqa: B008 - frozen
    dry_run: bool = False,
    part: BranchPart | None = None,
    environment: Mapping[str, str] = os.environ,
) -> OpenedPullRequest:
    """Pushes what has landed, and opens a pull request, or brings the text of the open one up to date.

    It is about all work, and resolves the issues of GitHub that the request of a successful session names; or about
    `part`.
    """
    state = repository.state(session)
    _check(repository, state)
    part = part or _whole(repository, state)
    wanted = OpenedPullRequest(
        branch=part.branch,
        base=base or state.session.branch or refs.current_branch(repository.top),
        title=shortened(part.title, MOST_TITLE),
        body=repository.redact(_body(inspect.report(repository, session, pictures=False), part.fixes)),
        findings=_open_findings(repository, state) if options.with_findings else (),
    )
    if dry_run:
        return wanted
    target = github.github_of(repository.top, environment)
    remote, log = _remote(repository), repository.log(session)
    known = state.delivery.pull_requests.get(wanted.branch)
    push(repository.top, remote, part.tip, wanted.branch, known.head if known else "")
    head = github.head_of(repository.top, remote, wanted.branch, environment)
    asked = PullRequest(head=head, base=wanted.base, title=wanted.title, body=wanted.body, is_draft=options.is_draft)
    opened = target.open_pull_request(asked)
    event = PullRequestOpened(branch=wanted.branch, url=opened.url, number=opened.number, head=part.tip)
    if event != known:
        log.record(event)
    text = with_report(opened.body, wanted.body)
    if text != opened.body:
        target.change_text(opened.number, text)
    if wanted.findings:
        start = _start(repository, state, (f"heads/{wanted.base}", f"remotes/{remote}/{wanted.base}"), part.tip)
        _add_findings(repository, target, opened.number, (start, part.tip), wanted)
    return msgspec.structs.replace(wanted, body=text, url=opened.url, is_new=opened.is_new)


def preview_pull_request(
    repository: Repository,
    session: SessionId,
    options: PullRequestOptions = PullRequestOptions(),  # noqa: B008 - frozen
) -> PullRequestPreview:
    """What would be pushed and opened now. Nothing is changed, and GitHub is not asked."""
    state, branch = repository.state(session), ids.branch(session)
    known = state.delivery.pull_requests.get(branch)
    shown = PullRequestPreview(
        session=session,
        seq=state.seq,
        command=" ".join(["iterdev pr", session, *(["--draft"] if options.is_draft else [])]),
        branch=branch,
        known=known.url if known else "",
    )
    try:
        _remote(repository)
        wanted = open_pull_request(repository, session, options=options, dry_run=True)
    except UserError as error:
        return msgspec.structs.replace(shown, refused=refusal(error))
    return msgspec.structs.replace(shown, base=wanted.base, title=wanted.title, body=wanted.body)


def _open_findings(repository: Repository, state: State) -> tuple[FindingView, ...]:
    """Those that the newest review still reports."""
    return tuple(one for one in repository.team(state).findings(state) if one.fixed_in is None)


def _comment(finding: FindingView) -> str:
    suggested = f" Suggestion: {finding.suggestion}" if finding.suggestion else ""
    return f"**{finding.severity}**: {inert(finding.text)}{inert(suggested)}"


def with_report(text: str, report: str) -> str:
    """The text of a pull request with this report in the place of the earlier one; what is around it stays."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.rpartition(END)
    if begin and end:
        return f"{before}{report}{after}"
    return f"{text.rstrip()}\n\n{report}".lstrip()


def _start(repository: Repository, state: State, bases: Sequence[str], tip: str) -> str:
    """Where the difference of the pull request begins; GitHub may have a base that this repository does not know."""
    known = (found for base in bases if (found := refs.resolve(repository.top, f"refs/{base}")))
    base = next(known, state.branch.base)
    return merge_base(repository.top, base, tip) or state.branch.base


def _add_findings(
    repository: Repository, target: github.GitHub, number: int, change: tuple[str, str], wanted: OpenedPullRequest
) -> None:
    """Once for each pull request: GitHub itself says whether it was done, even after a crash."""
    marker = f"<!-- iterdev: findings of {wanted.branch} -->"
    if any(marker in text for text in target.reviews(number)):
        return
    shown = diffs.shown_lines(repository.top, *change)
    most = wanted.findings[:MOST_COMMENTS]
    comments = [
        github.ReviewComment(file=one.file, line=one.line, text=repository.redact(_comment(one)))
        for one in most
        if one.line and any(one.line in lines for lines in shown.get(one.file, ()))
    ]
    placed = {(one.file, one.line) for one in comments}
    others = [one for one in most if (one.file, one.line) not in placed]
    left = len(wanted.findings) - len(most)
    lines = [f"- **{one.severity}** {one.file or 'no file'}: {inert(' '.join(one.text.split()))}" for one in others]
    lines += [f"- and {counted(left, 'more finding')}, in the report"] if left else []
    text = "\n".join((marker, "What the review of the session found:", "", *lines))
    target.add_review(number, github.Review(commit=change[1], text=repository.redact(text), comments=tuple(comments)))


def _whole(repository: Repository, state: State) -> BranchPart:
    fixes = _issues(state) if inspect.view(repository, state).outcome.succeeded else ()
    return BranchPart(branch=ids.branch(state.session.id), tip=state.branch.tip, title=_title(state), fixes=fixes)


def _check(repository: Repository, state: State) -> None:
    session = state.session.id
    if repository.engine_alive(state.session):
        raise repository.still_running(session)
    if state.branch.tip == state.branch.base:
        raise UserError(f'Nothing of "{session}" has landed', hint=f"iterdev status {session}")
    if not state.lifecycle.is_finished:
        raise UserError(f'"{session}" is not finished', hint=f"iterdev resume {session}")


def _issues(state: State) -> tuple[int, ...]:
    """The issues of GitHub that the request names."""
    named = [*mentioned_ids(state.session.requirement), *([state.session.issue.name] if state.session.issue else [])]
    return tuple(number for name in dict.fromkeys(named) if (number := number_of(name)) is not None)


def _title(state: State) -> str:
    return next(iter(state.session.requirement.strip().splitlines()), "") or state.session.id


def _body(report: str, numbers: Sequence[int]) -> str:
    """The report between its markers. It quotes agents, which must not end it, close other issues, or call people."""
    fixed = "".join(f"Fixes #{number}\n" for number in numbers)
    safe = inert(report.replace("<!-- iterdev:", "<!-- iterdev :"))
    text = safe if len(safe) <= MOST_BODY else safe[:MOST_BODY] + CUT
    return f"{BEGIN}\n{fixed}\n{text.rstrip()}\n{END}" if fixed else f"{BEGIN}\n{text.rstrip()}\n{END}"


def inert(text: str) -> str:
    """The text as it looks, with nothing that GitHub acts on: mentions of people, and references to issues."""
    return REFERENCE.sub(rf"\g<0>{UNSEEN}", text)


def _remote(repository: Repository) -> str:
    """Where branches are pushed to: origin, or the only remote."""
    known = remotes(repository.top)
    if "origin" in known or len(known) == 1:
        return "origin" if "origin" in known else next(iter(known))
    named = f"which of {', '.join(known)} to push to" if known else "where to push to"
    raise UserError(f"It is not known {named}", hint="git remote add origin https://github.com/OWNER/NAME")
