import pytest
from tests.tracker.conftest import BEGIN, Story, solution

from iterdev.core.errors import UserError
from iterdev.tracker import queue_rules, rules
from iterdev.tracker.documents import dependency_graph
from iterdev.tracker.events import QueueFormed
from iterdev.tracker.queues import Placement, Queue, QueueItem, QueueStatus
from iterdev.tracker.state import active_queues
from iterdev.tracker.views import QueueView


def next_item(story: Story) -> str | None:
    found = queue_rules.selected(story.tracker)
    return found.item.item_id if found else None


def test_a_queue_is_named_by_its_time_and_its_issues_are_queued(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.at = BEGIN

    story.queued("GH-1")

    assert story.queue.id == "QUE-20260308040000"
    assert [(item.item_id, item.issue_id) for item in story.items.values()] == [("S-1", "GH-1")]
    assert story.status("GH-1") == "queued"


@pytest.mark.requirement("R166")
def test_an_issue_without_a_bound_solution_cannot_be_queued(story: Story) -> None:
    story.planned("GH-1")
    story.issue("GH-2")

    for queue in (story.queued, story.formed):
        with pytest.raises(UserError, match='No solution is bound to "GH-2"'):
            queue("GH-1", "GH-2")


def test_what_is_in_the_queue_is_not_added_again(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")

    assert queue_rules.added(story.tracker, ["GH-1"], story.at) == ()


def test_another_solution_of_an_issue_takes_the_place_of_one_that_was_not_started(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")
    story.happened(*rules.solved_and_bound(story.tracker, "GH-1", solution("SOL-2"), story.at))

    story.queued("GH-1")

    assert [(item.item_id, item.solution_id) for item in story.items.values()] == [("S-2", "SOL-2")]


def test_an_item_waits_for_what_its_solution_depends_on_also_if_that_is_added_later(story: Story) -> None:
    story.planned("GH-1", after=["GH-2"])
    story.planned("GH-2")
    story.queued("GH-1")

    story.queued("GH-2")

    assert story.items["S-1"].place.depends_on == ("S-2",)
    assert next_item(story) == "S-2"


def test_the_next_item_is_the_one_that_was_started_or_else_the_first_that_is_ready(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.planned("GH-2", "b.py")
    story.queued("GH-1", "GH-2")
    assert next_item(story) == "S-1"

    story.started("S-2")

    assert next_item(story) == "S-2"
    assert story.status("GH-2") == "executing"


def test_starting_an_item_twice_changes_nothing_and_a_completed_one_cannot_be_started(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")
    story.started("S-1")
    assert queue_rules.started(story.tracker, queue_rules.find_item(story.tracker, "S-1")) == ()

    story.done("S-1")

    with pytest.raises(UserError, match="completed already"):
        story.started("S-1")


def test_queues_are_worked_off_by_their_priorities(story: Story) -> None:
    for name in ("GH-1", "GH-2"):
        story.planned(name)
        story.happened(*queue_rules.added(story.tracker, [name], story.at, to_new=True))
    first, second = story.tracker.queues
    story.happened(*queue_rules.activated(story.tracker, [first, second]))
    story.happened(*queue_rules.prioritized(story.tracker, second, 1))

    found = queue_rules.selected(story.tracker)

    assert found
    assert found.queue_id == second


def test_the_last_item_closes_the_queue(story: Story) -> None:
    story.planned("GH-1")
    story.planned("GH-2")
    story.queued("GH-1", "GH-2")
    story.done("S-1")
    assert story.queue.status is QueueStatus.active

    story.done("S-2")

    assert story.queue.status is QueueStatus.completed
    assert [story.status(name) for name in ("GH-1", "GH-2")] == ["completed", "completed"]


def test_a_queue_with_a_failed_item_has_failed_when_nothing_is_left_in_it(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")

    story.failed("S-1")

    assert story.queue.status is QueueStatus.failed
    assert story.status("GH-1") == "failed"


@pytest.mark.requirement("R176")
def test_retry_keeps_the_failure_in_the_history_of_the_item_and_the_feedback_of_the_issue(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")
    story.failed("S-1", "no such table")

    story.happened(*queue_rules.retried(story.tracker, story.at))

    item, issue = story.items["S-1"], story.tracker.issues["GH-1"]
    assert (item.status, item.failure, issue.status) == ("pending", None, "queued")
    assert [failure.message for failure in item.failure_history] == ["no such table"]
    assert [(said.type, said.stage, said.content) for said in issue.feedback] == [
        ("failure", "execute", "no such table")
    ]
    assert story.queue.status is QueueStatus.active


def test_retry_of_one_issue_leaves_the_others(story: Story) -> None:
    story.planned("GH-1")
    story.planned("GH-2")
    story.queued("GH-1", "GH-2")
    story.failed("S-1")
    story.failed("S-2")

    story.happened(*queue_rules.retried(story.tracker, story.at, "GH-2"))

    assert [item.status.value for item in story.items.values()] == ["failed", "pending"]


def test_retry_of_everything_makes_each_queue_with_failed_items_active_again(story: Story) -> None:
    for name in ("GH-1", "GH-2", "GH-3"):
        story.planned(name)
        story.happened(*queue_rules.added(story.tracker, [name], story.at, to_new=True))
        story.failed("S-1")

    story.happened(*queue_rules.retried(story.tracker, story.at))

    assert {queue.id for queue in active_queues(story.tracker)} == set(story.tracker.queues)


def test_an_archived_queue_that_is_chosen_is_worked_on_again(story: Story) -> None:
    story.planned("GH-1")
    story.queued("GH-1")
    story.happened(*queue_rules.archived(story.tracker, story.queue.id))
    assert next_item(story) is None

    story.happened(*queue_rules.activated(story.tracker, list(story.tracker.queues)))

    assert next_item(story) == "S-1"


def test_an_item_can_be_named_together_with_its_queue(story: Story) -> None:
    for name in ("GH-1", "GH-2"):
        story.planned(name)
        story.happened(*queue_rules.added(story.tracker, [name], story.at, to_new=True))
    first, second = story.tracker.queues

    found = queue_rules.find_item

    assert found(story.tracker, "S-1").queue_id == second
    assert found(story.tracker, f"{first}:S-1").item.issue_id == "GH-1"
    with pytest.raises(UserError, match='no item "S-9"'):
        found(story.tracker, "S-9")


@pytest.mark.requirement("R175")
def test_the_graph_lists_what_is_ready_and_batches_without_common_files(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.planned("GH-2", "a.py", "b.py")
    story.planned("GH-3", "c.py")
    story.planned("GH-4", after=["GH-1"])
    story.queued("GH-1", "GH-2", "GH-3", "GH-4")

    graph = dependency_graph(QueueView(story.queue, story.items))

    assert [node["id"] for node in graph["nodes"] if node["ready"]] == ["S-1", "S-2", "S-3"]
    assert graph["parallel_batches"] == [["S-1", "S-3"], ["S-2"]]
    assert graph["edges"] == [{"from": "S-1", "to": "S-4"}]
    assert graph["nodes"][3]["blocked_by"] == ("S-1",)


@pytest.mark.requirement("R175")
def test_a_queue_with_groups_has_the_batches_of_its_groups(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.planned("GH-2", "a.py")
    story.planned("GH-3", "b.py")
    story.formed("GH-1", "GH-2", "GH-3")

    graph = dependency_graph(QueueView(story.queue, story.items))

    assert [group.items for group in story.queue.groups] == [("S-1",), ("S-3",), ("S-2",)]
    assert graph["parallel_batches"] == [["S-1"], ["S-3"]]
    assert story.queue.conflicts[0].files == ("a.py",)


def test_merging_a_queue_moves_what_the_other_does_not_have_and_archives_it(story: Story) -> None:
    for names in (["GH-1", "GH-2"], ["GH-2", "GH-3"]):
        for name in names:
            if name not in story.tracker.issues:
                story.planned(name)
        story.happened(*queue_rules.added(story.tracker, names, story.at, to_new=True))
    first, second = story.tracker.queues

    story.happened(*queue_rules.merged(story.tracker, second, first))

    assert [item.issue_id for item in story.tracker.items[first].values()] == ["GH-1", "GH-2", "GH-3"]
    assert story.tracker.queues[second].status is QueueStatus.archived


def test_what_is_moved_into_another_queue_waits_for_what_that_queue_has_already(story: Story) -> None:
    story.planned("GH-1")
    story.planned("GH-2", after=["GH-1"])
    for names in (["GH-1"], ["GH-1", "GH-2"]):
        story.happened(*queue_rules.added(story.tracker, names, story.at, to_new=True))
    first, second = story.tracker.queues

    story.happened(*queue_rules.merged(story.tracker, second, first))

    waiting = {item.issue_id: item.place.depends_on for item in story.tracker.items[first].values()}
    assert waiting == {"GH-1": (), "GH-2": ("S-1",)}


def test_a_queue_that_was_over_is_not_over_with_what_is_moved_into_it(story: Story) -> None:
    for name in ("GH-1", "GH-2"):
        story.planned(name)
        story.happened(*queue_rules.added(story.tracker, [name], story.at, to_new=True))
    first, second = story.tracker.queues
    story.done(f"{first}:S-1")

    story.happened(*queue_rules.merged(story.tracker, second, first))

    assert story.tracker.queues[first].status is QueueStatus.active


def test_what_is_added_to_a_queue_with_groups_leaves_the_order_of_common_files(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.planned("GH-2", "a.py", after=["GH-3"])
    story.formed("GH-1", "GH-2")
    story.planned("GH-3")

    story.queued("GH-3")

    assert story.items["S-2"].place.depends_on == ("S-1", "S-3")


def test_what_would_make_items_wait_for_each_other_is_not_added(story: Story) -> None:
    story.planned("GH-1", "a.py", after=["GH-3"], priority=5)
    story.planned("GH-2", "a.py")
    story.formed("GH-1", "GH-2")
    story.planned("GH-3", after=["GH-2"])

    with pytest.raises(UserError, match="in a circle: GH-1 -> GH-3 -> GH-2 -> GH-1"):
        story.queued("GH-3")


def test_an_item_of_another_tool_whose_issue_is_gone_does_not_stop_the_queue(story: Story) -> None:
    unknown = QueueItem(item_id="S-1", issue_id="ISS-1", solution_id="SOL-1", place=Placement(order=1))
    story.happened(QueueFormed(Queue(id="QUE-1"), (unknown,)))
    story.planned("GH-1")

    story.queued("GH-1")

    assert list(story.items) == ["S-1", "S-2"]
