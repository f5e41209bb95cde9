"""The journal as lines: which events are worth one, and what it says."""

from datetime import UTC

import pytest
from tests.core.conftest import Story, done, review, reviewed_badly, task

from iterdev.core.limits.providers import AgentReplaced
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import Status, TaskId
from iterdev.core.views.event_lines import WIDTH, EventLine, event_lines
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")


def lines_since(story: Story, before: int) -> list[EventLine]:
    """The lines of what happened behind an entry."""
    state, _ = event_lines(None, story.entries[:before], DEVELOPMENT)
    after, lines = event_lines(state, story.entries[before:], DEVELOPMENT)
    assert after == story.state
    return lines


def texts(*happened: events.Event) -> list[str]:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    before = len(story.entries)
    story.now += 1
    story.happens(*happened)
    return [line.text for line in lines_since(story, before)]


def test_a_journal_is_told_from_its_beginning() -> None:
    story = Story(task("DEV-001"), pipeline=Pipeline.patch)
    story.now += 60
    story.starts("DEV-001")

    state, lines = event_lines(None, story.entries, DEVELOPMENT, UTC)

    assert state == story.state
    assert [(line.when, line.event, line.task, line.text) for line in lines] == [
        ("1970-01-01T00:16:40+00:00", "SessionStarted", None, f"session {state.session.id}: Add export endpoint"),
        ("1970-01-01T00:16:40+00:00", "TasksAdded", None, "1 task added: DEV-001"),
        ("1970-01-01T00:17:40+00:00", "AttemptStarted", DEV, "DEV-001 started (developer, mine, attempt 1)"),
    ]


def test_work_is_completed_when_it_has_landed_and_a_review_has_its_verdict() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"))
    before = len(story.entries)
    story.now += 1
    story.does("DEV-001", done("it greets", commit="c1"))
    story.now += 1
    story.lands("DEV-001")
    story.now += 1
    story.reviews("REVIEW-001", review(8))

    assert [line.text for line in lines_since(story, before)] == [
        "DEV-001 started (developer, mine, attempt 1)",
        "DEV-001 completed: it greets",
        "REVIEW-001 started (reviewer, mine, attempt 1)",
        "REVIEW-001 completed: score 8, CONVERGED",
    ]


@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        (events.Failed(error="no luck"), Status.pending, "DEV-001 attempt 1 failed, and is tried again: no luck"),
        (events.Failed(error="no luck"), Status.failed, "DEV-001 failed: no luck"),
        (events.Limited(error="429"), Status.pending, "DEV-001 waits for its provider: 429"),
        (events.Interrupted(), Status.pending, "DEV-001 interrupted; its work is kept"),
        (events.Interrupted(problem="no disk"), Status.pending, "DEV-001 interrupted by its host: no disk"),
        (
            events.Interrupted(host_died=True),
            Status.pending,
            "DEV-001 interrupted, because its host died; its work is kept",
        ),
        (events.Unmet(), Status.pending, "DEV-001 needs packages that are not there as declared"),
    ],
)
def test_an_attempt_that_did_not_succeed_says_why(outcome: events.Outcome, status: Status, text: str) -> None:
    ended = events.AttemptEnded(
        task=DEV, number=1, agent="mine", requests=1, outcome=outcome, status=status, error="no luck"
    )

    assert texts(events.AttemptStarted(DEV, 1, "mine", "base"), ended)[1] == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (events.GateAnswered("plan", "approve"), "plan was answered: approve"),
        (events.WaveStarted(1), "wave 1/2"),
        (events.EngineStarted(7, "tip", detached=True), "the engine started in process 7, in the background"),
        (events.Paused("interrupted"), "paused: interrupted"),
        (events.Finished(), "finished: 2 pending"),
        (Accepted("main", "c" * 40), "accepted: main is at cccccccccccc"),
        (events.Archived(), "archived"),
        (events.RetryRequested(), "to be retried"),
        (events.Warned("odd\nline"), "warning: odd line"),
        (events.EnvironmentMade("pip, 3 s"), "environment: pip, 3 s"),
        (events.TaskSkipped(DEV, "lost"), "DEV-001 skipped: lost"),
        (events.TasksReset((DEV,)), "to be done again: DEV-001"),
        (
            AgentReplaced(task=DEV, agent="codex", successor="mine", error="no login", for_every_task=True),
            "DEV-001 continues with mine instead of codex: no login",
        ),
        (events.PolicyChanged(Story().state.policy), None),
    ],
)
def test_what_happens_to_a_session_has_a_line(event: events.Event, text: str | None) -> None:
    assert texts(event) == ([text] if text else [])


def test_a_question_is_told_whole_with_the_command_that_answers_it() -> None:
    (text,) = texts(events.GateOpened(plan_gate(" " + "x" * WIDTH)))

    assert text.startswith("question: Run these tasks?")
    assert text.endswith("Answer with: iterdev answer ids-add-export-endpoint-20260308 plan approve|reject")


def test_a_long_text_is_cut_and_a_long_list_counted() -> None:
    many = tuple(TaskId(f"DEV-{number:03}") for number in range(1, 21))

    (warning,) = texts(events.Warned("x" * 1000))
    story = Story(*(task(name) for name in many))
    _, lines = event_lines(None, story.entries, DEVELOPMENT)

    assert len(warning) <= WIDTH
    assert lines[-1].text.startswith("20 tasks added: DEV-001, DEV-002")
    assert lines[-1].text.endswith("and 12 more")


def test_a_fix_round_of_the_team_is_told() -> None:
    story = reviewed_badly()
    before = len(story.entries)
    story.now += 1
    story.goes_on()

    assert "fix round 1 of 3" in [line.text for line in lines_since(story, before)]
