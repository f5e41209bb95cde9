from tests.tracker.conftest import BEGIN, solution

from iterdev.tracker import events
from iterdev.tracker.events import TrackerEntry
from iterdev.tracker.issues import Description, Issue
from iterdev.tracker.queues import Placement, Queue, QueueItem
from iterdev.tracker.state import evolve, replay


def test_an_issue_and_a_queue_of_the_same_name_do_not_disturb_each_other() -> None:
    item = QueueItem(item_id="S-1", issue_id="Q-1", solution_id="SOL-1", place=Placement(order=1))
    happened = (
        events.IssueCreated(Issue(id="Q-1", description=Description(title="Named as a queue"))),
        events.SolutionAdded("Q-1", solution("SOL-1")),
        events.QueueImported(Queue(id="Q-1"), (item,)),
    )
    before = replay(TrackerEntry(seq, BEGIN, event) for seq, event in enumerate(happened, 1))

    changes = (events.SolutionAdded("Q-1", solution("SOL-2")), events.ItemStarted("Q-1", "S-1"))
    after = evolve(before, [TrackerEntry(seq, BEGIN, event) for seq, event in enumerate(changes, 4)])

    assert (before.items["Q-1"]["S-1"].status, after.items["Q-1"]["S-1"].status) == ("pending", "executing")
    assert (list(before.solutions["Q-1"]), list(after.solutions["Q-1"])) == (["SOL-1"], ["SOL-1", "SOL-2"])
