import pytest
from msgspec.structs import replace
from tests.tracker.conftest import Story

from iterdev.tracker import rules
from iterdev.tracker.issues import IssueStatus
from iterdev.tracker.remote_issues import (
    CUT,
    MOST_TEXT,
    RemoteComment,
    RemoteIssue,
    labelled_priority,
    number_of,
    open_elsewhere,
    pulled,
)

ISSUE = RemoteIssue(number=7, title="Greet", body="Please.", labels=("bug",), url="https://github.com/o/r/issues/7")


def pull(story: Story, *issues: RemoteIssue) -> int:
    """The number of events."""
    events = pulled(story.tracker, issues, story.at)
    story.happened(*events)
    return len(events)


def test_a_new_issue_is_added_and_the_same_one_again_changes_nothing(story: Story) -> None:
    assert (pull(story, ISSUE), pull(story, ISSUE)) == (1, 0)

    said = story.tracker.issues["GH-7"].description
    assert (said.title, said.context, said.tags, said.source) == ("Greet", "Please.", ("bug",), "github")
    assert said.source_url == ISSUE.url


def test_what_changed_there_is_changed_here_and_a_priority_of_this_tracker_stays(story: Story) -> None:
    pull(story, ISSUE)
    known = story.tracker.issues["GH-7"].description
    story.happened(*rules.described(story.tracker, "GH-7", replace(known, priority=5)))

    pull(story, replace(ISSUE, title="Greet louder", labels=("bug", "help wanted")))

    said = story.tracker.issues["GH-7"].description
    assert (said.title, said.priority, said.tags) == ("Greet louder", 5, ("bug", "help wanted"))


def test_what_is_said_here_in_fields_that_github_does_not_have_stays(story: Story) -> None:
    pull(story, ISSUE)
    known = story.tracker.issues["GH-7"].description
    own = replace(known, expected_behavior="a greeting", extra={**known.extra, "team": "red"})
    story.happened(*rules.described(story.tracker, "GH-7", own))

    pull(story, replace(ISSUE, title="Greet louder"))

    assert story.tracker.issues["GH-7"].description == replace(own, title="Greet louder")


def test_a_label_that_is_new_sets_the_priority(story: Story) -> None:
    pull(story, ISSUE)

    pull(story, replace(ISSUE, labels=("priority: high",)))

    assert story.tracker.issues["GH-7"].description.priority == 4


def test_an_issue_that_was_closed_there_is_completed_and_one_that_was_opened_again_is_registered(story: Story) -> None:
    pull(story, ISSUE)
    pull(story, replace(ISSUE, is_open=False))
    assert story.status("GH-7") == "completed"

    pull(story, ISSUE)

    assert story.status("GH-7") == "registered"


def test_an_issue_that_is_completed_here_stays_so_while_it_is_open_there(story: Story) -> None:
    pull(story, ISSUE)
    story.happened(*rules.moved(story.tracker, "GH-7", IssueStatus.completed))

    assert pull(story, ISSUE) == 0
    assert story.status("GH-7") == "completed"


def test_an_issue_that_is_not_among_the_open_ones_any_more_is_looked_for(story: Story) -> None:
    pull(story, ISSUE, replace(ISSUE, number=8), replace(ISSUE, number=9, is_open=False))
    story.issue("GH-10")

    assert open_elsewhere(story.tracker, [ISSUE]) == (8,)


@pytest.mark.parametrize(
    ("label", "priority"),
    [
        ("P0", 5), ("critical", 5), ("Priority: Critical", 5), ("priority/high", 4), ("high priority", 4), ("P2", 3),
        ("prio-low", 2), ("trivial", 1), ("bug", None), ("high-dpi", None), ("flow", None),
    ],
)  # fmt: skip
def test_a_label_that_names_a_priority_is_understood(label: str, priority: int | None) -> None:
    assert labelled_priority([label]) == priority


def test_text_from_outside_has_no_control_codes_and_is_cut(story: Story) -> None:
    pull(story, replace(ISSUE, title="a\x1b[31m\nb", body="x" * 50_000 + "\x00", labels=("la\x07bel",)))

    said = story.tracker.issues["GH-7"].description
    assert (said.title, said.tags) == ("a b", ("label",))
    assert said.context == "x" * MOST_TEXT + CUT


def test_comments_that_say_something_come_along_the_newest_before_there_is_no_room(story: Story) -> None:
    spoken = [("ann", "It also fails on Mondays"), ("dependabot[bot]", "Bumps x"), ("bob", "+1"), ("eve", "\U0001f44d")]
    old = [RemoteComment("old", "y" * 9_000) for _ in range(4)]

    pull(story, replace(ISSUE, comments=(*old, *(RemoteComment(*one) for one in spoken))))

    comments = story.tracker.issues["GH-7"].description.comments
    assert [one.author for one in comments] == ["old", "old", "old", "ann"]
    assert sum(len(one.body) for one in comments) <= MOST_TEXT + len(CUT)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("+1", 0), ("Me too!!", 0), ("same  here :)", 0), ("bump it up", 1), ("+1 because of X", 1)],
)
def test_a_mere_vote_is_no_comment(story: Story, text: str, kept: int) -> None:
    pull(story, replace(ISSUE, comments=(RemoteComment("ann", text),)))

    assert len(story.tracker.issues["GH-7"].description.comments) == kept


def test_a_comment_with_a_long_line_is_read_in_linear_time(story: Story) -> None:
    # A pattern that tries every place to divide the line would not come to its end.
    pull(story, replace(ISSUE, comments=(RemoteComment("ann", "-" * 2_000_000 + "x"),)))

    (comment,) = story.tracker.issues["GH-7"].description.comments
    assert comment.body == "-" * MOST_TEXT + CUT


@pytest.mark.parametrize(
    ("name", "number"), [("GH-42", 42), ("GH-0", None), ("gh-42", None), ("ISS-20260308-120000", None)]
)
def test_the_number_is_in_the_id(name: str, number: int | None) -> None:
    assert number_of(name) == number
