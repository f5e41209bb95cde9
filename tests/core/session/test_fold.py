"""From the journal to the state."""

from copy import deepcopy

import pytest
from tests.core.conftest import Outcome, Story, a_design, done, measured, review, session, task

from iterdev.core.policy import Policy
from iterdev.core.results import LearnedTexts, Usage
from iterdev.core.rules.decide import decide
from iterdev.core.rules.schedule import Start
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.session.fold import evolve, replay
from iterdev.core.types import Ending, Engine, Phase, Status, TaskId
from iterdev.core.verification import SuiteReport
from iterdev.teams.development import events as team_events
from iterdev.teams.development.requirement_analysis import analyse
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.state import development
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")


def test_a_journal_that_does_not_begin_with_a_session_is_refused() -> None:
    with pytest.raises(TypeError, match="begins with SessionStarted, not Warned"):
        replay([events.Entry(1, 0.0, events.Warned("x"))], DEVELOPMENT)


def test_no_news_leave_the_state_as_it_is() -> None:
    story = Story(task("DEV-001"))

    assert evolve(story.state, [], DEVELOPMENT) == story.state


def test_a_new_session_stands_on_its_base() -> None:
    started = events.SessionStarted(session(), Policy(concurrency=2))
    chosen = team_events.TeamStarted(analysis=analyse("Add export endpoint"), pipeline=Pipeline.patch)
    state = replay([events.Entry(1, 5.0, started), events.Entry(2, 6.0, chosen)], DEVELOPMENT)

    assert state
    assert (state.branch.tip, development(state).pipeline, state.lifecycle.phase) == (
        "base0000",
        Pipeline.patch,
        Phase.active,
    )
    assert (state.seq, state.created_at, state.updated_at) == (2, 5.0, 6.0)


def test_folding_never_changes_the_state_it_started_from() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    before = story.state
    kept = deepcopy(before)
    story.does("DEV-001", done("f", commit="c1", wisdom=LearnedTexts(issues=("i",)), notes=("n",)))
    story.lands(DEV, "tip1")
    story.happens(events.Warned("w"))

    assert before == kept


def test_rows_may_come_before_the_rows_they_depend_on() -> None:
    story = Story(task("VERIFY-001", "DEV-001"), task("DEV-001"))

    assert list(story.state.tasks.ready) == ["DEV-001"]
    assert [row.id for row, _ in story.state.tasks.rows()] == ["VERIFY-001", "DEV-001"]


def test_an_attempt_is_open_from_its_start_to_its_end() -> None:
    story = Story(task("DEV-001"))
    started = story.starts("DEV-001")
    ended = story.ends("DEV-001", done("all good"))

    assert started.tasks.status(DEV) is Status.in_progress
    assert (list(started.attempts.running), list(started.tasks.ready)) == (["DEV-001"], [])
    assert ended.tasks.status(DEV) is Status.completed
    assert ended.tasks.progress[DEV].findings == "all good"
    assert not ended.attempts.running


def test_work_with_a_commit_is_completed_only_when_it_has_landed() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    ended = story.does("DEV-001", done("", commit="c1", changed=("a.py",)))
    landed = story.lands(DEV, "tip1")

    assert ended.tasks.status(DEV) is Status.landing
    assert "VERIFY-001" not in ended.tasks.ready
    assert landed.tasks.status(DEV) is Status.completed
    assert landed.tasks.progress[DEV].changed == ("a.py",)
    assert landed.branch.tip == "tip1"
    assert "VERIFY-001" in landed.tasks.ready


def test_work_of_a_tester_that_does_not_merge_has_failed_and_is_kept() -> None:
    story = Story(task("VERIFY-001"))
    story.does("VERIFY-001", done("", commit="c1"))
    state = story.is_refused(TaskId("VERIFY-001"), "a.py", "b.py")

    progress = state.tasks.progress[TaskId("VERIFY-001")]
    assert progress.status is Status.failed
    assert "a.py, b.py" in progress.error
    assert "c1" in progress.error


@pytest.mark.requirement("R119")
def test_an_interrupted_attempt_leaves_its_task_pending_and_ready() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.starts("DEV-001", "DEV-002")
    for name in ("DEV-001", "DEV-002"):
        story.ends(name, events.Interrupted(commit="kept"))
    state = story.happens(events.EngineStarted(7, "base0000"))

    assert [progress.status for _, progress in state.tasks.rows()] == [Status.pending, Status.pending]
    assert story.goes_on() == ["DEV-001", "DEV-002"]


@pytest.mark.requirement("R119")
def test_an_interruption_keeps_the_count_of_requests_and_the_unfinished_work() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Interrupted(commit="half"))
    (start,) = story.goes_on()

    assert start == "DEV-001"
    assert story.state.tasks.progress[DEV].requests == 1
    assert story.state.tasks.progress[DEV].unmerged_commits == ("half",)


@pytest.mark.parametrize(("requests", "following"), [(0, 2), (1, 2), (3, 4)])
def test_an_attempt_takes_a_number_for_every_request_and_one_if_nobody_was_asked(requests: int, following: int) -> None:
    story = Story(task("VERIFY-001"))
    story.starts("VERIFY-001")
    story.ends("VERIFY-001", events.Interrupted(), requests)
    story.happens(events.WaveStarted(1))

    assert story.state.tasks.progress[TaskId("VERIFY-001")].requests == requests
    assert [start.number for start in story.decides() if isinstance(start, Start)] == [following]


def test_a_task_that_is_reset_goes_on_counting_its_attempts() -> None:
    story = Story(task("DEV-001"))
    story.fails("DEV-001")
    story.happens(events.TasksReset((DEV,)), events.WaveStarted(1))

    assert [start.number for start in story.decides() if isinstance(start, Start)] == [2]


def test_a_limited_attempt_waits_for_its_provider_and_does_not_fail() -> None:
    story = Story(task("DEV-001"))
    state = story.does("DEV-001", events.Limited(error="429", reset_at=2000))

    assert state.tasks.progress[DEV].status is Status.pending
    assert state.providers.pauses["mine"].until == 2000


def test_a_failed_attempt_tells_its_error_and_what_it_cost() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Interrupted())
    state = story.does("DEV-001", events.Failed(error="no luck", usage=Usage(cost_usd=0.5)))

    assert (state.tasks.progress[DEV].status, state.tasks.progress[DEV].error) == (Status.failed, "no luck")
    assert state.spending.total.cost_usd == 0.5


def test_what_roles_hand_in_is_kept_with_their_task() -> None:
    rows = task("DESIGN-001"), task("VERIFY-001"), task("REVIEW-001")
    story = Story(*rows)
    story.does("DESIGN-001", done("", design=a_design()))
    report = SuiteReport(command="t", exit_code=0, counted=False)
    story.does("VERIFY-001", done("", verification=measured(0.97), iterations=2, baseline=(report,)))
    state = story.does("REVIEW-001", done("", review=review(8)))

    assert development(state).designs == {"DESIGN-001": a_design()}
    run = development(state).test_runs[TaskId("VERIFY-001")]
    assert (run.verification, run.iterations, run.failed) == (measured(0.97), 2, False)
    assert run.commit == state.branch.tip
    assert development(state).baseline == (report,)
    assert development(state).reviews == {"REVIEW-001": review(8)}


@pytest.mark.requirement("R79")
def test_a_review_puts_its_score_and_signal_into_its_row() -> None:
    story = Story(task("REVIEW-001"), task("REVIEW-002"))
    story.reviews("REVIEW-001", review(6.5))
    state = story.reviews("REVIEW-002", review(9))

    marks = [(verdict.score, verdict.signal) for verdict in development(state).verdicts.values()]

    assert marks == [(6.5, "REVISION_NEEDED"), (9.0, "CONVERGED")]


def test_wisdom_goes_into_its_four_files_in_order() -> None:
    story = Story(task("DEV-001"))
    wisdom = LearnedTexts(learnings=("a", "b"), decisions=("c",), conventions=("d",), issues=("e",))
    state = story.does("DEV-001", done("", wisdom=wisdom))

    assert [(note.file, note.text, note.task) for note in state.wisdom.notes] == [
        ("learnings", "a", "DEV-001"),
        ("learnings", "b", "DEV-001"),
        ("decisions", "c", "DEV-001"),
        ("conventions", "d", "DEV-001"),
        ("issues", "e", "DEV-001"),
    ]


def test_the_costs_of_all_attempts_add_up() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.does("DEV-001", done("", usage=Usage(input_tokens=1, cost_usd=0.5)))
    state = story.does("DEV-002", events.Failed(error="x", usage=Usage(output_tokens=2, cost_usd=0.25)))

    assert state.spending.total == Usage(input_tokens=1, output_tokens=2, cost_usd=0.75)


@pytest.mark.requirement("R49")
@pytest.mark.parametrize("loses", [events.TaskFailed, events.TaskSkipped])
def test_the_dependants_of_a_lost_task_can_never_become_ready(
    loses: type[events.TaskFailed | events.TaskSkipped],
) -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001", "DEV-002"))
    story.happens(loses(DEV, "gone"))
    state = story.does("DEV-002")

    assert list(state.tasks.blocked_by_failure) == ["VERIFY-001"]
    assert not state.tasks.ready


def test_tasks_that_are_to_be_run_again_start_afresh_and_wake_their_dependants() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"), engine=Engine.beat)
    story.fails("DEV-001")
    story.goes_on()
    story.happens(events.TasksReset((DEV, TaskId("VERIFY-001"))), events.EngineStarted(2, "base0000"))

    assert [progress.status for _, progress in story.state.tasks.rows()] == [Status.pending, Status.pending]
    assert story.state.tasks.progress[DEV].error == ""
    assert story.goes_on() == ["DEV-001"]
    assert [command.number for command in story.decides()] == [2]


def test_a_review_that_is_run_again_is_judged_again() -> None:
    story = Story(task("REVIEW-001"), engine=Engine.beat)
    story.goes_on()
    story.reviews("REVIEW-001", review(9))
    story.goes_on()
    story.happens(events.TableEdited((events.RowEdit(task=story.row("REVIEW-001"), status=Status.pending),)))
    story.happens(events.EngineStarted(2, "base0000"))
    story.goes_on()
    story.reviews("REVIEW-001", review(5))

    assert story.goes_on() == ["DEV-fix-1"]


def test_a_person_s_edit_of_the_table_wins() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    edit = events.RowEdit(task=story.row("DEV-001"), status=Status.completed, findings="by hand", error="")
    state = story.edits(edit, review_score="8.0")

    assert state.tasks.progress[DEV].status is Status.completed
    assert state.tasks.progress[DEV].findings == "by hand"
    assert development(state).verdicts[DEV].score == 8.0
    assert list(state.tasks.ready) == ["VERIFY-001"]


def test_an_edit_may_add_rows_and_change_dependencies_and_the_waves_follow() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    rows = task("DEV-002", "DEV-001"), task("VERIFY-001", "DEV-002")
    state = story.happens(events.TableEdited(tuple(events.RowEdit(task=row, status=Status.pending) for row in rows)))

    assert {row.id: row.wave for row in state.tasks.plan.values()} == {"DEV-001": 1, "DEV-002": 2, "VERIFY-001": 3}


def test_an_edit_does_not_end_an_attempt_that_is_under_way() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    state = story.happens(events.TableEdited((events.RowEdit(task=story.row("DEV-001"), status=Status.pending),)))

    assert state.tasks.progress[DEV].status is Status.in_progress
    assert list(state.attempts.running) == ["DEV-001"]


@pytest.mark.parametrize("outcome", [events.Interrupted(), events.Limited(error="429", reset_at=1000.5)])
def test_an_attempt_that_ends_without_a_result_waits_for_dependencies_that_an_edit_added(
    outcome: Outcome,
) -> None:
    story = Story(task("DEV-001"), task("DEV-002"), engine=Engine.beat)
    story.starts("DEV-001")
    story.happens(events.TableEdited((events.RowEdit(task=task("DEV-001", "DEV-002"), status=Status.pending),)))
    story.ends("DEV-001", outcome)
    story.now += 1

    assert story.goes_on() == ["DEV-002"]


def test_a_row_that_an_edit_puts_behind_a_failed_one_can_never_become_ready() -> None:
    story = Story(task("DEV-001"))
    story.fails("DEV-001")
    state = story.happens(events.TableEdited((events.RowEdit(task=task("DEV-002", "DEV-001"), status=Status.pending),)))

    assert list(state.tasks.blocked_by_failure) == ["DEV-002"]


def test_a_task_that_has_ended_does_not_end_again() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.does("DEV-001")
    state = story.happens(events.TaskSkipped(DEV, "too late"))

    assert (state.tasks.progress[DEV].status, state.tasks.progress[DEV].error) == (Status.completed, "")
    assert list(state.tasks.ready) == ["VERIFY-001"]


def test_a_gate_is_open_until_it_is_answered() -> None:
    story = Story()
    gate = events.Gate(kind="plan", question="?", choices=("yes", "no"))
    opened = story.happens(events.GateOpened(gate))
    answered = story.happens(events.GateAnswered("plan", "no"))
    asked_again = story.happens(events.GateOpened(gate))

    assert (opened.gates.open, opened.gates.answers) == ({"plan": gate}, {})
    assert (answered.gates.open, answered.gates.answers) == ({}, {"plan": events.Answer(gate, "no")})
    assert answered.gates.answer("plan") == "no"
    assert (asked_again.gates.open, asked_again.gates.answers) == ({"plan": gate}, {})


def test_an_answer_that_was_carried_out_is_cleared() -> None:
    story = Story()
    story.happens(events.GateOpened(events.Gate(kind="plan", question="?", choices=("yes", "no"))))
    story.happens(events.GateAnswered("plan", "no"), events.AnswerApplied("plan"))

    assert story.state.gates.answer("plan") is None


def test_an_answer_to_a_question_that_is_not_open_counts_for_nothing() -> None:
    story = Story()
    state = story.happens(events.GateAnswered("plan", "no"))

    assert state.gates.answer("plan") is None


@pytest.mark.parametrize(
    ("event", "phase", "why"),
    [
        (events.Paused("interrupted"), Phase.paused, "interrupted"),
        (events.Finished(), Phase.completed, ""),
        (events.Finished(events.Finished.WHY_REJECTED), Phase.completed, "the plan was rejected"),
    ],
)
def test_a_session_says_how_it_stands_until_an_engine_takes_it_up(event: events.Event, phase: Phase, why: str) -> None:
    story = Story(task("DEV-001"))
    ended = story.happens(event)
    resumed = story.happens(events.EngineStarted(1, "moved"))

    assert (ended.lifecycle.phase, ended.lifecycle.why) == (phase, why)
    assert decide(ended, DEVELOPMENT, story.now) == ()
    assert (resumed.lifecycle.phase, resumed.lifecycle.why, resumed.branch.tip) == (Phase.active, "", "moved")


def test_rules_warnings_and_acceptance_are_remembered() -> None:
    story = Story()
    state = story.happens(events.PolicyChanged(Policy(concurrency=9)), events.Warned("careful"), Accepted("main", "c9"))

    assert state.policy.concurrency == 9
    assert state.warnings == ("careful",)
    assert state.lifecycle.accepted == "c9"


def test_what_was_accepted_is_no_longer_all_of_it_when_more_lands() -> None:
    story = Story(task("DEV-001"))
    story.happens(Accepted("main", "merged"))
    accepted = story.state.lifecycle.accepted
    story.does("DEV-001", done("", commit="c1"))
    story.lands(TaskId("DEV-001"), "c1")

    assert (accepted, story.state.lifecycle.accepted) == ("merged", "")


def test_an_answered_question_is_no_longer_what_the_session_waits_for() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()
    waiting = story.happens(events.Paused(Ending.waiting))
    answered = story.happens(events.GateAnswered("plan", "approve"))

    assert (waiting.why, answered.why) == ("waiting for an answer: plan", "")


def test_a_session_waits_for_the_questions_that_are_still_open() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()
    further = events.Gate(kind="budget", question="More?", choices=("stop", "go-on"))
    waiting = story.happens(events.GateOpened(further), events.Paused(Ending.waiting))
    answered = story.happens(events.GateAnswered("plan", "approve"))

    assert (waiting.why, answered.why) == ("waiting for an answer: plan, budget", "waiting for an answer: budget")


def test_an_answer_does_not_change_any_other_reason_for_a_pause() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()
    state = story.happens(events.Paused("interrupted"), events.GateAnswered("plan", "approve"))

    assert state.why == "interrupted"


def left_out(name: str, *deps: str) -> events.RowEdit:
    return events.RowEdit(task=task(name, *deps), status=Status.skipped, left_out=True)


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("engine", Engine)
def test_what_depends_on_a_task_that_a_person_left_out_goes_on_without_it(engine: Engine) -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), task("DEV-003", "DEV-002"), engine=engine)
    story.does("DEV-001")

    story.edits(left_out("DEV-002", "DEV-001"))

    assert story.goes_on() == ["DEV-003"]
    assert (story.status("DEV-002"), story.state.tasks.blocked_by_failure) == ("skipped", {})


def test_a_task_that_was_left_out_stays_so_until_its_status_is_changed() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.edits(left_out("DEV-001"))
    story.edits(events.RowEdit(task=task("DEV-001"), status=Status.skipped, error="not needed"))
    kept = story.state.tasks.progress[DEV].left_out
    story.edits(events.RowEdit(task=task("DEV-001"), status=Status.pending))

    assert kept
    assert not story.state.tasks.progress[DEV].left_out
    assert list(story.state.tasks.ready) == [DEV]


def test_what_depends_on_a_skipped_task_that_nobody_left_out_is_skipped_too() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), task("DEV-003", "DEV-002"))
    story.fails("DEV-001", "no luck")
    story.goes_on()

    assert [story.status(name) for name in ("DEV-002", "DEV-003")] == ["skipped", "skipped"]
