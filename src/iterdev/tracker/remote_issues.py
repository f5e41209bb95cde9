"""Issues of GitHub: what they become in the tracker, and what a newer reading of them changes.

Their text is data from outside. It is cut to what agents can be shown, and says nothing about the work of iterdev.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.formatting import plain
from iterdev.tracker.events import IssueCreated, IssueDescribed, StatusChanged
from iterdev.tracker.issues import DEFAULT_PRIORITY, Comment, Description, Issue, IssueStatus
from iterdev.tracker.state import Tracker

SOURCE = "github"
MOST_TEXT, MOST_TITLE = 20_000, 300
"""Characters of the text of an issue, and of all its comments together."""
MOST_COMMENTS = 30
CUT = "\n(cut: the text is longer)"
_PREFIX, STATE = "GH-", "github_state"
_NAME = re.compile(r"GH-([1-9]\d{0,8})")
_PRIORITIES = {
    5: r"p0|critical|blocker|urgent|highest|sev(?:erity)?[- ]?[01]",
    4: r"p1|high|important|major",
    3: r"p2|medium|normal",
    2: r"p3|low|minor",
    1: r"p4|lowest|trivial",
}
_LABELS = {
    number: re.compile(rf"(?:(?:priority|prio|severity|sev)\s*[:/ -]?\s*)?(?:{words})(?:[- ]priority)?", re.IGNORECASE)
    for number, words in _PRIORITIES.items()
}
_WORD = re.compile(r"[^\W_]+")
_VOTES = frozenset({(), ("1",), ("me", "too"), ("same", "here"), ("bump",)})
"""The words of comments such as `+1`."""


class RemoteComment(Struct, frozen=True):
    author: str
    body: str


class RemoteIssue(Struct, frozen=True, kw_only=True):
    """An issue as GitHub has it now."""

    number: int
    title: str
    body: str = ""
    is_open: bool = True
    labels: tuple[str, ...] = ()
    url: str = ""
    comments: tuple[RemoteComment, ...] = ()

    @property
    def name(self) -> str:
        return f"{_PREFIX}{self.number}"


def number_of(name: str) -> int | None:
    """The number of an issue of GitHub; None if the id is not that of one."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


RemoteEvent = IssueCreated | IssueDescribed | StatusChanged


def pulled(tracker: Tracker, issues: Iterable[RemoteIssue], at: float) -> Sequence[RemoteEvent]:
    """New issues are added, and known ones that have changed are updated; one that was closed is completed.

    An issue that is completed here stays so while it is open there, because its solution may not have been pushed.
    """
    found: list[RemoteEvent] = []
    for one in issues:
        known = tracker.issues.get(one.name)
        found += _changes(known, one) if known else [IssueCreated(_new(one, at))]
    return found


def open_elsewhere(tracker: Tracker, seen: Iterable[RemoteIssue]) -> tuple[int, ...]:
    """The issues that were open when they were last read, and are not among those that are open now."""
    listed = {one.name for one in seen}
    known = (issue for issue in tracker.issues.values() if issue.description.extra.get(STATE) == "open")
    numbers = (number_of(issue.id) for issue in known if issue.id not in listed)
    return tuple(number for number in numbers if number is not None)


def _new(one: RemoteIssue, at: float) -> Issue:
    status = IssueStatus.registered if one.is_open else IssueStatus.completed
    return Issue(
        id=one.name,
        description=description(one, labelled_priority(one.labels) or DEFAULT_PRIORITY),
        status=status,
        created_at=at,
        updated_at=at,
        completed_at=None if one.is_open else at,
    )


def _changes(known: Issue, one: RemoteIssue) -> Iterator[RemoteEvent]:
    said = known.description
    before = labelled_priority(said.tags)
    now = labelled_priority(one.labels)
    # A priority that a person has set here stays, unless the label itself has changed.
    there = description(one, now if now and now != before else said.priority)
    # What GitHub has no field for was said here, or by another tool.
    described = replace(
        there,
        expected_behavior=said.expected_behavior,
        actual_behavior=said.actual_behavior,
        affected_components=said.affected_components,
        extra={**said.extra, **there.extra},
    )
    if described != said:
        yield IssueDescribed(known.id, described)
    was_open = said.extra.get(STATE) != "closed"
    if not one.is_open and not known.is_over:
        yield StatusChanged(known.id, IssueStatus.completed)
    elif one.is_open and not was_open and known.is_over:
        yield StatusChanged(known.id, IssueStatus.registered)


def description(one: RemoteIssue, priority: int) -> Description:
    return Description(
        title=" ".join(plain(one.title).split())[:MOST_TITLE] or one.name,
        context=_shown(one.body, MOST_TEXT),
        priority=priority,
        tags=tuple(plain(label) for label in one.labels),
        comments=tuple(_comments(one.comments)),
        source=SOURCE,
        source_url=one.url,
        extra={STATE: "open" if one.is_open else "closed"},
    )


def labelled_priority(labels: Iterable[str]) -> int | None:
    """The highest priority that a label names."""
    ranks = (rank for rank, pattern in _LABELS.items() for label in labels if pattern.fullmatch(label.strip()))
    return max(ranks, default=None)


def _comments(comments: Sequence[RemoteComment]) -> Iterator[Comment]:
    """The newest ones that say something, as far as there is room; those of programs and mere votes are left out."""
    told = [one for one in comments if not one.author.endswith("[bot]") and not _is_vote(one.body)]
    left = MOST_TEXT
    kept: list[Comment] = []
    for one in reversed(told[-MOST_COMMENTS:]):
        body = _shown(one.body, left)
        left -= len(body)
        kept.append(Comment(author=plain(one.author), body=body))
        if left <= 0:
            break
    return reversed(kept)


def _is_vote(text: str) -> bool:
    words = islice(_WORD.finditer(text), 3)
    return tuple(word[0].lower() for word in words) in _VOTES


def _shown(text: str, most: int) -> str:
    clean = plain(text.replace("\r\n", "\n")).strip()
    return clean if len(clean) <= most else clean[:most] + CUT
