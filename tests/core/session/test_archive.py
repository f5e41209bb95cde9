"""What becomes of a session whose work is done."""

import json

import pytest
from tests.core.conftest import Story

from iterdev.core.session import events, gates
from iterdev.core.types import Phase
from iterdev.core.views.report import report
from iterdev.store.session_folder.json_records import records
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT


def finished() -> Story:
    story = Story(pipeline=Pipeline.patch)
    while names := story.goes_on():
        for name in names:
            story.does(name)
    assert story.state.lifecycle.phase is Phase.completed
    return story


def files(story: Story) -> tuple[dict[str, object], dict[str, object]]:
    written = records(story.state, DEVELOPMENT)
    return json.loads(written["session.json"]), json.loads(written[".msg/meta.json"])


@pytest.mark.requirement("R20")
def test_an_archived_session_is_completed_in_its_files_and_the_team_is_told() -> None:
    story = finished()
    story.now = 2000.0
    state = story.happens(events.Archived())

    assert (state.lifecycle.phase, state.lifecycle.is_over, state.lifecycle.is_finished) == (Phase.archived, True, True)
    for document in files(story):
        assert (document["status"], document["archived_at"]) == ("completed", "1970-01-01T08:33:20+08:00")
    assert (state.messages.sent[-1].type, state.messages.sent[-1].to) == ("shutdown", "all")


@pytest.mark.requirement("R20")
def test_a_session_that_is_kept_is_paused_and_its_work_is_done() -> None:
    story = finished()
    state = story.happens(events.Kept())

    assert (state.lifecycle.phase, state.lifecycle.is_over, state.lifecycle.is_finished) == (Phase.paused, False, True)
    assert [document["status"] for document in files(story)] == ["paused", "paused"]


def test_a_reopened_session_is_at_hand_as_if_it_had_been_kept() -> None:
    story = finished()
    story.happens(events.Archived("/elsewhere"))
    state = story.happens(events.Reopened())

    assert (state.lifecycle.phase, state.lifecycle.kept, state.lifecycle.archived_at) == (Phase.paused, True, None)
    assert state.lifecycle.exported == "/elsewhere"
    assert state.messages.sent[-1].type == "state_update"


def test_an_engine_that_takes_a_kept_session_up_is_not_finished_with_it() -> None:
    story = finished()
    story.happens(events.Kept())
    state = story.happens(events.TasksReset(tuple(story.state.tasks.plan)), events.EngineStarted(2, "base0000"))

    assert (state.lifecycle.phase, state.lifecycle.is_finished) == (Phase.active, False)


@pytest.mark.requirement("R18", "R19")
def test_the_recommended_choice_is_the_first_and_only_failures_can_be_tried_again() -> None:
    unchanged = gates.completion_choices(succeeded=True, failures=False, acceptable=False)
    good = gates.completion_choices(succeeded=True, failures=False, acceptable=True)

    assert unchanged == ("archive", "keep", "export")
    assert good == ("accept", "archive", "keep", "export")


def test_work_that_is_not_known_to_be_good_is_not_recommended() -> None:
    failed = gates.completion_choices(succeeded=False, failures=True, acceptable=True)
    unverified = gates.completion_choices(succeeded=False, failures=False, acceptable=True)

    assert failed == ("retry", "keep", "accept", "archive", "export")
    assert unverified == ("keep", "accept", "archive", "export")


def test_the_report_says_when_the_work_was_done_not_when_it_was_put_away() -> None:
    story = finished()
    before = report(story.state, DEVELOPMENT)
    story.now += 5000
    story.happens(events.Archived())

    assert "**Completed**: 1970-01-01T08:16:40+08:00" in before
    assert report(story.state, DEVELOPMENT) == before
