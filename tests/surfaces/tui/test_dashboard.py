"""What keys and commands do in the dashboard, and what it does when the session changes under it."""

import pytest
from tests.core.conftest import Story, task
from tests.surfaces.tui.conftest import (
    StorySource,
    asking,
    drive,
    finished,
    press,
    screen_text,
    settle,
    shown,
    tasks,
)
from textual.pilot import Pilot

from iterdev.app.live.acts import Accept, Act, Answer, Comment, RollBack
from iterdev.core.session import events
from iterdev.core.types import SessionId, TaskId
from iterdev.surfaces.tui.dashboard import MOVED_ON, Dashboard
from iterdev.teams.development.events import ConvergenceForced

S = SessionId("ids-add-export-endpoint-20260308")


@pytest.mark.parametrize(
    ("story", "keys", "act"),
    [
        (asking, ["a", "2", "enter"], Answer(session=S, gate="plan", choice="reject")),
        (asking, ["a", "enter", "enter"], Answer(session=S, gate="plan", choice="approve")),
        (asking, ["p", "1", "enter"], Answer(session=S, gate="plan", choice="approve")),
        (finished, [":", *"accept", "enter", "enter"], Accept(session=S)),
        (finished, [":", *"rollback DEV-001 odd", "enter", "y"], RollBack(session=S, target="DEV-001", reason="odd")),
        (
            finished,
            ["enter", "d", "c", "tab", *"odd", "enter"],
            Comment(session=S, text="till/cart.py: odd", task=TaskId("DEV-001"), severity="high"),
        ),
        (finished, ["?", *":accept", "enter", "enter", "enter"], Accept(session=S)),
    ],
    ids=["answer", "the default", "from what needs you", "accept", "rollback", "comment", "from the list of keys"],
)
def test_an_act_is_done_after_it_was_confirmed_and_its_command_is_in_the_log(
    story: object, keys: list[str], act: Act
) -> None:
    source = StorySource(story(), alive=story is asking)  # type: ignore[operator]

    screen = shown(source, *keys, ":")

    assert source.performed == [act]
    assert "$ iterdev " in screen
    assert "it is done" in screen


@pytest.mark.parametrize("keys", [["a", "2", "escape", "escape"], ["a", "escape"], [":", *"accept", "enter", "escape"]])
def test_nothing_is_done_without_a_confirmation(keys: list[str]) -> None:
    source = StorySource(asking())

    shown(source, *keys)

    assert source.performed == []


def test_a_preview_is_shown_again_if_the_session_has_moved_on() -> None:
    source = StorySource(finished(), alive=False)
    source.stale = 1

    again = shown(source, ":", *"accept", "enter", "enter")

    assert MOVED_ON in again
    assert source.performed == []


def test_work_that_is_not_known_to_be_good_is_accepted_by_another_key_only() -> None:
    story = finished()
    story.happens(ConvergenceForced(sprint=1, raised_by=(TaskId("REVIEW-001"),), problems=(), rounds=3))
    refused, taken = (StorySource(story, alive=False) for _ in range(2))

    screen = shown(refused, ":", *"accept", "enter", "enter")
    shown(taken, ":", *"accept", "enter", "f")

    assert "Not good: convergence was forced" in screen
    assert refused.performed == []
    assert taken.performed == [Accept(session=S, force=True)]


def test_an_answer_of_somebody_else_closes_the_question_and_is_told() -> None:
    source, seen = StorySource(asking()), list[str]()

    async def steps(pilot: Pilot[bool], dashboard: Dashboard) -> None:
        await press(pilot, "a")
        assert source.story
        source.story.happens(events.GateAnswered("plan", "reject"))
        await dashboard.look()
        await settle(pilot)
        seen.append(screen_text(dashboard))

    drive(source, steps)

    assert "plan was answered: reject" in seen[0]
    assert "1-2 choose" not in seen[0]


def test_the_cursor_stays_at_its_task_when_tasks_join_the_table() -> None:
    source, selected = StorySource(Story(task("DEV-001"), task("REVIEW-001", "DEV-001"))), list[str]()

    async def steps(pilot: Pilot[bool], dashboard: Dashboard) -> None:
        await press(pilot, "down")
        assert source.story
        source.story.happens(events.TasksAdded((task("DEV-000"),)))
        await dashboard.look()
        await settle(pilot)
        main = dashboard.screen_stack[1]
        selected.extend([main.selected.id, str(main.tasks.cursor)])  # type: ignore[attr-defined]

    drive(source, steps)

    assert selected == ["REVIEW-001", "2"]


def test_tasks_are_filtered_by_words_and_escape_shows_all_again() -> None:
    filtered = shown(StorySource(tasks(10)), "/", *"developer failed", "enter", size=(80, 24))
    whole = shown(StorySource(tasks(10)), "/", *"developer failed", "enter", "escape", size=(80, 24))

    assert "DEV-002" in filtered
    assert "DESIGN-001" not in filtered
    assert "DESIGN-001" in whole


def test_two_keys_one_after_the_other_open_what_the_web_page_opens_with_them() -> None:
    assert "state" in shown(StorySource(tasks(10)), "g", "s").splitlines()[1]


def test_findings_are_visited_one_after_the_other_and_rounds_by_brackets() -> None:
    source, places = StorySource(tasks(10)), list[str]()

    async def steps(pilot: Pilot[bool], dashboard: Dashboard) -> None:
        await press(pilot, "d", "n")
        places.append(dashboard.screen.diff.current.finding.text)  # type: ignore[attr-defined]
        await press(pilot, "n", "]")
        places.append(screen_text(dashboard).splitlines()[1])
        await press(pilot, "]")
        places.append(screen_text(dashboard).splitlines()[-2])

    drive(source, steps)

    assert places[0].startswith("total() returns a float")
    assert places[1].startswith(" fix round 1 ")
    assert places[2].strip() == 'There is no fix round "2" in ids-x'


def test_output_is_searched() -> None:
    source = StorySource(tasks(10), said=[f"line {number}" for number in range(100)])

    screen = shown(source, "o", "/", *"line 7", "enter", "n")

    assert '"line 7": 2 of 11' in screen
    assert "line 70" in screen


def test_text_of_others_cannot_send_control_codes_or_forge_lines() -> None:
    story = Story(task("DEV-001"), requirement="\x1b]0;owned\x07x")
    story.fails("DEV-001", "\x1b[2Jno\nluck [bold]x[/bold]")

    text = shown(StorySource(story))

    assert "no luck [bold]x[/bold]" in text
    assert "owned" not in text
    assert text.replace("\n", "").isprintable()


def test_a_wrong_command_is_told_with_a_hint_and_can_be_corrected() -> None:
    source = StorySource(finished(), alive=False)

    screen = shown(source, ":", *"acept", "enter")

    assert 'There is no command "acept" here (did you mean "accept"?)' in screen


def test_an_error_is_told_with_its_hint() -> None:
    assert "The plan cannot be edited here" in shown(StorySource(asking()), "a", "e")
