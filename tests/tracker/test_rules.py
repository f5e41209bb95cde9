import pytest
from tests.tracker.conftest import Story, solution

from iterdev.core.errors import UserError
from iterdev.tracker import documents, rules, views
from iterdev.tracker.issues import Description, IssueStatus


def test_a_second_issue_of_the_same_id_is_refused_unless_it_replaces_the_first(story: Story) -> None:
    story.issue("GH-1")
    again = Description(title="Again")

    with pytest.raises(UserError, match="already"):
        rules.created(story.tracker, again, 0, name="GH-1")

    story.happened(*rules.created(story.tracker, again, story.at, name="GH-1", replaces=True))
    assert story.tracker.issues["GH-1"].description.title == "Again"


@pytest.mark.requirement("R173")
def test_binding_a_solution_unbinds_the_others_and_plans_the_issue(story: Story) -> None:
    story.planned("GH-1", "a.py")
    story.happened(*rules.solved(story.tracker, "GH-1", solution(""), story.at))

    story.happened(*rules.bound(story.tracker, "GH-1", "SOL-GH-1-2"))

    found = documents.solution_documents(views.issue_view(story.tracker, story.tracker.issues["GH-1"]))
    assert [(one["id"], one["is_bound"]) for one in found] == [("SOL-GH-1-1", False), ("SOL-GH-1-2", True)]
    assert story.status("GH-1") == "planned"


def test_binding_the_bound_solution_changes_nothing(story: Story) -> None:
    story.planned("GH-1")

    assert rules.bound(story.tracker, "GH-1", "SOL-GH-1-1") == ()


def test_a_solution_that_the_issue_does_not_have_cannot_be_bound(story: Story) -> None:
    story.planned("GH-1")

    with pytest.raises(UserError, match='has no solution "SOL-GH-1-7"'):
        rules.bound(story.tracker, "GH-1", "SOL-GH-1-7")


@pytest.mark.requirement("R173")
def test_a_completed_issue_moves_to_the_history_and_comes_back_when_it_is_opened_again(story: Story) -> None:
    story.issue("GH-1")

    story.happened(*rules.moved(story.tracker, "GH-1", IssueStatus.completed))

    assert [issue.id for issue in views.history(story.tracker)] == ["GH-1"]
    assert views.issue_list(story.tracker).issues == ()
    story.happened(*rules.moved(story.tracker, "GH-1", IssueStatus.registered))
    assert views.history(story.tracker) == ()


@pytest.mark.requirement("R145")
def test_all_pending_takes_the_registered_issues(story: Story) -> None:
    story.issue("GH-1")
    story.planned("GH-2")
    story.issue("GH-3")

    assert [issue.id for issue in rules.waiting(story.tracker)] == ["GH-1", "GH-3"]


def test_an_issue_keeps_the_times_of_what_happened_to_it(story: Story) -> None:
    story.planned("GH-1")
    planned = story.at
    story.queued("GH-1")
    queued = story.at
    story.done("S-1")

    issue = story.tracker.issues["GH-1"]
    assert (issue.planned_at, issue.queued_at, issue.completed_at) == (planned, queued, story.at)


def test_issues_of_a_queue_can_be_marked_as_queued_again(story: Story) -> None:
    story.planned("GH-1")
    story.planned("GH-2")
    story.queued("GH-1")
    story.happened(*rules.moved(story.tracker, "GH-1", IssueStatus.paused))

    story.happened(*rules.synchronized(story.tracker, story.queue.id))

    assert story.status("GH-1") == "queued"
    assert rules.planned_outside(story.tracker, story.queue.id) == ("GH-2",)


@pytest.mark.parametrize("number", [0, 6, -1])
def test_a_priority_outside_of_1_to_5_is_refused(story: Story, number: int) -> None:
    with pytest.raises(UserError, match=f'"{number}" is not a priority'):
        rules.created(story.tracker, Description(title="x", priority=number), 0)
