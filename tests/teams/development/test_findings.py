"""Findings keep their identity across rounds, and a loop that gets nowhere ends."""

import pytest
from tests.core.conftest import Story, done, review, task

from iterdev.core.errors import UserError
from iterdev.core.request import Request
from iterdev.core.settings import Run, Settings
from iterdev.core.types import Engine, Phase, TaskId
from iterdev.teams.development import critic
from iterdev.teams.development.documents import documents
from iterdev.teams.development.results import Finding, Review
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

LEAK = Finding(severity="critical", file="a.py", line=3, dimension="security", description="The key leaks at line 3.")
SLOW = Finding(severity="high", file="a.py", line=9, dimension="correctness", description="It never ends")
TYPO = Finding(severity="low", file="b.py", dimension="maintainability", description="typo")


def verdict(*issues: Finding) -> Review:
    return Review(id="REVIEW-001", status="completed", scores=review(5).scores, issues=issues)


def in_round(number: int, *reviews: Review, changed: tuple[str, ...] = ("a.py",)) -> Story:
    """A sprint in which each review asks for another round, up to the given one."""
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), engine=Engine.beat)
    for place, one in enumerate(reviews[:number], 1):
        (name,) = story.goes_on()
        commit = f"c{place}" if changed else None
        story.does(name, done("w", commit=commit, changed=changed if place > 1 else ("a.py",)))
        (name,) = story.goes_on()
        story.reviews(name, one)
    return story


@pytest.mark.parametrize(
    "same",
    [
        {"line": 7},
        {"description": "the key leaks  at line 12"},
        {"severity": "low"},
        {"suggestion": "Hide it"},
    ],
    ids=["moved", "other spelling", "other severity", "with advice"],
)
def test_the_same_problem_named_again_is_the_same_finding(same: dict[str, object]) -> None:
    again = Finding(
        **{
            "severity": LEAK.severity,
            "file": LEAK.file,
            "line": LEAK.line,
            "dimension": LEAK.dimension,
            "description": LEAK.description,
            **same,
        }
    )

    assert critic.identity(again) == critic.identity(LEAK)


def test_another_file_dimension_or_text_is_another_finding() -> None:
    assert len({critic.identity(one) for one in (LEAK, SLOW, TYPO)}) == 3


def test_a_later_review_says_what_is_fixed_still_there_and_new() -> None:
    story = in_round(2, verdict(LEAK, SLOW), verdict(SLOW, TYPO))

    seen = critic.of_round(story.state, TaskId("REVIEW-002"))
    text = documents(story.state)["review/review-002.md"]

    assert seen == critic.Comparison(fixed=(LEAK,), still_there=(SLOW,), new=(TYPO,))
    assert "[HIGH, still there]" in text
    assert "[LOW, new]" in text
    assert "Fixed since" in text
    assert critic.of_round(story.state, TaskId("REVIEW-001")) is None


def test_reviewer_and_developer_of_a_later_round_are_told() -> None:
    story = in_round(2, verdict(LEAK, SLOW), verdict(SLOW))
    story.goes_on()

    reviewer = story.prompt("REVIEW-002")
    developer = story.prompt("DEV-fix-2")

    assert "Findings of REVIEW-001" in reviewer
    assert "The key leaks" in reviewer
    assert "[high, still there]" in developer


def test_a_round_that_changed_and_fixed_nothing_ends_the_loop() -> None:
    story = in_round(2, verdict(LEAK), verdict(LEAK), changed=())

    story.goes_on()

    assert story.state.lifecycle.phase is Phase.completed
    assert story.team.rounds == {1: 1}
    assert "changed nothing and fixed nothing" in story.state.warnings[-1]
    assert any("The key leaks" in note.text for note in story.state.wisdom.notes if note.file == "issues")


@pytest.mark.parametrize(
    ("second", "changed"),
    [(verdict(LEAK), ("a.py",)), (verdict(SLOW), ())],
    ids=["something changed", "something was fixed"],
)
def test_a_round_that_did_something_is_followed_by_another(second: Review, changed: tuple[str, ...]) -> None:
    story = in_round(2, verdict(LEAK), second, changed=changed)

    assert story.goes_on() == ["DEV-fix-2"]


def test_nobody_reviews_its_own_work_when_that_is_forbidden() -> None:
    settings = Settings(run=Run(agent="claude", reviewer_differs=True))
    request = Request(requirement="x")

    with pytest.raises(UserError, match="would review its own work"):
        DEVELOPMENT.started(request, settings, {})

    assert DEVELOPMENT.started(request, settings, {Role.reviewer: "codex"})


def test_surfaces_see_each_finding_once_with_the_reviews_that_report_it_and_the_one_that_does_not() -> None:
    story = in_round(2, verdict(TYPO, LEAK, SLOW), verdict(SLOW, TYPO))

    leak, slow, typo = DEVELOPMENT.findings(story.state)

    assert (leak.id, leak.severity, leak.file, leak.line) == (critic.identity(LEAK), "critical", "a.py", 3)
    assert (leak.reported_by, leak.fixed_in) == (("REVIEW-001",), "REVIEW-002")
    assert (slow.reported_by, slow.fixed_in) == (("REVIEW-001", "REVIEW-002"), None)
    assert (typo.text, typo.line) == ("typo", None)


@pytest.mark.parametrize(("line", "number"), [(7, 7), ("12-15", 12), ("L9", 9), ("top", None), (None, None)])
def test_a_line_is_the_first_number_that_an_agent_gave(line: int | str | None, number: int | None) -> None:
    finding = Finding(severity="high", file="a.py", line=line, dimension="security", description="odd")

    (seen,) = DEVELOPMENT.findings(in_round(1, verdict(finding)).state)

    assert seen.line == number
