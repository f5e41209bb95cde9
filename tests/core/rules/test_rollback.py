"""Going back to before a task succeeded or failed, or before a wave."""

import pytest
from tests.core.conftest import Story, a_design, done, measured, review, task

from iterdev.core.errors import UserError
from iterdev.core.results import LearnedTexts, Usage
from iterdev.core.rules import rollback
from iterdev.core.session import events
from iterdev.core.types import Engine, Status, TaskId
from iterdev.core.views.session import spending_view

ENGINES = pytest.mark.parametrize("engine", list(Engine))


def a_sprint(engine: Engine) -> Story:
    """A sprint with one fix round, over."""
    story = Story(
        task("DESIGN-001"),
        task("DEV-001", "DESIGN-001"),
        task("VERIFY-001", "DEV-001"),
        task("REVIEW-001", "DEV-001"),
        engine=engine,
    )
    scores = iter((3, 9))
    while names := story.goes_on():
        for name in names:
            prefix = name.split("-")[0]
            outcome = {
                "DESIGN": done("d", design=a_design()),
                "DEV": done(
                    findings="w",
                    commit=f"commit of {name}",
                    changed=("a.py",),
                    usage=Usage(cost_usd=1),
                    wisdom=LearnedTexts(learnings=(f"learned in {name}",)),
                ),
                "VERIFY": done("v", verification=measured(1.0)),
            }.get(prefix) or done("r", review=review(next(scores)))
            story.does(name, outcome)
    return story


def roll_back(story: Story, target: str) -> events.RollbackStarted:
    started = story.rolls_back(target)
    story.happens(events.RollbackCompleted(started.snapshot))
    return started


@pytest.mark.requirement("R131")
def test_a_task_that_succeeded_has_a_point_to_go_back_to() -> None:
    story = a_sprint(Engine.beat)

    point = rollback.snapshot(TaskId("DEV-001"), story.state.tasks.progress[TaskId("DEV-001")])

    assert point == "snapshot-DEV-001-1000"


@ENGINES
def test_going_back_undoes_the_task_and_all_that_was_built_on_it(engine: Engine) -> None:
    story = a_sprint(engine)
    assert "DEV-fix-1" in story.state.tasks.plan

    planned = roll_back(story, "DEV-001")

    assert set(planned.removed) == {"DEV-fix-1", "REVIEW-002"}
    assert {name: story.status(name) for name in story.state.tasks.plan} == {
        "DESIGN-001": "completed",
        "DEV-001": "pending",
        "VERIFY-001": "pending",
        "REVIEW-001": "pending",
    }
    assert story.state.branch.tip == story.state.session.base
    assert not story.team.reviews
    assert not story.team.rounds.get(1)


@ENGINES
def test_a_session_that_went_back_can_be_done_again(engine: Engine) -> None:
    story = a_sprint(engine)
    roll_back(story, "DEV-001")
    story.happens(events.EngineStarted(1, story.state.branch.tip))

    assert story.goes_on() == ["DEV-001"]
    story.does("DEV-001", done("again", commit="c2", changed=("a.py",)))
    assert sorted(story.goes_on()) == ["REVIEW-001", "VERIFY-001"]


def test_only_what_came_after_a_fix_is_undone_with_it() -> None:
    story = a_sprint(Engine.beat)

    roll_back(story, "DEV-fix-1")

    pending = [name for name in story.state.tasks.plan if story.status(name) == Status.pending]
    assert pending == ["VERIFY-001", "DEV-fix-1", "REVIEW-002"], "the tests were run again after the fix"
    assert story.state.branch.tip == "tip of DEV-001"
    assert story.team.rounds == {1: 1}


@ENGINES
def test_a_whole_wave_can_be_undone(engine: Engine) -> None:
    story = a_sprint(engine)

    roll_back(story, "wave-2")

    assert [name for name in story.state.tasks.plan if story.status(name) == Status.completed] == ["DESIGN-001"]


def test_what_was_learned_in_undone_work_is_forgotten_but_its_cost_is_not() -> None:
    story = a_sprint(Engine.beat)
    spent = story.state.spending.total

    roll_back(story, "DEV-001")

    assert spent == story.state.spending.total == Usage(cost_usd=2)
    assert not story.state.wisdom.notes
    again = story.state.tasks.progress[TaskId("DEV-001")]
    assert again.unmerged_commits == ()
    assert [commit for commit, _ in again.rolled_back] == ["commit of DEV-001"]


@pytest.mark.requirement("R132")
@ENGINES
def test_a_failure_can_be_rolled_back_with_all_that_followed_from_it(engine: Engine) -> None:
    rows = task("DEV-001"), task("DEV-002", "DEV-001"), task("VERIFY-001", "DEV-002")
    story = Story(*rows, engine=engine)
    story.goes_on()
    story.does("DEV-001", done("w", commit="c1", changed=("a.py",)))
    story.goes_on()
    story.fails("DEV-002")
    story.goes_on()
    assert story.state.lifecycle.is_over

    planned = roll_back(story, "DEV-002")

    assert planned.undone == ("DEV-002", "VERIFY-001")
    assert [story.status(row.id) for row in rows] == ["completed", "pending", "pending"]
    assert story.state.branch.tip == "tip of DEV-001"
    story.happens(events.EngineStarted(1, story.state.branch.tip))
    assert story.goes_on() == ["DEV-002"]


@pytest.mark.requirement("R132")
@pytest.mark.parametrize("target", ["DEV-999", "wave-9", "nonsense"])
def test_what_never_ended_cannot_be_gone_back_to(target: str) -> None:
    story = a_sprint(Engine.beat)

    with pytest.raises(UserError, match=target):
        story.rolls_back(target)


@pytest.mark.requirement("R132")
@pytest.mark.parametrize("target", ["DEV-fix-1", "wave-4"])
def test_what_was_undone_is_no_point_to_go_back_to(target: str) -> None:
    story = a_sprint(Engine.beat)
    roll_back(story, "DEV-001")

    with pytest.raises(UserError, match=target):
        story.rolls_back(target)


@ENGINES
def test_a_wave_that_was_made_again_is_gone_back_to_as_it_was_made_again(engine: Engine) -> None:
    story = a_sprint(engine)
    roll_back(story, "DEV-001")
    story.happens(events.EngineStarted(1, story.state.branch.tip))
    story.goes_on()
    story.does("DEV-001", done("again", commit="c2", changed=("a.py",)))
    story.lands(TaskId("DEV-001"), "another tip")
    story.goes_on()
    story.verifies("VERIFY-001", 1.0)

    assert story.rolls_back("wave-3").tip == "another tip"


def test_the_code_goes_back_also_if_an_engine_died_before_it_could_note_where_the_branch_was() -> None:
    story = Story(task("DEV-001"), engine=Engine.beat)
    story.does("DEV-001", done("w", commit="c1", changed=("a.py",)))
    story.happens(events.EngineStarted(2, "c1"))
    story.lands("DEV-001", "c1")

    roll_back(story, "DEV-001")

    assert story.state.branch.tip == story.state.session.base


@ENGINES
def test_a_verdict_that_still_stands_asks_for_its_fix_again(engine: Engine) -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), task("VERIFY-001", "DEV-001"), engine=engine)
    story.goes_on()
    story.does("DEV-001")
    assert sorted(story.goes_on()) == ["REVIEW-001", "VERIFY-001"]
    story.starts("VERIFY-001")
    story.reviews("REVIEW-001", review(3))
    story.ends("VERIFY-001", done("v", verification=measured(1.0)))
    assert story.goes_on() == ["DEV-fix-1"]

    roll_back(story, "VERIFY-001")
    story.happens(events.EngineStarted(1, story.state.branch.tip))
    story.goes_on()
    story.verifies("VERIFY-001", 1.0)

    assert story.goes_on() == ["DEV-fix-1"]


def test_a_task_that_succeeded_only_later_is_undone_as_well() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), engine=Engine.beat)
    story.fails("DEV-001")
    story.does("DEV-002", done("w", commit="c2", changed=("b.py",)))
    story.lands("DEV-002", "c2")
    story.happens(events.TasksReset((TaskId("DEV-001"),)))
    story.does("DEV-001", done("w", commit="c1", changed=("a.py",)))
    story.lands(TaskId("DEV-001"), "c1")

    roll_back(story, "DEV-002")

    assert {name: story.status(name) for name in story.state.tasks.plan} == {"DEV-001": "pending", "DEV-002": "pending"}


def test_a_task_that_is_made_anew_goes_on_counting_its_attempts_and_its_cost() -> None:
    story = a_sprint(Engine.beat)
    roll_back(story, "DEV-001")
    story.happens(events.EngineStarted(1, story.state.branch.tip))
    story.goes_on()
    story.does("DEV-001", done("again", commit="c2", changed=("a.py",)))
    story.goes_on()
    story.verifies("VERIFY-001", 1.0)
    story.reviews("REVIEW-001", review(3))

    assert story.goes_on() == ["DEV-fix-1"]
    progress = story.state.tasks.progress[TaskId("DEV-fix-1")]
    assert (progress.number, progress.usage) == (1, Usage(cost_usd=1))


def test_a_branch_that_could_not_follow_is_still_to_follow() -> None:
    story = a_sprint(Engine.beat)
    planned = story.rolls_back("DEV-001")

    story.happens(events.RollbackFailed(planned.snapshot, "the disk is full"))

    assert story.state.branch.rewind == planned.snapshot


@pytest.mark.requirement("R132")
def test_everybody_is_told_of_the_beginning_and_the_end() -> None:
    story = a_sprint(Engine.beat)
    planned = roll_back(story, "DEV-001")
    story.happens(events.RollbackFailed(planned.snapshot, "the disk is full"))

    told = [message for message in story.state.messages.sent if message.type.startswith("rollback")]
    assert [message.type for message in told] == ["rollback_initiated", "rollback_completed", "rollback_failed"]
    assert {(message.data["snapshot_id"], message.data["ref"]) for message in told} == {(planned.snapshot,) * 2}
    assert "the disk is full" in told[-1].summary


def test_what_was_spent_on_work_that_is_gone_still_adds_up() -> None:
    story = a_sprint(Engine.beat)

    roll_back(story, "DEV-001")

    found = spending_view(story.state)
    assert found.roles == {"developer": Usage(cost_usd=1), "rolled back": Usage(cost_usd=1)}
    assert sum(found.roles.values(), Usage()) == story.state.spending.total
