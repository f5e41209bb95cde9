"""What every surface shows of a session."""

import msgspec
import pytest
from tests.core.conftest import Story, done, review, task

from iterdev.core.collaboration.locks import LockGranted
from iterdev.core.collaboration.messages import compose
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.types import Engine, Status, TaskId
from iterdev.core.views.progress import progress_lines
from iterdev.core.views.report import report
from iterdev.core.views.session import session_document, session_view
from iterdev.core.views.tasks import task_view
from iterdev.core.views.why import chain, stall, why
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT


def chained() -> Story:
    """Three tasks in a row, all of them waiting."""
    return Story(task("DESIGN-001"), task("DEV-001", "DESIGN-001"), task("REVIEW-001", "DEV-001"))


def line(story: Story, name: str, *, engine_alive: bool = True) -> tuple[str, str]:
    shown = session_view(story.state, DEVELOPMENT, engine_alive=engine_alive)
    (found,) = (line for line in shown.tasks if line.id == name)
    return found.mark, found.note


def test_each_task_has_a_mark_and_a_note() -> None:
    story = Story(task("DESIGN-001"), task("DEV-001"), task("DEV-002"), task("DEV-003", "DEV-001"), task("DEV-004"))
    story.happens(events.WaveStarted(1))
    story.does("DESIGN-001")
    story.fails("DEV-001", "no luck")
    story.starts("DEV-002")
    story.happens(events.TaskSkipped(TaskId("DEV-003"), "lost"))

    assert [line(story, name) for name in story.state.tasks.plan] == [
        ("[DONE]", "design/design-001.md"),
        ("[FAIL]", "no luck"),
        ("[RUN]", "working..."),
        ("[SKIP]", "lost"),
        ("[WAIT]", "ready"),
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("DESIGN-002", "design/design-002.md"),
        ("DEV-fix-1", "code/dev-log.md"),
        ("VERIFY-001", "verify/verify-001.json"),
        ("REVIEW-003", "review/review-003.md (score 9)"),
        ("GC-CHECK-001", "interactive/GC-CHECK-001-result.json"),
    ],
)
def test_a_completed_task_shows_what_it_left(name: str, file: str) -> None:
    story = Story(task(name))
    story.does(name, done(findings="", review=review(9) if name.startswith("REVIEW") else None))

    assert DEVELOPMENT.task_notes(story.state, TaskId(name)).artifact == file


def test_work_that_is_being_merged_is_still_under_way() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", done(findings="", commit="c1"))

    assert line(story, "DEV-001") == ("[RUN]", "landing...")


@pytest.mark.requirement("R123")
def test_a_task_in_progress_without_an_engine_is_listed_with_the_advice_to_resume() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    advice = f"iterdev resume {story.state.session.id}"

    mark, note = line(story, "DEV-001", engine_alive=False)

    assert mark == "[WAIT]"
    assert advice in note
    assert any(advice in text for text in why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=False))


def test_an_attempt_that_outlives_its_engine_is_shown_as_running() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.happens(events.AttemptStarted(TaskId("DEV-001"), 1, "mine", "b", where="hosts"))

    mark, note = line(story, "DEV-001", engine_alive=False)
    reasons = why(story.state, DEVELOPMENT, TaskId("VERIFY-001"), engine_alive=False)

    assert mark == "[RUN]"
    assert note == f"runs without an engine; wait for it with `iterdev resume {story.state.session.id}`"
    assert "DEV-001 is in_progress: mine" in reasons
    assert stall(story.state, engine_alive=False) == ""


def test_the_host_of_an_attempt_is_named_as_soon_as_it_has_one() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.AttemptStarted(TaskId("DEV-001"), 1, "mine", "b", where="hosts"))
    waiting = why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True)
    story.happens(events.AttemptPlaced(TaskId("DEV-001"), 1, "builder-1"))

    placed = why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True)

    assert waiting == ["DEV-001 is in_progress, attempt 1 by mine, waits for a host"]
    assert placed == ["DEV-001 is in_progress, attempt 1 by mine on builder-1"]


def test_the_status_of_a_task_names_its_host() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.AttemptStarted(TaskId("DEV-001"), 1, "mine", "b", where="hosts"))
    waiting = line(story, "DEV-001")
    story.happens(events.AttemptPlaced(TaskId("DEV-001"), 1, "builder-1"))

    assert waiting == ("[RUN]", "waits for a host that offers mine")
    assert line(story, "DEV-001") == ("[RUN]", "on builder-1: working...")
    assert task_view(story.state, DEVELOPMENT, TaskId("DEV-001")).activity == "mine is working on builder-1"


def test_the_agent_of_a_tester_is_named_when_it_was_asked_and_not_before() -> None:
    story = Story(task("VERIFY-001"), task("REVIEW-001", "VERIFY-001"))
    story.starts("VERIFY-001")
    (unasked, _) = session_view(story.state, DEVELOPMENT).tasks

    assert unasked.agent == ""
    assert why(story.state, DEVELOPMENT, TaskId("VERIFY-001"), engine_alive=True) == [
        "VERIFY-001 is in_progress, attempt 1"
    ]
    assert "VERIFY-001 is in_progress: iterdev runs the tests" in why(
        story.state, DEVELOPMENT, TaskId("REVIEW-001"), engine_alive=True
    )

    story.ends("VERIFY-001", events.Interrupted(), requests=2)
    (asked, _) = session_view(story.state, DEVELOPMENT).tasks

    assert (asked.agent, asked.requests) == ("mine", 2)


def test_a_blocked_task_names_its_blockers() -> None:
    assert line(chained(), "DEV-001") == ("[WAIT]", "blocked by DESIGN-001")


def test_a_ready_task_of_a_later_wave_waits_for_the_wave_before_it() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001"))
    story.goes_on()
    story.does("DEV-001")

    assert line(story, "VERIFY-001") == ("[WAIT]", "waiting for wave 1 to end")


def test_a_task_behind_a_question_names_the_question() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()

    assert line(story, "DEV-001") == ("[WAIT]", "waiting for an answer to plan")
    assert "gate plan: Run these tasks?" in why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True)[1]


@pytest.mark.requirement("R122")
def test_why_a_task_waits_is_told_down_to_the_first_cause() -> None:
    told = why(chained().state, DEVELOPMENT, TaskId("REVIEW-001"), engine_alive=True)

    assert told == [
        "REVIEW-001 is pending: blocked by DEV-001",
        "DEV-001 is pending: blocked by DESIGN-001",
        "DESIGN-001 is pending: ready",
    ]


@pytest.mark.requirement("R122")
def test_a_chain_names_each_blocker_once_nearest_first() -> None:
    rows = (
        task("DEV-001"),
        task("DEV-002", "DEV-001"),
        task("DEV-003", "DEV-001"),
        task("DEV-004", "DEV-002", "DEV-003"),
    )

    assert chain(Story(*rows).state, TaskId("DEV-004")) == ["DEV-002", "DEV-003", "DEV-001"]


@pytest.mark.requirement("R122")
def test_nothing_ready_nothing_running_and_something_pending_is_reported_with_the_chain() -> None:
    story = Story(task("REVIEW-001", "DEV-001"), task("DEV-001", "DESIGN-001"), task("DESIGN-001"))
    state = story.starts("DESIGN-001")
    links = "REVIEW-001 is blocked by DEV-001 (pending) <- DESIGN-001 (in_progress)"

    assert stall(state, engine_alive=False) == links
    assert (session_view(state, DEVELOPMENT, engine_alive=False).stall, session_view(state, DEVELOPMENT).stall) == (
        links,
        "",
    )


@pytest.mark.requirement("R122")
def test_a_session_that_moves_or_is_over_is_not_stalled() -> None:
    story = chained()
    moving = stall(story.state)
    story.happens(events.Finished())

    assert (moving, stall(story.state)) == ("", "")


def test_a_final_task_tells_how_it_ended() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.fails("DEV-001", "no luck")
    story.does("DEV-002")

    assert why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True) == ["DEV-001 is failed: no luck"]
    assert why(story.state, DEVELOPMENT, TaskId("DEV-002"), engine_alive=True) == ["DEV-002 is completed"]


def test_a_blocker_that_failed_is_named_with_its_error() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.fails("DEV-001", "no luck")

    assert "DEV-001 is failed: no luck" in why(story.state, DEVELOPMENT, TaskId("VERIFY-001"), engine_alive=True)


def test_what_an_agent_was_denied_is_told_once_whatever_became_of_the_attempts() -> None:
    story = Story(task("DEV-001"))
    for outcome in (events.Interrupted(), done(findings="did it")):
        story.starts("DEV-001")
        story.ends("DEV-001", outcome, denied=("Bash: rm -rf build", "WebFetch"))

    assert why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True) == [
        "DEV-001 is completed",
        "asked for, and denied: Bash: rm -rf build",
        "asked for, and denied: WebFetch",
    ]
    assert "- Asked for, and denied: Bash: rm -rf build\n" in report(story.state, DEVELOPMENT)


def test_a_task_that_waits_for_its_provider_and_a_paused_session_say_so() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))
    story.happens(events.Paused("interrupted"))

    told = why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=False)

    assert "the provider of mine is paused until 1970-01-01T08:33:20+08:00: 429" in told
    assert "the session is paused: interrupted" in told
    assert told[-1] == f"no engine is running: `iterdev resume {story.state.session.id}`"


@pytest.mark.requirement("R3")
def test_the_view_shows_requirement_pipeline_rounds_sprint_and_session() -> None:
    story = Story(pipeline=Pipeline.patch, engine=Engine.beat)
    story.goes_on()
    story.does("DEV-001", done(findings="", usage=Usage(cost_usd=0.25)))

    shown = session_view(story.state, DEVELOPMENT)

    assert (shown.requirement, shown.team.pipeline, shown.engine) == ("Add export endpoint", "patch", "beat")
    assert dict(shown.team.facts) == {"GC Rounds": "0/3", "Sprint": "sprint-1"}
    assert (shown.id, shown.branch.name) == (story.state.session.id, f"iterdev/{story.state.session.id}")
    assert (shown.counts["completed"], shown.counts["pending"]) == (1, 1)
    assert shown.usage.cost_usd == 0.25


@pytest.mark.requirement("R9")
def test_no_view_changes_the_state_that_it_shows() -> None:
    """Maps of the state are ordinary ones, which a view could change; so each view gets a state full of them."""
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 4)), task("REVIEW-001", "DEV-001"), auto=False)
    story.goes_on()
    story.starts("DEV-001", "DEV-002")
    story.happens(
        LockGranted(resource="a.py", task=TaskId("DEV-001"), role="developer", until=2000.0),
        compose("developer", kind="state_update", summary="half way", data={"files": ["a.py"]}, task=TaskId("DEV-001")),
        events.Warned("careful"),
    )
    story.fails("DEV-003")
    story.ends("DEV-001", done("built", commit="c1", changed=("a.py",)))
    before = msgspec.json.encode(story.state, enc_hook=list)

    assert list(progress_lines(None, story.state, DEVELOPMENT))
    assert report(story.state, DEVELOPMENT)
    for alive in (True, False):
        assert session_document(session_view(story.state, DEVELOPMENT, engine_alive=alive))
        assert all(why(story.state, DEVELOPMENT, name, engine_alive=alive) for name in story.state.tasks.plan)

    assert msgspec.json.encode(story.state, enc_hook=list) == before


def test_a_running_task_shows_what_its_agent_said_last() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    story.happens(compose("developer", summary="half way", task=TaskId("DEV-001")))

    assert line(story, "DEV-001") == ("[RUN]", "[developer] half way")
    assert why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=True) == [
        "DEV-001 is in_progress, attempt 1 by mine",
        "its agent last said: [developer] half way",
    ]


def test_a_pending_task_of_a_session_that_is_over_waits_for_nothing() -> None:
    story = Story(task("DEV-001"))
    story.happens(events.Finished(events.Finished.WHY_REJECTED))

    assert why(story.state, DEVELOPMENT, TaskId("DEV-001"), engine_alive=False) == [
        f"DEV-001 is pending, and stays so: {events.Finished.WHY_REJECTED}"
    ]


def test_a_blocker_whose_engine_was_killed_is_not_called_at_work() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.starts("DEV-001")

    assert "DEV-001 is in_progress: interrupted" in why(
        story.state, DEVELOPMENT, TaskId("VERIFY-001"), engine_alive=False
    )


def test_the_document_has_the_keys_that_programs_rely_on() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()

    document = session_document(session_view(story.state, DEVELOPMENT, engine_alive=False))

    assert document.keys() == {
        *("session", "requirement", "pipeline", "engine", "phase", "why", "gates", "counts", "round", "rounds"),
        *("sprint", "sprints", "goals", "branch", "tip", "folder", "usage", "spending", "pauses", "warnings"),
        "environments",
        *("stall", "accepted", "feedback", "debt", "tasks", "running", "succeeded", "reasons"),
        *("process", "detached", "needs", "seq"),
    }
    assert {"id", "question", "details", "choices", "kind", "about", "opened_at", "default"} == document["gates"][
        0
    ].keys()
    assert document["tasks"][0].keys() == {
        *("id", "role", "title", "wave", "deps", "status", "mark", "note", "agent", "score", "pass_rate"),
        *("requests", "started_at", "ended_at", "cost_usd", "tokens", "sprint", "round"),
    }
    assert (document["sprint"], document["running"]) == ("sprint-1", False)


def test_a_view_with_little_room_says_what_it_leaves_out() -> None:
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 6)))
    story.starts("DEV-003")

    shown = session_view(story.state, DEVELOPMENT, room=2)

    assert [one.id for one in shown.tasks] == ["DEV-001", "DEV-003"]
    assert shown.omitted == {Status.pending: 3}
    assert session_view(story.state, DEVELOPMENT).omitted == {}


@pytest.mark.parametrize(("score", "revision"), [(9, False), (3, True)])
def test_a_verdict_that_asks_for_a_fix_round_is_told_apart(score: float, *, revision: bool) -> None:
    story = Story(task("REVIEW-001"))
    story.reviews("REVIEW-001", review(score))

    (shown,) = session_view(story.state, DEVELOPMENT).tasks

    assert shown.result.notes.unfavourable is revision


def test_a_session_has_succeeded_only_when_every_task_is_completed() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.does("DEV-001")
    story.fails("DEV-002")
    story.happens(events.Finished())
    failed = session_view(story.state, DEVELOPMENT).outcome
    story = Story(task("DEV-001"))
    story.does("DEV-001")
    unfinished = session_view(story.state, DEVELOPMENT).outcome
    story.happens(events.Finished())

    assert not failed.succeeded
    assert not unfinished.succeeded
    assert session_view(story.state, DEVELOPMENT).outcome.succeeded


def test_a_rejected_plan_ends_early_and_is_no_success() -> None:
    story = Story()
    story.happens(events.Finished(events.Finished.WHY_REJECTED))

    outcome = session_view(story.state, DEVELOPMENT).outcome

    assert (outcome.ended_early, outcome.succeeded) == (True, False)
