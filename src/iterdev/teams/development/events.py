"""What can have happened to the development team, besides what happens in every session."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.session.events import TeamEvent
from iterdev.core.types import Severity, TaskId
from iterdev.core.verification import SuiteReport, Verification
from iterdev.teams.development.requirement_analysis import Analysis
from iterdev.teams.development.results import Design, Review
from iterdev.teams.development.roles import Pipeline, Signal


class Thresholds(Struct, frozen=True, kw_only=True):
    """The limits and thresholds of the team's rules; journalled, so that every decision can be made again."""

    rounds: int = 3
    """Fix rounds per sprint before convergence is forced."""
    passing_score: float = 7
    """A review below it asks for another round."""
    pass_rate: float = 0.95
    """The part of the tests that must pass."""
    good_score: float = 8
    """The mean score of its reviews with which a sprint went well enough for a plain one to follow."""
    slow: float = 0.5
    """The part of the expected velocity below which the user is warned."""
    batch: int = 5
    """The most items of the breakdown that one developer is given at once."""


class TeamStarted(TeamEvent, frozen=True, kw_only=True, tag=True):
    """What is known before the first task: the analysis of the requirement, and the pipeline if the user named one."""

    analysis: Analysis
    pipeline: Pipeline | None = None
    thresholds: Thresholds = Thresholds()


class ThresholdsChanged(TeamEvent, frozen=True, tag=True):
    thresholds: Thresholds


class PipelineChosen(TeamEvent, frozen=True, tag=True):
    pipeline: Pipeline


class DesignAccepted(TeamEvent, frozen=True, kw_only=True, tag=True):
    task: TaskId
    design: Design
    revised: bool = False
    """It takes the place of an earlier one of its sprint."""


class ReviewScored(TeamEvent, frozen=True, kw_only=True, tag=True):
    task: TaskId
    review: Review
    score: float
    signal: Signal
    grade: Severity
    """Of the verdict: high asks for a round, medium is worth a warning, low passes."""


class TestsMeasured(TeamEvent, frozen=True, kw_only=True, tag=True):
    task: TaskId
    verification: Verification
    iterations: int = 0
    commit: str = ""
    """What was tested."""
    failed: bool
    """The tests ask for a round. Tests that say nothing do not; they are reported as unverified."""


class BaselineMeasured(TeamEvent, frozen=True, tag=True):
    reports: tuple[SuiteReport, ...]
    base: str = ""
    """The commit that they are about; the session's base if it is empty."""


class VerdictEdited(TeamEvent, frozen=True, kw_only=True, tag=True):
    """A score or signal that a person wrote into tasks.csv."""

    task: TaskId
    score: float | None = None
    signal: Signal | None = None
    judged: bool = False
    """What follows from it is in the table already."""


class RoundStarted(TeamEvent, frozen=True, kw_only=True, tag=True):
    sprint: int
    number: int
    raised_by: tuple[TaskId, ...]
    why: str


class FixRequested(TeamEvent, frozen=True, tag=True):
    """The user retries a session whose last verdicts were bad: another round follows, whatever the limit of rounds."""

    tasks: tuple[TaskId, ...]


class Reverified(TeamEvent, frozen=True, tag=True):
    """A failed verification of work that has changed since; another one looks at the newer work."""

    task: TaskId


class ReviewPassed(TeamEvent, frozen=True, tag=True):
    task: TaskId


class ConvergenceForced(TeamEvent, frozen=True, kw_only=True, tag=True):
    sprint: int
    raised_by: tuple[TaskId, ...]
    problems: tuple[str, ...]
    rounds: int
    why: str = ""


class RoundDecided(TeamEvent, frozen=True, kw_only=True, tag=True):
    task: TaskId
    decision: str
    number: int


class SprintRecord(Struct, frozen=True, kw_only=True):
    pipeline: Pipeline
    expected: int
    """The tasks that were planned for it, without those of fix rounds."""
    velocity: int
    """The tasks that were completed in it."""
    mean_score: float | None
    rounds: int
    unsuccessful: tuple[TaskId, ...] = ()
    """Tasks that failed or were skipped."""
    worked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    debt: str = ""
    """The technical debt at its end, in one line."""


class SprintEnded(TeamEvent, frozen=True, tag=True):
    sprint: int
    record: SprintRecord


class SprintStarted(TeamEvent, frozen=True, tag=True):
    sprint: int
    goal: str


class SprintRestored(TeamEvent, frozen=True, kw_only=True, tag=True):
    """A rollback took the session back to this sprint."""

    sprint: int
    rounds: Mapping[int, int]
    forced: tuple[int, ...]
    """Sprints whose convergence had been forced by then."""
    unjudged: tuple[TaskId, ...]
    """Reviews and verifications that stand, and whose consequences had not been drawn yet."""


DECIDED = (
    PipelineChosen, RoundStarted, Reverified, ReviewPassed, ConvergenceForced, RoundDecided, SprintEnded, SprintStarted
)  # fmt: skip
EVENTS: tuple[type, ...] = (
    *DECIDED, TeamStarted, ThresholdsChanged, DesignAccepted, ReviewScored, TestsMeasured, BaselineMeasured,
    FixRequested, VerdictEdited, SprintRestored
)  # fmt: skip
