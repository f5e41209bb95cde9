"""What the views and the report say about the development team."""

import msgspec
import pytest
from tests.core.conftest import Story, a_design, done, review, task

from iterdev.core.types import Engine, TaskId
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.views import task_notes, team_report, team_view


def finished(score: float = 9, rate: float | None = 1.0, **policy: object) -> Story:
    """A sprint from its beginning to its end."""
    story = Story(pipeline=Pipeline.sprint, **policy)
    play(story, score, rate)
    return story


def play(story: Story, score: float = 9, rate: float | None = 1.0, *goals: str) -> None:
    milestones = tuple(Milestone(title=goal) for goal in goals)
    while started := story.goes_on():
        for name in started:
            match story.row(name).role:
                case Role.architect:
                    design = msgspec.structs.replace(a_design(), milestones=milestones)
                    story.does(name, done("one module", design=design))
                case Role.reviewer:
                    story.reviews(name, review(score, "high"))
                case Role.tester:
                    story.verifies(name, rate)
                case _:
                    story.does(name, done("built", commit=f"commit of {name}", changed=("a.py", "b.py")))


def in_sprints(*goals: str, engine: Engine = Engine.beat, score: float = 7) -> Story:
    story = Story(pipeline=Pipeline.multi_sprint, engine=engine)
    play(story, score, 1.0, *goals)
    return story


@pytest.mark.requirement("R102")
def test_the_report_names_the_pipeline_and_counts_the_rounds_of_all_sprints() -> None:
    made = team_report(finished(score=6, rounds=2).state)

    assert (made.title, made.header) == ("Team IterDev Report", (("Pipeline", "sprint"),))
    assert made.summary == (("GC Rounds", 2),)


@pytest.mark.requirement("R102")
def test_a_session_whose_pipeline_is_not_chosen_says_so() -> None:
    assert team_report(Story().state).header == (("Pipeline", "not chosen"),)


@pytest.mark.requirement("R102")
def test_the_deliverables_are_the_documents_of_completed_tasks() -> None:
    assert team_report(finished().state).deliverables == (
        ("Design Document", ("design/design-001.md",)),
        ("Task Breakdown", ("design/task-breakdown.json",)),
        ("Dev Log", ("code/dev-log.md",)),
        ("Verification", ("verify/verify-001.json",)),
        ("Review Report", ("review/review-001.md",)),
        ("Wisdom", ("wisdom/",)),
    )


def test_a_task_that_failed_leaves_no_deliverable() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001"))
    story.goes_on()
    story.fails("DEV-001")
    story.fails("REVIEW-001")

    left = dict(team_report(story.state).deliverables)

    assert (left["Dev Log"], left["Review Report"], left["Task Breakdown"]) == ((), (), ())


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        (1.0, "- VERIFY-001: 100.0% of 100 tests passed, `pytest -q`"),
        (0.97, "- VERIFY-001: 97.0% of 100 tests passed, failing: test_a, `pytest -q`"),
        (None, "- VERIFY-001: nothing was verified: nothing ran"),
    ],
)
def test_what_was_measured_is_told_as_it_was_measured(rate: float | None, verdict: str) -> None:
    lines = team_report(finished(rate=rate).state).verdicts.splitlines()[2:]

    assert lines == [verdict, "- REVIEW-001: score 9, 0 critical, 1 finding, CONVERGED"]


def test_a_later_review_says_what_became_of_the_findings_before_it() -> None:
    verdicts = team_report(finished(score=6, rounds=1).state).verdicts

    assert "- REVIEW-002: score 6, 0 critical, 1 finding, REVISION_NEEDED (0 fixed, 1 still there, 0 new)" in verdicts


def test_sprints_that_are_still_to_come_are_listed_with_their_goals() -> None:
    story = Story(pipeline=Pipeline.multi_sprint)
    (first,) = story.goes_on()
    milestones = tuple(Milestone(title=title, tasks=("t1",)) for title in ("Store", "Serve"))
    story.does(first, done("two steps", design=msgspec.structs.replace(a_design(), milestones=milestones)))

    assert team_report(story.state).overview.splitlines()[4:] == [
        "| sprint-1 | Store | - | - | - |",
        "| sprint-2 | Serve | - | - | - |",
    ]


@pytest.mark.requirement("R81")
def test_sprints_that_are_over_are_listed_with_their_figures() -> None:
    lines = team_report(in_sprints("Store", "Serve").state).overview.splitlines()

    assert lines[4:] == ["| sprint-1 | Store | 5 of 5 | 7 | 0 |", "| sprint-2 | Serve | 4 of 4 | 7 | 0 |"]


def test_a_single_sprint_has_no_table_of_sprints() -> None:
    assert team_report(finished().state).overview == ""


@pytest.mark.requirement("R79")
@pytest.mark.parametrize(
    ("name", "artifact", "verdict"),
    [
        ("DESIGN-001", "design/design-001.md", ""),
        ("DEV-001", "code/dev-log.md", ""),
        ("VERIFY-001", "verify/verify-001.json (pass rate 100.0%)", ""),
        ("REVIEW-001", "review/review-001.md (score 9)", "score 9, CONVERGED"),
    ],
)
def test_each_task_has_its_document_and_a_review_its_verdict(name: str, artifact: str, verdict: str) -> None:
    notes = task_notes(finished().state, TaskId(name))

    assert (notes.artifact, notes.verdict, notes.unfavourable) == (artifact, verdict, False)
    assert notes.report == (("Score: 9 (CONVERGED)",) if verdict else ())


@pytest.mark.parametrize(
    ("name", "score", "rate", "unfavourable"),
    [("REVIEW-001", 6, 1.0, True), ("VERIFY-001", 9, 0.5, True), ("VERIFY-001", 9, None, False)],
)
def test_a_verdict_that_asks_for_more_work_is_unfavourable(
    name: str,
    score: float,
    rate: float | None,
    unfavourable: bool,  # noqa: FBT001
) -> None:
    state = finished(score=score, rate=rate, rounds=0).state

    assert task_notes(state, TaskId(name)).unfavourable is unfavourable


def test_the_view_tells_pipeline_round_and_sprint() -> None:
    view = team_view(finished(score=6, rounds=2).state)

    assert (view.pipeline, view.position) == ("sprint", "")
    assert view.facts == (("GC Rounds", "2/2"), ("Sprint", "sprint-1"))
    assert view.steps[:2] == ("fix round 1 of 2", "fix round 2 of 2")
    assert view.steps[2].startswith("the latest review is REVIEW-003: score 6 (correctness 6, ")
    assert view.steps[2].endswith("/review/review-003.md")


def test_the_view_of_several_sprints_tells_their_goals_and_where_the_work_is() -> None:
    view = team_view(in_sprints("Store", "Serve").state)

    assert view.position == "sprint 2 of 2"
    assert view.facts[1] == ("Sprint", "sprint-2 of 2 (1. Store; 2. Serve)")
    assert view.steps == ("2 sprints: 1. Store; 2. Serve", "sprint 2 of 2: Serve")
    assert view.fields["goals"] == ["Store", "Serve"]


def test_a_plain_sprint_is_shown_as_one() -> None:
    view = team_view(in_sprints("Store", "Serve", score=9).state)

    assert view.steps[-1] == "sprint 2 of 2: Serve (plain, since the one before went well)"


@pytest.mark.requirement("R75")
def test_a_forced_convergence_and_sprints_that_were_not_begun_are_reservations() -> None:
    forced = team_view(finished(score=6, rounds=0).state)
    stopped = Story(pipeline=Pipeline.multi_sprint, engine=Engine.beat)
    design = msgspec.structs.replace(a_design(), milestones=(Milestone(title="Store"), Milestone(title="Serve")))
    stopped.does(stopped.goes_on()[0], done("", design=design))
    stopped.fails(stopped.goes_on()[0])
    stopped.goes_on()

    assert forced.reservations == ("with convergence forced in sprint-1",)
    assert team_view(stopped.state).reservations == ("stopped after sprint 1 of 2",)


@pytest.mark.requirement("R102")
def test_only_the_tests_may_be_done_without_asking_an_agent() -> None:
    state = finished().state

    assert [name for name in state.tasks.plan if not task_notes(state, name).asks_agent] == ["VERIFY-001"]
