"""Which message each event puts on the bus."""

import pytest
from tests.core.conftest import Outcome, Story, a_design, done, measured, review, task

from iterdev.core.collaboration.checkpoints import CheckpointRestored, CheckpointSaved
from iterdev.core.collaboration.external_packages import (
    PackageCheck,
    PackagesOverridden,
    PackageStatus,
    PackageUpdate,
    PackageUpdateFound,
)
from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven
from iterdev.core.collaboration.locks import DeadlockBroken, LockExpired, LockGranted, LockRefused, LockReleased
from iterdev.core.collaboration.messages import Message
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified
from iterdev.core.rules.announcements import announcement
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import ConflictStrategy, Engine, Status, TaskId
from iterdev.teams.development import events as team_events
from iterdev.teams.development.results import Review
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.sprints import metrics
from iterdev.teams.development.team import DEVELOPMENT

TYPES = DEVELOPMENT.message_types


def last(story: Story) -> Message:
    return story.state.messages.sent[-1]


def said(name: str, outcome: Outcome) -> Message:
    """The only message that one attempt at a task leads to."""
    story = Story(task(name))
    before = len(story.state.messages.sent)
    story.does(name, outcome)
    (message,) = story.state.messages.sent[before:]
    return message


def test_the_first_message_tells_the_pipeline_and_the_roles() -> None:
    first = Story(pipeline=Pipeline.patch).state.messages.sent[0]

    assert (first.sender, first.to, first.type) == ("coordinator", "all", "state_update")
    assert first.data["pipeline_mode"] == "patch"
    assert first.data["roles"] == ["coordinator", "architect", "developer", "tester", "reviewer"]


@pytest.mark.parametrize(("chosen", "told"), [(Pipeline.patch, []), (Pipeline.sprint, ["sprint"])])
def test_another_pipeline_than_the_recommended_one_is_told(chosen: Pipeline, told: list[str]) -> None:
    story = Story(requirement="Fix a typo", auto=False)
    story.happens(team_events.PipelineChosen(chosen))

    assert [message.data["pipeline_mode"] for message in story.state.messages.sent[1:]] == told


def test_a_sprint_is_announced_when_its_tasks_are_made_and_when_it_is_complete() -> None:
    story = Story(pipeline=Pipeline.patch)
    story.goes_on()
    story.does("DEV-001")
    story.goes_on()
    story.verifies("VERIFY-001", 1.0)
    story.goes_on()

    kinds = [message.type for message in story.state.messages.sent]

    assert kinds == ["state_update", "sprint_started", "dev_complete", "verify_passed", "sprint_complete"]


def test_a_rejected_plan_is_not_announced_as_a_complete_sprint() -> None:
    story = Story(task("DEV-001"), auto=False)
    story.goes_on()
    story.happens(events.GateAnswered("plan", "reject"))
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert "sprint_complete" not in [message.type for message in story.state.messages.sent]


@pytest.mark.requirement("R76")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize(
    ("verdict", "kind"),
    [(review(6), "gc_loop_trigger"), (review(9, "critical"), "gc_loop_trigger"), (review(9), "task_unblocked")],
)
def test_a_review_s_consequence_is_told_to_everybody(engine: Engine, verdict: Review, kind: str) -> None:
    story = Story(task("REVIEW-001"), engine=engine)
    story.goes_on()
    story.reviews("REVIEW-001", verdict)
    story.goes_on()

    (message,) = (
        message for message in story.state.messages.sent if message.type in {"gc_loop_trigger", "task_unblocked"}
    )

    assert message.type == kind
    assert (message.sender, message.to) == ("coordinator", "all")


@pytest.mark.requirement("R76")
def test_the_trigger_of_a_round_tells_its_number_and_what_raised_it() -> None:
    story = Story(task("REVIEW-001"))
    story.goes_on()
    story.reviews("REVIEW-001", review(6))
    story.goes_on()
    (message,) = (message for message in story.state.messages.sent if message.type == "gc_loop_trigger")

    assert message.data == {"round": 1, "raised_by": ["REVIEW-001"]}
    assert "REVIEW-001 scored 6.0" in message.summary


@pytest.mark.requirement("R75")
def test_a_forced_convergence_is_told_with_its_problems() -> None:
    story = Story(task("REVIEW-001"), rounds=0)
    story.goes_on()
    story.reviews("REVIEW-001", review(9, "critical"))
    story.goes_on()
    (message,) = (message for message in story.state.messages.sent if message.data.get("forced"))

    assert message.data["problems"] == ["critical: app.py:1 critical problem"]


@pytest.mark.parametrize(
    ("name", "outcome", "kind"),
    [
        ("DESIGN-001", done("", design=a_design()), "design_ready"),
        ("DEV-001", done(""), "dev_complete"),
        ("DEV-001", events.Failed(error="x"), "error"),
        ("VERIFY-001", done("", verification=measured(0.95)), "verify_passed"),
        ("VERIFY-001", done("", verification=measured(0.5), iterations=5), "fix_required"),
        ("VERIFY-001", done("", verification=measured(0.5)), "verify_failed"),
        ("REVIEW-001", done("", review=review(7)), "review_passed"),
        ("REVIEW-001", done("", review=review(6.9)), "review_revision"),
        ("REVIEW-001", done("", review=review(9, "critical")), "review_critical"),
    ],
)
@pytest.mark.requirement("R94", "R178")
def test_each_role_tells_the_coordinator_once_what_came_of_its_task(name: str, outcome: Outcome, kind: str) -> None:
    message = said(name, outcome)

    assert (message.type, message.to) == (kind, "coordinator")
    assert message.summary.startswith(f"[{message.sender}] {name} ")
    assert message.data["task"] == name


@pytest.mark.requirement("R114")
def test_every_type_of_the_coordinator_and_of_the_workers_is_said_by_some_event() -> None:
    story = Story(*(task(name) for name in ("DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001")))
    dev, other = TaskId("DEV-001"), TaskId("DEV-002")
    look = PackageCheck(
        name="lib", source="pip", version_range=">=2", actual_version="1", status=PackageStatus.mismatch
    )
    update = PackageUpdate(name="lib", source="pip", version_range="<2", actual_version="1", newest="2", found_by=dev)
    story.does("DESIGN-001", done("", design=a_design()))
    story.happens(
        events.TableEdited((events.RowEdit(task=story.state.tasks.plan[TaskId("DESIGN-001")], status=Status.pending),))
    )
    story.does("DESIGN-001", done("", design=a_design()))
    story.does("DEV-001", events.Interrupted(commit="c1"))
    story.starts("DEV-001")
    story.ends("DEV-001", events.Unmet(), requests=0, checked=(look,))
    story.happens(PackageUpdateFound(update))
    for name, commit in (("DEV-001", "c2"), ("DEV-002", "c3")):
        story.does(name, done("", commit=commit, changed=("a.py",)))
    story.is_refused(dev, "a.py")
    story.happens(
        events.ConflictResolved(task=dev, strategy=ConflictStrategy.manual, fix=other, status=Status.completed),
    )
    story.is_refused(other, "a.py")
    for verification, iterations in ((measured(1), 0), (measured(0.5), 0), (measured(0.5), 5)):
        story.does("VERIFY-001", done("", verification=verification, iterations=iterations))
    for verdict in (review(9), review(6), review(9, "critical")):
        story.reviews("REVIEW-001", verdict)
    for name in ("DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001"):
        story.happens(events.TaskFailed(TaskId(name), "it broke"))
    story.happens(
        LockGranted(resource="a", task=dev, role="developer", until=2.0),
        LockRefused(resource="a", task=other, role="developer", holder=dev, until=2.0),
        LockReleased(resource="a", task=dev),
        CheckpointSaved(task=dev, pointer="a"),
        CheckpointRestored(task=dev, pointer="a", saved_at=1.0),
        FeedbackGiven(Feedback(description="too long", timestamp=1.0)),
        DebtIdentified(Debt(description="copied", detection_date=1.0)),
        team_events.RoundStarted(sprint=1, number=1, raised_by=(TaskId("REVIEW-001"),), why="bad"),
        team_events.ReviewPassed(TaskId("REVIEW-001")),
        events.Warned("careful"),
        events.RollbackStarted(target="x", snapshot="s", tip="t", rows=(), removed=(), answers={}),
        events.RollbackCompleted("s"),
        events.RollbackFailed("s", "no"),
        team_events.SprintEnded(1, metrics(story.state)),
        events.Archived(),
    )

    said = {
        sender: {message.type for message in story.state.messages.sent if message.sender == sender} for sender in TYPES
    }

    # The holder of a lock reports it to the coordinator, to whose types it belongs.
    assert said["developer"] >= {"resource_locked"}
    said["coordinator"].add("resource_locked")
    said["developer"].remove("resource_locked")
    assert {sender: kinds - {"state_update"} for sender, kinds in said.items()} == {
        sender: set(kinds) for sender, kinds in TYPES.items()
    }


@pytest.mark.requirement("R124")
def test_the_holder_of_a_lock_tells_the_coordinator() -> None:
    story = Story(task("DEV-001"))
    story.happens(LockGranted(resource="database", task=TaskId("DEV-001"), role="developer", until=2.0))

    message = last(story)

    assert (message.sender, message.to, message.type) == ("developer", "coordinator", "resource_locked")
    assert message.summary == '[developer] DEV-001 locked "database"'
    assert message.data["ref"] == "DEV-001"


def test_a_developer_who_is_interrupted_says_where_the_work_so_far_is() -> None:
    message = said("DEV-001", events.Interrupted(commit="c" * 40))

    assert (message.type, message.data) == ("dev_progress", {"task": "DEV-001", "ref": "c" * 40})


def test_the_last_message_of_a_task_that_was_aborted_is_an_error() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.starts("DEV-001")
    story.happens(DeadlockBroken(task=TaskId("DEV-001"), others=(TaskId("DEV-002"),), resource="a"))
    story.ends("DEV-001", events.Interrupted(commit="c1"))

    assert (last(story).type, last(story).sender) == ("error", "developer")
    assert "waited for each other's locks" in last(story).summary


def test_a_task_that_may_do_without_its_packages_is_told_to_be_unblocked() -> None:
    story = Story(task("DEV-001"))
    story.happens(PackagesOverridden(TaskId("DEV-001"), ()))

    assert (last(story).type, last(story).data) == ("task_unblocked", {"task": "DEV-001"})


def test_numbers_that_were_measured_are_part_of_the_message() -> None:
    assert "scored 6.5" in said("REVIEW-001", done("", review=review(6.5))).summary
    assert "pass rate 50" in said("VERIFY-001", done("", verification=measured(0.5))).summary
    assert said("DEV-001", done("", commit="c1")).data["ref"] == "c1"


def test_work_that_cannot_land_is_an_error_of_its_role() -> None:
    story = Story(task("VERIFY-001"))
    story.does("VERIFY-001", done("", commit="c1"))
    story.is_refused(TaskId("VERIFY-001"), "a.py")

    assert last(story).type == "error"
    assert "a.py" in last(story).summary


def test_a_warning_is_told_by_the_coordinator() -> None:
    story = Story()
    story.happens(events.Warned("careful"))

    assert (last(story).sender, last(story).summary) == ("coordinator", "[coordinator] warning: careful")


def test_a_warning_about_an_event_that_is_announced_is_no_second_message() -> None:
    story = Story(task("DEV-001"))
    story.happens(LockGranted(resource="db", task=TaskId("DEV-001"), role="developer", until=1))
    before = len(story.state.messages.sent)
    state = story.happens(LockExpired(resource="db", task=TaskId("DEV-001"), role="developer"))

    assert state.warnings == ('the lock of DEV-001 on "db" expired',)
    assert [message.type for message in state.messages.sent[before:]] == ["resource_unlocked"]


@pytest.mark.parametrize(
    "event",
    [
        events.WaveStarted(1),
        events.EngineStarted(1, "t"),
        events.Paused("p"),
        Accepted("main", "c"),
        events.TaskSkipped(TaskId("DEV-001"), "x"),
    ],
)
def test_what_concerns_nobody_puts_nothing_on_the_bus(event: events.Event) -> None:
    story = Story(task("DEV-001"))

    assert announcement(event, story.state, DEVELOPMENT) is None


def test_every_summary_starts_with_the_role_of_its_sender() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), rounds=1)
    while started := story.goes_on():
        for name in started:
            story.reviews(name, review(5)) if name.startswith("REVIEW") else story.does(name)

    assert all(message.summary.startswith(f"[{message.sender}] ") for message in story.state.messages.sent)
