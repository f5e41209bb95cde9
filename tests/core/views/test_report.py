"""context.md, the report of a session."""

import msgspec
import pytest
from tests.core.conftest import Story, a_design, done, measured, review, task

from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import TaskId
from iterdev.core.views.report import report
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT


def finished(score: float = 9, rate: float | None = 1.0, **policy: object) -> Story:
    """A sprint from its beginning to its end."""
    story = Story(pipeline=Pipeline.sprint, **policy)
    while started := story.goes_on():
        for name in started:
            match name.partition("-")[0]:
                case "DESIGN":
                    story.does(name, done(findings="one module", design=a_design()))
                case "REVIEW":
                    story.reviews(name, review(score, "high"))
                case "VERIFY":
                    story.verifies(name, rate)
                case _:
                    story.does(name, done(findings="built", commit="c1", changed=("a.py", "b.py")))
    return story


def section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n\n")[2].partition("\n---\n")[0]


@pytest.mark.requirement("R3", "R102")
def test_the_header_names_session_requirement_pipeline_and_time() -> None:
    story = finished()
    header = report(story.state, DEVELOPMENT).partition("\n---\n")[0]

    assert header.startswith("# Team IterDev Report\n")
    for text in (
        f"**Session**: {story.state.session.id}",
        "**Requirement**: Add export endpoint",
        "**Pipeline**: sprint",
        "**Completed**: 1970-01-01T08:16:40+08:00",
    ):
        assert text in header


@pytest.mark.requirement("R102")
def test_a_session_that_goes_on_is_not_completed_yet() -> None:
    text = report(Story(task("DEV-001")).state, DEVELOPMENT)

    assert "**Completed**: not yet" in text
    assert "**Pipeline**: not chosen" in text


@pytest.mark.requirement("R102")
def test_accepting_a_session_does_not_move_the_time_at_which_it_was_completed() -> None:
    story = finished()
    story.now += 3600
    story.happens(Accepted("main", "c1"))

    assert "**Completed**: 1970-01-01T08:16:40+08:00" in report(story.state, DEVELOPMENT)


@pytest.mark.requirement("R102")
def test_an_agent_that_nobody_had_to_ask_is_not_named() -> None:
    story = Story(task("VERIFY-001"))
    story.starts("VERIFY-001")
    story.ends("VERIFY-001", done(findings="all passed", verification=measured()), requests=0)

    details = section(report(story.state, DEVELOPMENT), "Task Details")

    assert "- Role: tester\n- Status: completed, requests: 0\n" in details


@pytest.mark.requirement("R102")
def test_the_summary_counts_tasks_and_rounds() -> None:
    story = finished(score=6, rounds=2)

    assert section(report(story.state, DEVELOPMENT), "Summary").splitlines()[2:] == [
        "| Total Tasks | 8 |",
        "| Completed | 8 |",
        "| Failed | 0 |",
        "| Skipped | 0 |",
        "| GC Rounds | 2 |",
    ]


@pytest.mark.requirement("R102")
def test_the_execution_is_told_wave_by_wave() -> None:
    waves = section(report(finished().state, DEVELOPMENT), "Pipeline Execution")

    assert waves.split("### ")[1:] == [
        "Wave 1/3: 1 completed\n\n- DESIGN-001 (architect): completed\n\n",
        "Wave 2/3: 1 completed\n\n- DEV-001 (developer): completed\n\n",
        "Wave 3/3: 2 completed\n\n- VERIFY-001 (tester): completed\n- REVIEW-001 (reviewer): completed\n",
    ]


@pytest.mark.requirement("R102")
def test_every_task_has_its_details() -> None:
    story = finished()
    details = section(report(story.state, DEVELOPMENT), "Task Details")

    for text in (
        "### DEV-001: ",
        "- Role: developer, agent: mine",
        "- Status: completed, requests: 1",
        "- Changed: a.py, b.py",
        "- Findings: built",
        "- Commit: c1",
        "- Score: 9 (CONVERGED)",
    ):
        assert text in details
    assert details.count("### ") == len(story.state.tasks.plan)


@pytest.mark.requirement("R102")
def test_errors_and_work_that_did_not_land_are_told() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Failed(error="no luck", commit="half"))

    details = section(report(story.state, DEVELOPMENT), "Task Details")

    assert "- Error: no luck" in details
    assert "half" in details


@pytest.mark.requirement("R102")
def test_the_deliverables_are_listed_with_their_paths() -> None:
    story = finished()
    folder = story.state.session.folder

    assert section(report(story.state, DEVELOPMENT), "Deliverables").splitlines()[2:] == [
        f"| Design Document | {folder}/design/design-001.md |",
        f"| Task Breakdown | {folder}/design/task-breakdown.json |",
        f"| Dev Log | {folder}/code/dev-log.md |",
        f"| Verification | {folder}/verify/verify-001.json |",
        f"| Review Report | {folder}/review/review-001.md |",
        f"| Wisdom | {folder}/wisdom/ |",
    ]


@pytest.mark.requirement("R74", "R75")
def test_a_forced_convergence_is_shown_with_what_is_still_open() -> None:
    warnings = section(report(finished(score=6, rounds=0).state, DEVELOPMENT), "Warnings")

    assert "convergence of sprint-1 was forced" in warnings
    assert "high: app.py:1 high problem" in warnings


@pytest.mark.parametrize(
    ("usage", "line"),
    [
        (Usage(input_tokens=10, output_tokens=5, cost_usd=0.5), "Tokens: 10 in, 5 out. Cost: $0.50."),
        (Usage(cost_usd=0.5), "Cost: $0.50."),
    ],
)
def test_what_was_spent_is_told(usage: Usage, line: str) -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", done(findings="", usage=usage))

    assert line in section(report(story.state, DEVELOPMENT), "Summary")


def test_work_that_was_accepted_is_told() -> None:
    story = finished()
    story.happens(Accepted("main", "c0ffee"))

    assert "**Accepted**: c0ffee" in report(story.state, DEVELOPMENT)


def test_a_session_without_a_plan_can_be_reported() -> None:
    assert TaskId("DEV-001") not in report(Story().state, DEVELOPMENT)


def test_sprints_that_are_still_to_come_are_listed_with_their_goals() -> None:
    story = Story(pipeline=Pipeline.multi_sprint)
    (first,) = story.goes_on()
    milestones = tuple(Milestone(title=title, tasks=("t1",)) for title in ("Store", "Serve"))
    story.does(first, done(findings="two steps", design=msgspec.structs.replace(a_design(), milestones=milestones)))

    assert section(report(story.state, DEVELOPMENT), "Sprints").splitlines()[2:] == [
        "| sprint-1 | Store | - | - | - |",
        "| sprint-2 | Serve | - | - | - |",
    ]


def test_a_rollback_is_told_with_what_it_undid() -> None:
    story = finished()
    story.happens(
        events.RollbackStarted(
            target="DEV-001",
            snapshot="snapshot-DEV-001-1",
            tip="base",
            rows=(story.state.tasks.plan[TaskId("DEV-001")],),
            removed=(),
            answers={},
        )
    )

    assert section(report(story.state, DEVELOPMENT), "Rollbacks").endswith(
        ": rolling back to before DEV-001; undone: DEV-001\n"
    )
