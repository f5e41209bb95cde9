"""The Generator-Critic loop: scores, verdicts, rounds."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conftest import Story, done, measured, review, task

from iterdev.core.session import events
from iterdev.core.types import Engine, Mode, Severity, TaskId
from iterdev.core.verification import Measurement, Verification
from iterdev.teams.development import critic
from iterdev.teams.development import events as team_events
from iterdev.teams.development.documents import documents
from iterdev.teams.development.results import Review, Scores
from iterdev.teams.development.roles import Pipeline, Role, Signal, fields
from iterdev.teams.development.team import DEVELOPMENT

ENGINES = pytest.mark.parametrize("engine", Engine)


def scored(*values: float, issues: tuple[str, ...] = ()) -> Review:
    names = ("correctness", "completeness", "maintainability", "security")
    found = review(9, *issues).issues
    return Review(id="R", status="completed", scores=Scores(**dict(zip(names, values, strict=True))), issues=found)


def scored_now(verdict: Review) -> team_events.ReviewScored:
    """What is recorded about a review with the default thresholds."""
    return critic.scored(TaskId("REVIEW-001"), verdict, team_events.Thresholds())


def sprint(engine: Engine = Engine.wave, *, pipeline: Pipeline = Pipeline.sprint, rounds: int = 3) -> Story:
    """A session whose work is done and is about to be verified and reviewed."""
    story = Story(engine=engine, pipeline=pipeline, rounds=rounds)
    while (started := story.goes_on()) != ["VERIFY-001", "REVIEW-001"]:
        for name in started:
            story.does(name)
    return story


def judged(story: Story, verdict: Review, rate: float | None = 1.0) -> Story:
    """Every open review and verification ends with these results, and everything that follows is recorded."""
    for name in [row.id for row, progress in story.state.tasks.rows() if progress.status == "pending"]:
        if story.row(name).role is Role.reviewer:
            story.reviews(name, verdict)
        elif story.row(name).role is Role.tester:
            story.verifies(name, rate)
    story.goes_on()
    return story


def rounds_until_the_end(story: Story, verdict: Review, rate: float | None = 1.0) -> Story:
    while not story.state.lifecycle.is_over:
        started = story.goes_on()
        assert started or story.state.lifecycle.is_over, "nothing to do, and not over"
        for name in started:
            role = story.row(name).role
            if role is Role.reviewer:
                story.reviews(name, verdict)
            elif role is Role.tester:
                story.verifies(name, rate)
            else:
                story.does(name, done(f"findings of {name}", commit=f"of {name}", changed=("app.py",)))
    return story


@pytest.mark.requirement("R68", "R163")
@pytest.mark.parametrize(
    ("scores", "score", "issues", "signal"),
    [
        ((8, 9, 7, 6), 7.6, (), Signal.converged),
        ((8, 9, 7, 6), 7.6, ("critical",), Signal.revision_needed),
        ((7, 7, 7, 6), 6.8, (), Signal.revision_needed),
        ((7, 7, 7, 7), 7.0, (), Signal.converged),
        ((6.99, 6.99, 6.99, 6.99), 6.9, (), Signal.revision_needed),
        ((10, 10, 10, 10), 10.0, ("high", "high", "medium"), Signal.converged),
        ((1, 1, 1, 1), 1.0, (), Signal.revision_needed),
    ],
)
def test_the_worked_examples_of_the_specification(
    scores: tuple[float, ...], score: float, issues: tuple[str, ...], signal: Signal
) -> None:
    verdict = scored(*scores, issues=issues)

    assert critic.score(verdict.scores) == score
    assert scored_now(verdict).signal is signal


@pytest.mark.requirement("R163")
@pytest.mark.parametrize(
    ("dimension", "score"),
    [("correctness", 3.7), ("completeness", 3.2), ("maintainability", 3.2), ("security", 2.8)],
)
def test_the_dimensions_weigh_30_25_25_and_20_per_cent(dimension: str, score: float) -> None:
    scores = dict.fromkeys(critic.WEIGHTS, 1.0) | {dimension: 10.0}

    assert critic.score(Scores(**scores)) == score


@pytest.mark.requirement("R79", "R163")
@given(*[st.floats(1, 10)] * 4)
@settings(derandomize=True)
def test_a_score_lies_between_the_lowest_and_the_highest_dimension(a: float, b: float, c: float, d: float) -> None:
    score = critic.score(scored(a, b, c, d).scores)

    assert min(a, b, c, d) - 0.1 < score <= max(a, b, c, d) + 1e-6
    assert 1 <= score <= 10


@pytest.mark.requirement("R68")
@given(st.floats(1, 10), st.lists(st.sampled_from(("CRITICAL", "high", "medium", "low")), max_size=4))
@settings(derandomize=True)
def test_a_review_asks_for_a_round_exactly_when_critical_or_below_7(score: float, severities: list[str]) -> None:
    verdict = review(score, *severities)
    expected = "CRITICAL" in severities or critic.score(verdict.scores) < 7

    assert (scored_now(verdict).signal is Signal.revision_needed) is expected


@pytest.mark.requirement("R78")
@pytest.mark.parametrize(
    ("verdict", "grade"),
    [
        (review(9, "critical"), Severity.high),
        (review(6), Severity.high),
        (review(9, "high"), Severity.medium),
        (review(7, "low", "medium"), Severity.medium),
        (review(7, "low"), Severity.low),
        (review(9), Severity.low),
    ],
)
def test_the_grade_of_a_verdict_is_high_only_when_a_round_is_needed(verdict: Review, grade: Severity) -> None:
    assert scored_now(verdict).grade is grade


@pytest.mark.requirement("R78")
@ENGINES
@pytest.mark.parametrize(("severity", "warned"), [("high", True), ("medium", True), ("low", False)])
def test_notable_findings_are_warned_about_and_start_no_round(engine: Engine, severity: str, warned: bool) -> None:  # noqa: FBT001
    story = judged(sprint(engine), review(8, severity))

    assert story.state.lifecycle.is_over
    assert not story.seen(team_events.RoundStarted)
    assert any("REVIEW-001 passed with findings" in text for text in story.state.warnings) is warned


@pytest.mark.requirement("R69", "R70")
@ENGINES
@pytest.mark.parametrize("pipeline", [Pipeline.sprint, Pipeline.multi_sprint])
def test_a_bad_review_creates_one_fix_and_one_further_review(engine: Engine, pipeline: Pipeline) -> None:
    story = judged(sprint(engine, pipeline=pipeline), review(6))
    (added,) = [event for event in story.seen(events.TasksAdded)[1:] if isinstance(event, events.TasksAdded)]
    decider = "GC-CHECK-001" if engine is Engine.wave and pipeline is Pipeline.multi_sprint else "REVIEW-001"

    fix, again, *_ = added.tasks

    assert (fix.id, fix.deps, fix.context_from) == ("DEV-fix-1", (decider,), ("REVIEW-001",))
    assert (again.id, again.deps) == ("REVIEW-002", ("DEV-fix-1",))
    assert [row.role for row in added.tasks].count(Role.developer) == 1
    assert [row.role for row in added.tasks].count(Role.reviewer) == 1


@pytest.mark.requirement("R69")
@ENGINES
def test_a_patch_never_has_a_round_even_with_a_review(engine: Engine) -> None:
    rows = task("DEV-001", pipeline=Pipeline.patch), task("REVIEW-001", "DEV-001", pipeline=Pipeline.patch)
    story = rounds_until_the_end(Story(*rows, engine=engine), review(2, "critical"))

    assert not story.seen(team_events.RoundStarted, team_events.ConvergenceForced)
    assert len(story.state.tasks.plan) == 2


@pytest.mark.requirement("R71")
def test_fix_and_review_go_to_the_next_wave_and_the_one_after() -> None:
    story = judged(sprint(), review(6), rate=0.5)

    rows = {
        row.id: (row.wave, fields(row).round, fields(row).sprint)
        for row in story.state.tasks.plan.values()
        if fields(row).round
    }

    assert rows == {"DEV-fix-1": (4, 1, 1), "REVIEW-002": (5, 1, 1), "VERIFY-002": (5, 1, 1)}


@pytest.mark.requirement("R71", "R72")
def test_a_controller_has_its_fix_review_and_next_controller_in_the_three_waves_after_it() -> None:
    story = judged(sprint(pipeline=Pipeline.multi_sprint), review(6))

    rows = {row.id: row.wave for row in story.state.tasks.plan.values() if row.wave >= 5}

    assert rows == {"GC-CHECK-001": 5, "DEV-fix-1": 6, "REVIEW-002": 7, "GC-CHECK-002": 8}


@pytest.mark.requirement("R63", "R72", "R73", "R37")
@ENGINES
@pytest.mark.parametrize("pipeline", [Pipeline.sprint, Pipeline.multi_sprint])
def test_a_review_that_never_passes_has_three_fixes_and_four_reviews(engine: Engine, pipeline: Pipeline) -> None:
    story = rounds_until_the_end(sprint(engine, pipeline=pipeline), review(6, "high"))
    names = list(story.state.tasks.plan)

    assert [name for name in names if "fix" in name] == ["DEV-fix-1", "DEV-fix-2", "DEV-fix-3"]
    assert [name for name in names if "REVIEW" in name] == [f"REVIEW-00{number}" for number in range(1, 5)]
    assert all(story.status(name) == "completed" for name in names)
    assert story.team.rounds == {1: 3}


@pytest.mark.requirement("R73")
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_the_number_of_rounds_is_a_setting(rounds: int) -> None:
    story = rounds_until_the_end(sprint(rounds=rounds), review(6))

    assert len(story.seen(team_events.RoundStarted)) == rounds
    assert len(story.seen(team_events.ConvergenceForced)) == 1


@pytest.mark.requirement("R73")
@ENGINES
def test_each_sprint_counts_its_own_rounds(engine: Engine) -> None:
    rows = task("REVIEW-001"), task("DEV-002", "REVIEW-001", sprint=2), task("REVIEW-002", "DEV-002", sprint=2)
    story = rounds_until_the_end(Story(*rows, engine=engine, rounds=1), review(6))

    started = [(event.sprint, event.number) for event in story.seen(team_events.RoundStarted)]

    assert sorted(started) == [(1, 1), (2, 1)]
    assert sorted(event.sprint for event in story.seen(team_events.ConvergenceForced)) == [1, 2]


@pytest.mark.requirement("R73")
@ENGINES
def test_bad_reviews_of_two_sprints_that_end_together_raise_a_round_each(engine: Engine) -> None:
    story = Story(task("REVIEW-001"), task("REVIEW-002", sprint=2), engine=engine)
    story.goes_on()
    story.starts("REVIEW-001", "REVIEW-002")
    for name in ("REVIEW-001", "REVIEW-002"):
        story.ends(name, done("", review=review(6)))
    story.goes_on()

    fixes = {
        fields(row).sprint: row.context_from for row in story.state.tasks.plan.values() if row.role is Role.developer
    }

    assert fixes == {1: ("REVIEW-001",), 2: ("REVIEW-002",)}


@pytest.mark.requirement("R74", "R75")
@ENGINES
def test_forced_convergence_notes_the_open_problems_and_goes_on(engine: Engine) -> None:
    story = rounds_until_the_end(sprint(engine, rounds=1), review(6, "critical", "medium", "high"))
    problems = ["critical: app.py:1 critical problem", "high: app.py:3 high problem"]

    noted = [note.text for note in story.state.wisdom.notes if note.file == "issues"]

    assert noted == problems
    assert story.state.lifecycle.is_over
    assert story.team.forced == (1,)
    warning = story.state.warnings[0]
    assert warning == f"convergence of sprint-1 was forced after 1 fix round; still open: {'; '.join(problems)}"
    assert len([message for message in story.state.messages.sent if "convergence" in message.summary]) == 1


def test_the_warning_of_a_forced_convergence_names_some_problems_and_all_are_noted() -> None:
    story = rounds_until_the_end(sprint(rounds=0), review(6, *["high"] * 7))

    first = "; ".join(f"high: app.py:{line} high problem" for line in range(1, 6))
    assert story.state.warnings[0].endswith(f"; still open: {first} and 2 more")
    assert len(story.state.wisdom.notes) == 7


@pytest.mark.requirement("R74", "R75")
def test_forced_convergence_of_a_later_sprint_tells_its_own_rounds() -> None:
    story = rounds_until_the_end(Story(task("REVIEW-001", sprint=2), rounds=1), review(6))

    assert story.state.warnings[0].startswith("convergence of sprint-2 was forced after 1 fix round")
    assert [message.summary for message in story.state.messages.sent if "forced after 1 round," in message.summary]


@pytest.mark.requirement("R74")
def test_a_low_score_without_findings_is_an_open_problem_too() -> None:
    story = rounds_until_the_end(sprint(rounds=0), review(6))

    assert [note.text for note in story.state.wisdom.notes] == ["REVIEW-001 scored 6.0, below 7"]


@pytest.mark.requirement("R74")
def test_tests_that_still_fail_after_the_last_round_are_open_problems() -> None:
    story = rounds_until_the_end(sprint(rounds=0), review(9), rate=0.5)

    assert [note.text for note in story.state.wisdom.notes] == ["failing test: test_a"]


@pytest.mark.requirement("R76")
@ENGINES
def test_every_round_logs_its_trigger_and_every_passed_review_unblocks(engine: Engine) -> None:
    story = judged(sprint(engine), review(6, "critical"))
    story.does("DEV-fix-1")
    story.goes_on()
    story.reviews("REVIEW-002", review(9))
    story.goes_on()

    logged = [(message.type, message.sender) for message in story.state.messages.sent if message.type in LOOP_MESSAGES]

    assert logged == [("gc_loop_trigger", "coordinator"), ("task_unblocked", "coordinator")]


LOOP_MESSAGES = {"gc_loop_trigger", "task_unblocked"}


@pytest.mark.requirement("R77")
@pytest.mark.parametrize(("score", "decision"), [(6, "REVISION"), (8, "CONVERGE")])
def test_a_controller_s_decision_round_and_time_are_stored_and_its_row_states_it(score: float, decision: str) -> None:
    story = judged(sprint(pipeline=Pipeline.multi_sprint), review(score))
    progress = story.state.tasks.progress[TaskId("GC-CHECK-001")]
    written = json.loads(documents(story.state)["interactive/GC-CHECK-001-result.json"])

    assert story.status("GC-CHECK-001") == "completed"
    assert progress.findings == f"GC decision: {decision} (round 0)"
    assert progress.ended_at == story.now
    assert (written["gc_decision"], written["gc_round"], written["status"]) == (decision, 0, "completed")
    assert written["timestamp"] == "1970-01-01T08:16:40+08:00"


@pytest.mark.requirement("R77", "R73")
def test_a_controller_converges_when_the_rounds_are_used_up() -> None:
    story = rounds_until_the_end(sprint(pipeline=Pipeline.multi_sprint, rounds=1), review(6))

    assert story.team.decisions == {"GC-CHECK-001": "REVISION", "GC-CHECK-002": "CONVERGE"}
    assert len(story.seen(team_events.ConvergenceForced)) == 1


@ENGINES
@pytest.mark.parametrize("mode", Mode)
def test_no_agent_is_ever_asked_for_a_decision_that_is_arithmetic(engine: Engine, mode: Mode) -> None:
    rows = task("REVIEW-001"), task("GC-CHECK-001", "REVIEW-001", mode=mode)
    story = rounds_until_the_end(Story(*rows, engine=engine), review(9))

    assert story.team.decisions == {"GC-CHECK-001": "CONVERGE"}
    assert [event.task for event in story.seen(events.AttemptStarted)] == ["REVIEW-001"]


@pytest.mark.requirement("R68")
@ENGINES
def test_a_bad_review_whose_controller_is_skipped_still_asks_for_a_round(engine: Engine) -> None:
    rows = task("DEV-001"), task("REVIEW-001"), task("GC-CHECK-001", "DEV-001", "REVIEW-001")
    story = Story(*rows, engine=engine)
    story.goes_on()
    story.fails("DEV-001")
    story.reviews("REVIEW-001", review(6))
    story.goes_on()

    assert story.status("GC-CHECK-001") == "skipped"
    assert [event.raised_by for event in story.seen(team_events.RoundStarted)] == [("REVIEW-001",)]


@pytest.mark.requirement("R69")
def test_a_controller_does_not_judge_a_review_of_a_patch() -> None:
    rows = task("REVIEW-001", pipeline=Pipeline.patch), task("GC-CHECK-001", "REVIEW-001")
    story = rounds_until_the_end(Story(*rows), review(2))

    assert not story.seen(team_events.RoundStarted)


@pytest.mark.requirement("R79")
def test_only_reviews_have_a_score_and_a_signal() -> None:
    story = judged(sprint(), scored(8, 9, 7, 6))

    marks = {task: (verdict.score, verdict.signal) for task, verdict in story.team.verdicts.items()}

    assert marks == {"REVIEW-001": (7.6, "CONVERGED")}


@pytest.mark.requirement("R90")
@pytest.mark.parametrize(
    ("rate", "fails"),
    [(1.0, False), (0.95, False), (0.9499, True), (0.0, True), (None, False)],
)
def test_tests_pass_from_95_per_cent_on_and_say_nothing_when_nothing_was_measured(
    rate: float | None,
    fails: bool,  # noqa: FBT001
) -> None:
    found = Measurement(verification=measured(rate))

    recorded = critic.measured(TaskId("VERIFY-001"), found, "c1", team_events.Thresholds())

    assert recorded.failed is fails


@pytest.mark.requirement("R90")
@ENGINES
def test_failing_tests_are_a_completed_verification_that_counts_as_a_round(engine: Engine) -> None:
    story = judged(sprint(engine), review(9), rate=0.94)

    assert story.status("VERIFY-001") == "completed"
    assert story.team.rounds == {1: 1}
    assert story.row("DEV-fix-1").deps == ("VERIFY-001",)
    assert story.row("VERIFY-002").deps == ("DEV-fix-1",)


@ENGINES
@pytest.mark.parametrize("pipeline", [Pipeline.sprint, Pipeline.multi_sprint])
def test_a_bad_review_and_failing_tests_of_the_same_work_are_answered_by_one_round(
    engine: Engine, pipeline: Pipeline
) -> None:
    story = judged(sprint(engine, pipeline=pipeline), review(6), rate=0.5)

    (started,) = story.seen(team_events.RoundStarted)

    assert isinstance(started, team_events.RoundStarted)
    assert set(started.raised_by) == {"REVIEW-001", "VERIFY-001"}


def test_failing_tests_wait_for_the_review_of_the_same_work() -> None:
    story = sprint(Engine.beat)
    story.starts("VERIFY-001", "REVIEW-001")
    story.ends("VERIFY-001", done("", verification=measured(0.5)))
    before = story.goes_on()
    story.ends("REVIEW-001", done("", review=review(9)))
    after = story.goes_on()

    assert (before, after) == ([], ["DEV-fix-1"])


def test_tests_that_fail_while_a_fix_is_under_way_are_run_again_behind_the_fix() -> None:
    story = sprint(Engine.beat)
    story.starts("VERIFY-001", "REVIEW-001")
    story.ends("REVIEW-001", done("", review=review(6)))
    story.goes_on()
    story.ends("VERIFY-001", done("", verification=measured(0.5)))
    story.goes_on()

    assert story.team.rounds == {1: 1}
    assert story.row("VERIFY-002").deps == ("DEV-fix-1",)


@pytest.mark.requirement("R90")
def test_failing_tests_of_a_patch_fail_the_task_because_no_round_follows() -> None:
    story = rounds_until_the_end(Story(pipeline=Pipeline.patch), review(9), rate=0.94)

    assert story.status("VERIFY-001") == "failed"
    assert "94.0% is below 95 %: test_a" in story.state.tasks.progress[TaskId("VERIFY-001")].error


def test_tests_that_fail_in_one_wave_and_a_review_that_passes_in_a_later_one_do_not_end_the_run() -> None:
    rows = (
        task("DEV-001"),
        task("VERIFY-001", "DEV-001"),
        task("DEV-002", "DEV-001"),
        task("DEV-003", "DEV-002"),
        task("REVIEW-001", "DEV-003"),
    )
    story = Story(*rows)
    while "REVIEW-001" not in (started := story.goes_on()):
        for name in started:
            story.verifies(name, 0.5) if name == "VERIFY-001" else story.does(name)
    story.reviews("REVIEW-001", review(9))

    assert story.goes_on() == ["DEV-fix-1"]


@pytest.mark.requirement("R70")
def test_the_reason_of_a_round_names_scores_findings_and_pass_rate() -> None:
    story = judged(sprint(), review(6, "critical"), rate=0.5)
    (started,) = story.seen(team_events.RoundStarted)

    assert isinstance(started, team_events.RoundStarted)
    assert started.why == ("REVIEW-001 scored 6.0 with 1 critical finding; VERIFY-001 measured a pass rate of 50.0%")


def test_a_retry_of_a_forced_convergence_is_one_more_round_beyond_the_limit() -> None:
    story = sprint(rounds=0)
    story.verifies("VERIFY-001", 0.5)
    story.reviews("REVIEW-001", review(9))
    story.goes_on()
    forced = story.team.forced

    story.happens(*DEVELOPMENT.retried(story.state, ()), events.EngineStarted(1, story.state.branch.tip))
    starts = story.goes_on()

    assert forced == (1,)
    assert starts == ["DEV-fix-1"]
    assert story.team.forced == ()
    assert "failing test" in story.prompt("DEV-fix-1")
    assert {"REVIEW-002", "VERIFY-002"} <= story.state.tasks.plan.keys()


def test_a_name_that_several_tests_have_is_listed_once() -> None:
    found = Verification(command="tape", pass_rate=0.5, regressions=("a > equal", "a > equal", "b"), missing=("c", "c"))

    assert critic.failing_tests(found) == "3 regressions: a > equal, b; 2 missing tests: c"
