"""What was learned: its evidence, what is handed down, and what a person rejected."""

import pytest
from tests.core.conftest import Story, done, review, task

from iterdev.core.append_only import AppendOnly
from iterdev.core.collaboration import wisdom
from iterdev.core.collaboration.wisdom import (
    Earlier,
    Note,
    Wisdom,
    WisdomInherited,
    WisdomRejected,
    Written,
    convention,
    handed_down,
    written_lines,
)
from iterdev.core.results import LearnedTexts
from iterdev.core.rules.outcomes import taken_over
from iterdev.core.types import Engine, TaskId


def learned(text: str, *, session: str = "ids-old", at: float = 1.0, file: str = "learnings") -> Note:
    return wisdom.note(file, text, session=session, task="DEV-001", commit="abcdef1234", at=at)


def earlier(*texts: str, requirement: str = "Something else", finished: bool = True, **rejected: str) -> Earlier:
    notes = tuple(learned(text, at=float(number)) for number, text in enumerate(texts))
    return Earlier(requirement, finished, Wisdom(notes=AppendOnly(notes), rejected=rejected))


def texts(inherited: WisdomInherited | None) -> list[str]:
    assert inherited
    return [note.text for note in inherited.notes]


def test_an_entry_has_its_evidence() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), rounds=0, engine=Engine.beat)
    story.does("DEV-001", done("f", commit="c1c1c1c1c1", wisdom=LearnedTexts(learnings=("slow\n tests",))))
    story.lands(TaskId("DEV-001"), "tip1")
    story.reviews("REVIEW-001", review(4))
    story.goes_on()

    first, second = story.state.wisdom.notes

    assert (first.text, first.session, first.task, first.commit) == (
        "slow tests",
        "ids-add-export-endpoint-20260308",
        "DEV-001",
        "c1c1c1c1c1",
    )
    assert first.evidence == "ids-add-export-endpoint-20260308, DEV-001, c1c1c1c"
    assert (second.file, second.task, second.commit, second.at) == ("issues", "REVIEW-001", "tip1", 1000.0)


def test_who_changed_nothing_learned_from_the_commit_that_it_looked_at() -> None:
    story = Story(task("REVIEW-001"))
    state = story.does("REVIEW-001", done("f", review=review(9), wisdom=LearnedTexts(conventions=("tabs",))))

    assert state.wisdom.notes[0].commit == "base0000"


def test_the_same_words_are_the_same_entry_wherever_they_were_learned() -> None:
    here, there = learned("use  tabs"), learned("use tabs", session="ids-other", at=7)

    assert here.id == there.id
    assert here.id != learned("use tabs", file="issues").id


def test_finished_sessions_hand_down_their_newest_entries_first() -> None:
    inherited = handed_down([earlier("a", "b"), earlier("c"), earlier("half", finished=False)], "Add export")

    assert texts(inherited) == ["c", "b", "a"]


def test_what_shares_a_word_with_the_requirement_comes_first() -> None:
    sessions = [
        earlier("tables are slow", "the export wants UTF-8"),
        earlier("of the same matter", requirement="Mend the export"),
        earlier("unrelated"),
    ]

    assert texts(handed_down(sessions, "Add an export endpoint")) == [
        "of the same matter",
        "the export wants UTF-8",
        "unrelated",
        "tables are slow",
    ]


def test_chinese_requirements_share_words_too() -> None:
    assert texts(handed_down([earlier("导出接口要用缓存", "别的事")], "新增导出"))[0] == "导出接口要用缓存"


def test_what_is_handed_down_is_bounded_and_told_once() -> None:
    many = [earlier(*(f"{number} {'x' * 400}" for number in range(50)), "again"), earlier("again")]

    inherited = handed_down(many, "Add export")

    assert inherited
    assert len(inherited.notes) == 20
    assert max(len(text) for text in texts(inherited)) == 300
    assert texts(inherited).count("again") == 1
    assert {note.id for note in inherited.notes} <= {note.id for one in many for note in one.wisdom.notes}


def test_a_rejected_entry_is_not_handed_down_whoever_learned_it_and_the_rejection_is() -> None:
    name = learned("wrong").id
    sessions = [earlier("wrong"), earlier("right", finished=False, **{name: "it is wrong"}), earlier("wrong", "good")]

    inherited = handed_down(sessions, "Add export")

    assert texts(inherited) == ["good"]
    assert inherited
    assert inherited.rejected == {name: "it is wrong"}


def test_there_may_be_nothing_to_hand_down() -> None:
    assert handed_down([], "Add export") is None
    assert handed_down([earlier()], "Add export") is None


def test_a_prompt_has_what_earlier_sessions_learned_with_its_evidence() -> None:
    story = Story(task("DEV-001"))
    story.happens(WisdomInherited((learned("use tabs"),), {}))

    prompt = story.prompt("DEV-001")

    assert "## What earlier sessions learned\n```\n- learnings: use tabs (from ids-old, DEV-001, abcdef1)\n" in prompt


@pytest.mark.parametrize("text", ["use tabs", "tests are slow"])
def test_a_rejected_entry_is_in_no_prompt_from_then_on(text: str) -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.happens(WisdomInherited((learned("use tabs"),), {}))
    story.does("DEV-001", done("f", wisdom=LearnedTexts(learnings=("tests are slow",))))
    before = story.prompt("DEV-002")

    story.happens(WisdomRejected(learned(text).id, "no"))
    after = story.prompt("DEV-002")

    assert {"use tabs", "tests are slow"} == {shown for shown in ("use tabs", "tests are slow") if shown in before}
    assert text not in after


def test_an_entry_that_was_rejected_in_an_earlier_session_is_not_used_when_it_is_learned_again() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.happens(WisdomInherited((), {learned("use tabs").id: "no"}))
    story.does("DEV-001", done("f", wisdom=LearnedTexts(learnings=("use tabs",))))

    assert "use tabs" not in story.prompt("DEV-002")


def test_lines_that_a_person_wrote_are_told_from_those_of_iterdev() -> None:
    content = """# Conventions

- indent with tabs (W-0123abcd, DEV-001, abcdef1)
- W-0123abcd is rejected (we use spaces)
- name tests as claims (such as this one)
* no globals
   two words
"""

    found = written_lines("conventions", content)

    assert [entry.text for entry in found] == ["name tests as claims (such as this one)", "no globals", "two words"]
    assert {entry.file for entry in found} == {"conventions"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"name": "tabs", "description": "indent with tabs", "example": "\tx"}, "tabs: indent with tabs (such as x)"),
        ({"name": "tabs"}, "tabs"),
        ({"description": 7}, "7"),
        ({"example": "x"}, None),
        ({}, None),
    ],
)
def test_a_convention_of_the_board_becomes_an_entry(data: dict[str, object], text: str | None) -> None:
    entry = convention(data, "DEV-001")

    assert (entry.text if entry else None) == text


def test_what_was_written_is_taken_over_once_and_not_if_it_was_rejected_or_undone() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.does("DEV-001")
    written = [
        Written(file="learnings", text="by hand"),
        Written(file="learnings", text="by  hand"),
        Written(file="conventions", text="of a task", worker="DEV-001"),
        Written(file="conventions", text="of undone work", worker="DEV-002"),
        Written(file="learnings", text="use tabs"),
    ]
    story.happens(WisdomRejected(learned("use tabs").id, "no"))

    story.happens(*taken_over(story.state, written, story.now))

    assert [(note.text, note.task) for note in story.state.wisdom.notes] == [("by hand", ""), ("of a task", "DEV-001")]
    assert taken_over(story.state, written, story.now) == ()
