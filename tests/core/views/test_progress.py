"""What changed from one state to the next, as far as it is worth a line."""

from tests.core.conftest import Story, review, task

from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.types import Pipeline, Status
from iterdev.core.views.progress import (
    EarlierTasks,
    NewPause,
    NewWarning,
    ProgressChange,
    RoundChange,
    TaskChange,
    WaveChange,
    changes,
)


def tasks(before: State | None, after: State) -> list[tuple[str, str]]:
    found = (change.task for change in changes(before, after) if isinstance(change, TaskChange))
    return [(task.id, task.status.value) for task in found]


def others(before: State | None, after: State) -> list[ProgressChange]:
    return [change for change in changes(before, after) if not isinstance(change, TaskChange)]


def test_nothing_changes_between_equal_states() -> None:
    state = Story(task("DEV-001")).starts("DEV-001")

    assert list(changes(state, state)) == []


def test_each_task_whose_status_changed_is_a_change() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    before = story.starts("DEV-001")
    story.ends("DEV-001", events.Failed(error="no luck"))
    story.starts("DEV-003")

    assert tasks(before, story.state) == [("DEV-001", "failed"), ("DEV-003", "in_progress")]


def test_what_was_over_before_the_first_state_is_only_counted() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    story.does("DEV-001")
    story.starts("DEV-002")

    assert others(None, story.state) == [EarlierTasks({Status.completed: 1})]
    assert tasks(None, story.state) == [("DEV-002", "in_progress")]


def test_a_new_wave_a_warning_and_a_pause_are_changes() -> None:
    story = Story(task("DEV-001"))
    before = story.state
    story.happens(events.WaveStarted(1), events.Warned("odd"))
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))

    wave, warning, pause = others(before, story.state)

    assert (wave, warning) == (WaveChange(1), NewWarning("odd"))
    assert isinstance(pause, NewPause)
    assert (pause.pause.agents, pause.pause.why) == (("mine",), "429")
    assert others(story.state, story.state) == []


def test_a_fix_round_is_a_change() -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    for name in ("DESIGN-001", "DEV-001"):
        story.does(name)
        story.goes_on()
    story.verifies("VERIFY-001", 1.0)
    before = story.reviews("REVIEW-001", review(3))
    story.goes_on()

    assert RoundChange(number=1, limit=3) in others(before, story.state)
