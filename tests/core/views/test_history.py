"""All attempts of a session, and what happened beside them."""

from tests.core.conftest import Story, done, reviewed_badly, task

from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import TaskId
from iterdev.core.views.history import AttemptOutcome, History, Span, SpanKind, Spent, evolve, spending
from iterdev.teams.development.team import DEVELOPMENT


def history_of(story: Story) -> History:
    return evolve(History(), story.entries, DEVELOPMENT)


def spans(story: Story, kind: SpanKind) -> list[Span]:
    return [span for span in history_of(story).spans if span.kind is kind]


def test_every_attempt_is_known_with_its_times_agent_outcome_and_cost() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001", agent="codex")
    story.now += 30
    story.ends("DEV-001", events.Limited(error="429", usage=Usage(input_tokens=5)), denied=("network",))
    story.now += 60
    story.starts("DEV-001")
    story.now += 10
    story.ends("DEV-001", done(commit="c1", usage=Usage(input_tokens=7)), requests=2)
    story.now += 1
    story.lands("DEV-001")

    first, second = history_of(story).of_task(TaskId("DEV-001"))

    assert (first.agent, first.number, first.started_at, first.ended_at) == ("codex", 1, 1000, 1030)
    assert (first.outcome, first.error, first.denied) == (AttemptOutcome.limited, "429", ("network",))
    assert (second.agent, second.requests, second.commit) == ("mine", 2, "c1")
    assert (second.outcome, second.ended_at, second.landed_at) == (AttemptOutcome.done, 1100, 1101)
    assert second.number > first.number


def test_an_attempt_that_has_not_ended_is_running() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")

    (attempt,) = history_of(story).attempts

    assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.running, None)


def test_what_a_rollback_undid_is_still_known() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    for name in ("DEV-001", "DEV-002"):
        story.does(name, done(commit=f"c of {name}"))
        story.lands(name)
    story.now += 100
    story.rolls_back("DEV-002")
    story.does("DEV-002")

    kept, undone, again = history_of(story).attempts

    assert (kept.undone_at, undone.undone_at, again.undone_at) == (None, 1100, None)
    assert [(span.name, span.begun_at) for span in spans(story, SpanKind.rollback)] == [("DEV-002", 1100)]


def test_a_task_that_is_reported_ends_the_attempt_at_it() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    story.now += 5
    story.happens(events.TaskReported(task=TaskId("DEV-001"), findings="done elsewhere"))

    (attempt,) = history_of(story).attempts

    assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.reported, 1005)


def test_engines_waves_questions_and_pauses_have_a_beginning_and_an_end() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.EngineStarted(7, "tip"), events.GateOpened(plan_gate()))
    story.now += 10
    story.happens(events.GateAnswered("plan", "approve"), events.WaveStarted(1))
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))
    story.now += 10
    # The first engine was killed.
    story.happens(events.EngineStarted(8, "tip"), events.WaveMerged(1))
    story.now += 10
    story.happens(events.Paused("interrupted"))

    assert [(span.kind, span.name, span.begun_at, span.ended_at, span.text) for span in history_of(story).spans] == [
        (SpanKind.engine, "7", 1000, 1020, ""),
        (SpanKind.question, "plan", 1000, 1010, "approve"),
        (SpanKind.wave, "1", 1010, 1020, ""),
        (SpanKind.pause, "mine", 1010, 2000, "429"),
        (SpanKind.engine, "8", 1020, 1030, "interrupted"),
    ]


def test_a_fix_round_is_a_milestone() -> None:
    story = reviewed_badly()
    story.goes_on()

    assert [span.name for span in spans(story, SpanKind.milestone)] == ["fix round 1"]


def test_a_history_goes_on_from_any_entry() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.happens(
        events.EngineStarted(7, "tip"), events.GateOpened(plan_gate()), events.GateAnswered("plan", "approve")
    )
    story.starts("DEV-001", "DEV-002")
    story.ends("DEV-001", done())
    story.happens(events.Paused("interrupted"))
    whole = history_of(story)

    for place in range(len(story.entries)):
        begun = evolve(History(), story.entries[:place], DEVELOPMENT)
        assert evolve(begun, story.entries[place:], DEVELOPMENT) == whole


def test_spending_adds_up_in_the_order_in_which_attempts_ended() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    story.starts("DEV-001", "DEV-002", "DEV-003")
    for name, tokens in (("DEV-002", 10), ("DEV-003", 0), ("DEV-001", 5)):
        story.now += 1
        story.ends(name, done(usage=Usage(output_tokens=tokens)))

    assert spending(history_of(story)) == (
        Spent(1001, Usage(output_tokens=10)),
        Spent(1003, Usage(output_tokens=15)),
    )
