"""The demo of the issue team: its issues, and whether the planted defects were found."""

from iterdev.core.session.state import State
from iterdev.core.types import Status
from iterdev.teams.issues.roles import Verdict
from iterdev.teams.issues.state import issue_part, resolved

DEFECTS = "One plan is rejected at first, and one change breaks a test of the project."
ISSUES = (
    {"id": "GH-1", "title": "A refund of 1.95 is printed as -2.05", "priority": 4},
    {"id": "GH-2", "title": "The receipt does not say how many articles there are"},
    {"id": "GH-3", "title": "Prices cannot be read from text", "context": '"12.05" should become 1205 cents.'},
    {"id": "GH-4", "title": "Cash totals should be rounded to five cents"},
    {"id": "GH-5", "title": "A cart cannot be sorted by price"},
)
REVISED, BROKEN = "GH-3", "GH-4"


def found_and_fixed(state: State) -> bool:
    """The rejected plan was revised and built, the change that breaks a test was not, and all others were."""
    part = issue_part(state)
    verdicts = [{one.issue_id: one.verdict for one in found.verdicts}[REVISED] for found in part.audits.values()]
    revised = verdicts == [Verdict.rejected, Verdict.approved] and not part.forced
    built = set(resolved(state)) == {str(one["id"]) for one in ISSUES} - {BROKEN}
    return revised and built and state.tasks.count(Status.failed) == 1
