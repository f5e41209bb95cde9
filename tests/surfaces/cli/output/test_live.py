"""The live picture of a run, as it is painted in a terminal of some size."""

from io import StringIO

from rich.console import Console
from tests.core.conftest import Story, review, task

from iterdev.core.session import events
from iterdev.core.types import Status
from iterdev.core.views.session import session_view
from iterdev.surfaces.cli.output.live import Live
from iterdev.teams.development.team import DEVELOPMENT


def painted(story: Story, *, height: int = 20, said: dict[str, str] | None = None) -> list[str]:
    console = Console(file=StringIO(), width=100, height=height, force_terminal=False)
    live = Live(console, now=lambda: story.now)
    live.show(lambda room: session_view(story.state, DEVELOPMENT, room=room))
    for name, text in (said or {}).items():
        live.agent_output(name, text)
    with console.capture() as capture:
        console.print(live._picture())
    return [line.rstrip() for line in capture.get().splitlines()]


def test_each_task_has_a_line_with_its_mark_its_role_and_a_note() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    story.does("DEV-001")
    story.fails("DEV-002", "no luck")
    story.starts("DEV-003")

    head, *lines = painted(story, said={"DEV-003": "half way"})

    assert head.startswith(f"{story.state.session.id}   1/3")
    assert [line.split()[-2:] for line in lines] == [["of", "DEV-001"], ["no", "luck"], ["half", "way"]]
    assert [mark for line in lines for mark in line if mark in "✓✗▸"] == ["✓", "✗", "▸"]


def test_a_verdict_that_asks_for_a_fix_round_is_no_success() -> None:
    story = Story(task("REVIEW-001"))
    story.reviews("REVIEW-001", review(3))

    _, line = painted(story)

    assert "! REVIEW-001" in " ".join(line.split())
    assert "score 3" in line


def test_a_table_that_is_too_long_says_what_is_not_shown() -> None:
    story = Story(*(task(f"DEV-{number:03d}") for number in range(1, 31)))
    story.starts("DEV-020")

    lines = painted(story, height=10)

    assert len(lines) == 10 - 1
    assert any("DEV-020" in line for line in lines)
    assert lines[-1] == "   and 23 pending"


def test_an_agent_cannot_send_control_codes_to_the_terminal() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.fails("DEV-001", "\x1b]0;owned\x07no \x1b[31mluck")
    story.starts("DEV-002")
    story.happens(events.Warned("\x1b[2Jodd"))

    text = "\n".join(painted(story, said={"DEV-002": "\x9b31mhalf \x1b]0;owned\x07way"}))

    assert all(words in text for words in ("no luck", "half way", "warning: odd"))
    assert "owned" not in text
    assert text.replace("\n", "").isprintable()


def test_a_warning_that_is_repeated_is_shown_once() -> None:
    story = Story(task("DEV-001"))
    story.happens(*[events.Warned("odd")] * 3)

    assert painted(story)[-1] == "warning: odd (3 times)"


def test_waves_are_in_numerical_order() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.edits(events.RowEdit(task=task("DEV-003"), status=Status.pending))

    lines = painted(story)[1:]

    assert [line.split()[:3:2] for line in lines] == [["1", "DEV-001"], ["·", "developer"], ["2", "DEV-002"]]


def test_warnings_and_pauses_stand_below_the_tasks() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.Warned("odd"))
    story.does("DEV-001", events.Limited(error="429", reset_at=1090))

    lines = painted(story)

    assert "warning: odd" in lines
    assert any(line.startswith("the provider of mine is paused for 1:30, until ") for line in lines)


def test_a_long_line_leaves_room_for_what_a_terminal_shows_of_ctrl_c() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")

    _, line = painted(story, said={"DEV-001": "word " * 40})

    assert len(line) == 100 - len("^C")
