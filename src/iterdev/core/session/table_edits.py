"""What an edit of the table may say while agents are at work, who can write it as well as a person can.

It may change the plan. Results come from attempts alone, and tasks from a person or from the team's own rules.
"""

from iterdev.core.session.events import RowEdit
from iterdev.core.types import Status

RESULTS = (Status.completed, Status.failed)


def claim(row: RowEdit, *known: RowEdit) -> str:
    """What a changed row claims, in a few words; empty if it only changes the plan.

    Known is the row as it is, and as it was when it was last written; there is none of a task that nobody planned.
    """
    name = row.task.id
    if not known:
        return f"{name} is new"
    if row.status in RESULTS and row.status not in {other.status for other in known}:
        return f"{name} is said to be {row.status}"
    for column, told, before in (
        ("findings", row.findings, {other.findings for other in known}),
        ("review_score", row.score, {other.score for other in known}),
        ("gc_signal", row.signal, {other.signal for other in known}),
    ):
        # Whoever has a task done again empties what came of it.
        if told not in before and (told or row.status in RESULTS):
            return f"{name} has another {column}"
    return ""
