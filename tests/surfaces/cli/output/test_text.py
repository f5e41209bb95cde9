"""Sessions as text."""

import pytest
from tests.core.conftest import Story, task

from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import Ending, Engine
from iterdev.core.views.session import session_view
from iterdev.surfaces.cli.output.text import status_text, summary
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

PIPELINE = events.Gate(kind="pipeline", question="Which one?", choices=("approve", "patch", "sprint"))
PLAN = events.Gate(kind="plan", question="Run these tasks?", choices=("approve", "reject"))


def test_a_question_has_a_command_for_each_answer() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.GateOpened(PLAN))
    session = story.state.session.id

    lines = status_text(session_view(story.state, DEVELOPMENT, engine_alive=False)).splitlines()

    assert "State: waiting for an answer" in lines
    assert "Question (plan): Run these tasks?" in lines
    assert lines[:5] == [
        "Needs you:",
        "  question: Run these tasks?",
        f"    iterdev answer {session} plan approve",
        f"    iterdev answer {session} plan reject",
        f"    iterdev resume {session}",
    ]


def test_a_status_begins_with_what_needs_the_user_also_if_that_is_nothing() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))

    lines = status_text(session_view(story.state, DEVELOPMENT)).splitlines()

    assert lines[:4] == [
        "Needs you: nothing",
        "Paused: the provider of mine is paused until 1970-01-01T08:33:20+08:00: 429",
        "",
        "Pipeline Status (not chosen yet):",
    ]


def test_variants_of_an_answer_share_a_line() -> None:
    story = Story()
    story.happens(events.GateOpened(PIPELINE))

    lines = status_text(session_view(story.state, DEVELOPMENT)).splitlines()

    assert lines[-1] == "  or, in place of approve: patch, sprint"


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (Ending.interrupted, "Interrupted; everything is saved. Continue with: iterdev resume {session}"),
        (Ending.stepped, "One step done. Next: iterdev resume {session} --step"),
        (Ending.waiting, "Then: iterdev resume {session}"),
        (Ending.over, "Try again with: iterdev retry {session}"),
    ],
)
def test_the_last_line_of_a_run_says_what_to_do_next(ending: Ending, last: str) -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.does("DEV-001")
    story.fails("DEV-002", "no luck")

    lines = summary(session_view(story.state, DEVELOPMENT), ending).splitlines()

    assert lines[:2] == [f"{story.state.session.id}: 1 completed, 1 failed, 0 skipped", "  failed  DEV-002: no luck"]
    assert lines[-1] == last.format(session=story.state.session.id)


def test_a_step_names_the_tasks_that_it_left_to_the_background() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.starts("DEV-001")

    last = summary(session_view(story.state, DEVELOPMENT), Ending.stepped).splitlines()[-1]

    assert last == (
        f"Running in the background: DEV-001 (developer). Next: iterdev resume {story.state.session.id} --step"
    )


@pytest.mark.parametrize(
    ("engine", "waves"),
    [(Engine.wave, ["  wave 1/2: 1 completed, 1 failed", "  wave 2/2: 1 skipped"]), (Engine.beat, [])],
)
def test_a_session_of_waves_that_is_over_says_what_became_of_each(engine: Engine, waves: list[str]) -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-002"), engine=engine)
    story.goes_on()
    story.does("DEV-001")
    story.fails("DEV-002")
    story.goes_on()

    lines = summary(session_view(story.state, DEVELOPMENT), Ending.over).splitlines()

    assert [line for line in lines if line.startswith("  wave ")] == waves


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ([events.Finished()], "not successful: tasks: 1 failed, 1 skipped"),
        ([events.Finished(), events.Archived()], "archived, not successful: tasks: 1 failed, 1 skipped"),
        (
            [events.Finished(), Accepted("main", "c" * 40)],
            "accepted as cccccccccccc, not successful: tasks: 1 failed, 1 skipped",
        ),
    ],
)
def test_the_status_of_a_session_that_is_over_says_why_it_is_no_success(told: list[events.Event], state: str) -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.fails("DEV-001", "no luck")
    story.goes_on()
    story.happens(*told)

    assert f"State: {state}" in status_text(session_view(story.state, DEVELOPMENT)).splitlines()


def test_a_rejected_plan_says_only_that() -> None:
    story = Story()
    story.happens(events.Finished(events.Finished.WHY_REJECTED))

    assert (
        summary(session_view(story.state, DEVELOPMENT), Ending.over).splitlines()[-1] == "Ended: the plan was rejected"
    )


def test_a_run_that_is_not_over_says_what_is_left() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), task("DEV-003", "DEV-001"))
    story.starts("DEV-001")

    first = summary(session_view(story.state, DEVELOPMENT), Ending.interrupted).splitlines()[0]

    assert first.endswith(": 0 completed, 0 failed, 0 skipped, 1 in_progress, 2 pending")


def test_what_the_last_line_says_is_no_warning_as_well() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001")
    story.happens(events.Warned("DEV-001: nothing was verified: no tests"), events.Finished("stopped: no tests"))

    lines = summary(session_view(story.state, DEVELOPMENT), Ending.over).splitlines()

    assert [line for line in lines if "no tests" in line] == ["Ended: stopped: no tests"]


def test_the_tests_that_fail_are_named_once() -> None:
    story = Story(task("DEV-001", pipeline=Pipeline.patch), task("VERIFY-001", "DEV-001", pipeline=Pipeline.patch))
    story.does("DEV-001")
    story.verifies("VERIFY-001", 0.5)
    story.goes_on()

    lines = summary(session_view(story.state, DEVELOPMENT), Ending.over).splitlines()

    assert [line for line in lines if "test_a" in line] == [
        "  failed  VERIFY-001: pass rate 50.0% is below 95 %: test_a"
    ]
    assert lines[-1] == "Not successful: tasks: 1 failed; the tests fail"
