"""What the entries of a session mean for the tracker: solutions, bindings, and the statuses of issues.

The tracker's own queues are for people and other programs; a session has its queue in its own folder. A rule returns no
events for an issue that is gone.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from iterdev.core.session import events as kernel
from iterdev.core.session.events import Entry
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.types import UNSUCCESSFUL, Status, TaskId
from iterdev.teams.issues import audit, events
from iterdev.teams.issues.roles import Role
from iterdev.teams.issues.state import issue_part, issues_of_build, resolved
from iterdev.tracker import rules
from iterdev.tracker.events import TrackerEvent
from iterdev.tracker.issues import Feedback, FeedbackType, IssueStatus, Stage
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker, TrackerRule

ENDS = (
    kernel.AttemptEnded, kernel.Landed, kernel.LandingRefused, kernel.ConflictResolved, kernel.TaskCompleted,
    kernel.TaskReported, kernel.TaskFailed, kernel.TaskSkipped, LandingTakenOut,
)  # fmt: skip
"""The events with which a task can end."""


def tracker_rules(state: State, entry: Entry) -> Iterator[TrackerRule]:
    match entry.event:
        case events.TeamStarted(issues=issues):
            yield from (partial(_moved, issue.id, IssueStatus.planning) for issue in issues)
        case events.SolutionsPlanned(solutions=planned):
            yield from (partial(_added, issue, one) for issue, found in planned.items() for one in found)
        case events.SolutionChosen(issue, solution):
            yield partial(_bound, issue, solution)
        case events.AuditScored() as found:
            text = "; ".join(audit.objections(found))
            feedback = Feedback(type=FeedbackType.rejection, stage=Stage.plan, content=text)
            yield from (partial(_commented, issue, feedback) for issue in audit.rejected(found))
        case events.QueueFormed(order=order):
            yield from (partial(_moved, one.candidate.issue_id, IssueStatus.queued) for one in order.entries)
        case kernel.AttemptStarted(task=task):
            yield from (partial(_moved, issue, IssueStatus.executing) for issue in issues_of_build(state, task))
        case kernel.RollbackStarted(undone=undone):
            undoing = (issue for task in undone for issue in issues_of_build(state, task))
            yield from (partial(_moved, issue, IssueStatus.queued) for issue in dict.fromkeys(undoing))
        case kernel.Finished(why):
            yield from (rule for issue in _unbuilt(state) for rule in _left(state, issue, ended_early=bool(why)))
        case event if isinstance(event, ENDS):
            yield from (
                rule for issue in issues_of_build(state, event.task) for rule in _ended(state, event.task, issue)
            )
        case _:
            return


def _ended(state: State, task: TaskId, issue: str) -> Iterator[TrackerRule]:
    if state.tasks.status(task) in UNSUCCESSFUL:
        feedback = Feedback(type=FeedbackType.failure, stage=Stage.execute, content=_cause(state, task))
        yield partial(_moved, issue, IssueStatus.failed)
        yield partial(_commented, issue, feedback)
    elif issue in resolved(state) and not state.conflicts.unresolved:
        yield partial(_moved, issue, IssueStatus.completed)


def _cause(state: State, task: TaskId) -> str:
    """Why a task did not succeed: if it was skipped, the error of the task that failed before it."""
    before = (one for one in state.tasks.ancestors(task) if state.tasks.status(one) is Status.failed)
    failed = task if state.tasks.status(task) is Status.failed else next(before, task)
    error = state.tasks.progress[failed].error or "not built"
    return error if failed == task else f"{failed} failed: {error}"


def _unbuilt(state: State) -> list[str]:
    """The issues of which no task that builds them has ended."""
    ended = {
        issue
        for task in state.tasks.of_role(Role.implementer)
        if state.tasks.status(task.id).is_final
        for issue in issues_of_build(state, task.id)
    }
    return [issue for issue in issue_part(state).issues if issue not in ended]


def _left(state: State, issue: str, *, ended_early: bool) -> Iterator[TrackerRule]:
    """A session that the user ended leaves its issues to others; one that failed before it built them says why."""
    failed = (progress.error for _, progress in state.tasks.rows() if progress.status is Status.failed)
    if ended_early:
        yield partial(_released, issue)
    else:
        feedback = Feedback(type=FeedbackType.failure, stage=Stage.plan, content=next(failed, "not built"))
        yield partial(_moved, issue, IssueStatus.failed)
        yield partial(_commented, issue, feedback)


def _released(issue: str, tracker: Tracker, _: float) -> Sequence[TrackerEvent]:
    if issue not in tracker.issues:
        return ()
    has_solution = tracker.issues[issue].bound_solution_id is not None
    return rules.moved(tracker, issue, IssueStatus.planned if has_solution else IssueStatus.registered)


def _moved(issue: str, status: IssueStatus, tracker: Tracker, _: float) -> Sequence[TrackerEvent]:
    return rules.moved(tracker, issue, status) if issue in tracker.issues else ()


def _commented(issue: str, feedback: Feedback, tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
    return rules.commented(tracker, issue, feedback, at) if issue in tracker.issues else ()


def _added(issue: str, solution: Solution, tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
    known = solution.id in tracker.solutions.get(issue, {})
    return rules.solved(tracker, issue, solution, at) if issue in tracker.issues and not known else ()


def _bound(issue: str, solution: str, tracker: Tracker, _: float) -> Sequence[TrackerEvent]:
    known = issue in tracker.issues and solution in tracker.solutions.get(issue, {})
    return rules.bound(tracker, issue, solution) if known else ()
