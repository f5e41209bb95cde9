"""What a team adds to the views and the report: values that every surface can render without knowing the team."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from iterdev.core.session.events import Gate, TeamEvent
from iterdev.core.session.state import State
from iterdev.core.types import Severity, TaskId


class TaskNotes(Struct, frozen=True, kw_only=True):
    artifact: str = ""
    """The file that a completed task left, relative to the session folder."""
    verdict: str = ""
    """The verdict of a completed task, in a few words."""
    unfavourable: bool = False
    """The task is completed, and its verdict asks for more work."""
    asks_agent: bool = True
    """An agent is asked; False while iterdev itself does the work."""
    report: tuple[str, ...] = ()
    """Lines of the report, such as its score."""
    fields: Mapping[str, object] = {}
    """For programs that read the JSON document."""


class TeamView(Struct, frozen=True, kw_only=True):
    pipeline: str = ""
    position: str = ""
    """Where in a longer session the work is, such as "sprint 2 of 3"; empty if there is nothing to say."""
    facts: tuple[tuple[str, str], ...] = ()
    """Lines of the status: a label and a text."""
    steps: tuple[str, ...] = ()
    """What has begun so far, one line each; a new line is worth a line of progress."""
    note: str = ""
    """What the live picture says below the tasks."""
    reservations: tuple[str, ...] = ()
    """What a word such as "completed" does not say."""
    verdicts: tuple[str, ...] = ()
    """What was measured and judged last, one line each: the tests, the review."""
    shortcomings: tuple[str, ...] = ()
    """Why the session is no success although every task is completed, one sentence each."""
    fields: Mapping[str, object] = {}
    """For programs that read the JSON document."""


class FindingView(Struct, frozen=True, kw_only=True):
    """A problem that reviews reported; the same one, reported again, is one finding."""

    id: str
    severity: Severity
    dimension: str
    file: str
    line: int | None
    """In the file as the last of these reviews saw it."""
    text: str
    suggestion: str
    reported_by: tuple[TaskId, ...]
    """The reviews that report it, the first one first."""
    fixed_in: TaskId | None = None
    """The first later review that does not report it any more."""


class ReviewView(Struct, frozen=True, kw_only=True):
    """One review, with what changed since the one before."""

    task: TaskId
    score: float | None
    passed: bool
    verdict: str
    scores: tuple[tuple[str, float], ...] = ()
    """By dimension."""
    fixed: int | None = None
    """Findings of the review before that are gone; None for a first review."""
    still_there: int | None = None
    new: int = 0


class TestRunView(Struct, frozen=True, kw_only=True):
    """One run of the tests, compared with the session's base."""

    task: TaskId
    command: str
    percent: float | None
    """None if the tests say nothing, for the reason in `note`."""
    total: int
    passed: bool
    failures: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    known_failures: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    note: str = ""
    output: str = ""


class TeamReport(Struct, frozen=True, kw_only=True):
    title: str
    header: tuple[tuple[str, str], ...] = ()
    summary: tuple[tuple[str, int], ...] = ()
    overview: str = ""
    """A section after the summary."""
    verdicts: str = ""
    """What was measured, as opposed to what was said; a section."""
    details: str = ""
    """A section about the tasks, in place of the usual one."""
    deliverables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The name of an artifact, and its files relative to the session folder."""


class TeamViews(Protocol):
    def view(self, state: State) -> TeamView:
        return TeamView()

    def task_notes(self, state: State, task: TaskId) -> TaskNotes:
        return TaskNotes()

    def order_reasons(self, state: State, task: TaskId) -> tuple[str, ...]:
        """Why a task comes before or after others, one sentence each."""
        return ()

    def report(self, state: State) -> TeamReport:
        return TeamReport(title="Report")

    def milestone(self, event: TeamEvent) -> str:
        """What one of the team's own events begins, such as a fix round, for a time line; empty for all others."""
        return ""

    def findings(self, state: State) -> tuple[FindingView, ...]:
        """The problems that reviews found, the most severe first."""
        return ()

    def reviews(self, state: State) -> tuple[ReviewView, ...]:
        """The reviews in the order of their tasks."""
        return ()

    def test_runs(self, state: State) -> tuple[TestRunView, ...]:
        """The runs of the tests, in the order of their tasks."""
        return ()

    def choice_descriptions(self, gate: Gate, state: State) -> Mapping[str, str]:
        """What the choices of one of the team's own questions do."""
        return {}

    def listed_choices(self, gate: Gate) -> int:
        """How many choices of a gate are worth a line of their own; the others are variants of the first."""
        return len(gate.choices)
