"""The development team's part of the state, and how it is folded."""

from collections.abc import Iterable, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import Draft, OwnMap
from iterdev.core.session.events import RollbackStarted, TableEdited, TaskReported, TasksReset
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Severity, Status, TaskId, TeamState
from iterdev.core.verification import SuiteReport
from iterdev.teams.development import events
from iterdev.teams.development.events import EVENTS, SprintRecord, TestsMeasured, Thresholds
from iterdev.teams.development.requirement_analysis import Analysis, analyse
from iterdev.teams.development.results import Design, Review
from iterdev.teams.development.roles import Pipeline, Role, Signal, fields

FOLDED = frozenset({*EVENTS, TableEdited, TasksReset, TaskReported, RollbackStarted})


class Verdict(Struct, frozen=True, kw_only=True):
    score: float | None = None
    signal: Signal | None = None
    grade: Severity = Severity.low
    review: Review | None = None
    """None if only the row of tasks.csv is known."""


class Development(TeamState, Struct, frozen=True, kw_only=True):
    analysis: Analysis = analyse("")
    pipeline: Pipeline | None = None
    thresholds: Thresholds = Thresholds()
    sprint: int = 1
    sprints: Mapping[int, SprintRecord] = {}
    """How the sprints went that are over."""
    rounds: Mapping[int, int] = {}
    """Fix rounds used, by sprint."""
    forced: tuple[int, ...] = ()
    """Sprints whose convergence was forced."""
    designs: Mapping[TaskId, Design] = {}
    revised: Mapping[TaskId, None] = {}
    """Designs that took the place of an earlier one of their sprint."""
    verdicts: Mapping[TaskId, Verdict] = {}
    withdrawn: Mapping[TaskId, Verdict] = {}
    """Verdicts of tasks that are to be done again; they count again if a worker reports that the output is there."""
    test_runs: Mapping[TaskId, TestsMeasured] = {}
    baseline: tuple[SuiteReport, ...] = ()
    """The test runs on the session's base, if they have been made."""
    baseline_of: str = ""
    """The commit that the baseline was measured on."""
    judged: Mapping[TaskId, None] = {}
    """Reviews and verifications whose consequences have been recorded."""
    unjudged: Mapping[TaskId, None] = {}
    """Those whose consequences have not; they count when their task is completed."""
    decisions: Mapping[TaskId, str] = {}
    """Of controller tasks."""
    fix_requested: tuple[TaskId, ...] = ()
    """Verdicts after which the user wants another round, until it has begun."""

    @property
    def round(self) -> int:
        return self.rounds.get(self.sprint, 0)

    @property
    def reviews(self) -> dict[TaskId, Review]:
        return {task: verdict.review for task, verdict in self.verdicts.items() if verdict.review}


def development(state: State) -> Development:
    return cast("Development", state.team)


def rows_of(state: State, role: Role, sprint: int) -> list[Task]:
    """The tasks of a role in a sprint, in the order of the table."""
    return [task for task in state.tasks.of_role(role) if fields(task).sprint == sprint]


class DevelopmentDraft(Draft[Development]):
    _designs = OwnMap[TaskId, Design]()
    _revised = OwnMap[TaskId, None]()
    _verdicts = OwnMap[TaskId, Verdict]()
    _withdrawn = OwnMap[TaskId, Verdict]()
    _test_runs = OwnMap[TaskId, TestsMeasured]()
    _judged = OwnMap[TaskId, None]()
    _unjudged = OwnMap[TaskId, None]()
    _decisions = OwnMap[TaskId, str]()

    def apply(self, event: object, _: float, __: int) -> None:
        match event:
            case events.DesignAccepted(task=task, design=design, revised=revised):
                self._designs[task] = design
                if revised:
                    self._revised[task] = None
            case events.ReviewScored(task=task, review=review, score=score, signal=signal, grade=grade):
                self._verdicts[task] = Verdict(score=score, signal=signal, grade=grade, review=review)
                self._await_judgement(task)
            case TestsMeasured(task=task):
                self._test_runs[task] = event
                self._await_judgement(task)
            case events.VerdictEdited(task=task, score=score, signal=signal, judged=judged):
                before = self.part.verdicts.get(task, Verdict())
                self._verdicts[task] = replace(before, score=score, signal=signal)
                if signal and not judged:
                    self._await_judgement(task)
            case events.Reverified(task) | events.ReviewPassed(task):
                self._judge([task])
            case events.RoundDecided(task=task, decision=decision):
                self._decisions[task] = decision
            case TableEdited(rows):
                self._reset(row.task.id for row in rows if row.status is Status.pending)
            case TasksReset(tasks):
                self._reset(tasks)
                self.set(sprints=self._sprints_before(self.part.sprint))
            case TaskReported(task=task):
                self._restore(task)
            case RollbackStarted(undone=undone):
                self._forget(undone)
            case _:
                self._set(event)

    def _set(self, event: object) -> None:
        match event:
            case events.TeamStarted(analysis=analysis, pipeline=pipeline, thresholds=thresholds):
                self.set(analysis=analysis, pipeline=pipeline, thresholds=thresholds)
            case events.ThresholdsChanged(thresholds):
                self.set(thresholds=thresholds)
            case events.PipelineChosen(pipeline):
                self.set(pipeline=pipeline)
            case events.BaselineMeasured(reports, base):
                self.set(baseline=reports, baseline_of=base)
            case events.RoundStarted(sprint=sprint, number=number, raised_by=tasks):
                forced = tuple(other for other in self.part.forced if other != sprint)
                self.set(rounds={**self.part.rounds, sprint: number}, forced=forced, fix_requested=())
                self._judge(tasks)
            case events.ConvergenceForced(sprint=sprint, raised_by=tasks):
                self.set(forced=(*self.part.forced, sprint))
                self._judge(tasks)
            case events.FixRequested(requested):
                self.set(fix_requested=requested)
                for task in requested:
                    self._await_judgement(task)
            case events.SprintEnded(sprint, record):
                self.set(sprints={**self.part.sprints, sprint: record})
            case events.SprintStarted(sprint):
                self.set(sprint=sprint)
            case events.SprintRestored(sprint=sprint, rounds=rounds, forced=forced, unjudged=unjudged):
                self.set(sprint=sprint, sprints=self._sprints_before(sprint), rounds=rounds, forced=forced)
                for task in unjudged:
                    self._judged.pop(task, None)
                    # The rollback may have undone the task, and with it the verdict.
                    if task in self.part.verdicts or task in self.part.test_runs:
                        self._unjudged[task] = None
            case _:
                raise TypeError(event)

    def _sprints_before(self, sprint: int) -> Mapping[int, SprintRecord]:
        return {number: record for number, record in self.part.sprints.items() if number < sprint}

    def _await_judgement(self, task: TaskId) -> None:
        self._judged.pop(task, None)
        self._unjudged[task] = None

    def _judge(self, tasks: Iterable[TaskId]) -> None:
        for task in tasks:
            self._judged[task] = None
            self._unjudged.pop(task, None)

    def _reset(self, tasks: Iterable[TaskId]) -> None:
        """A task that is run again is judged again."""
        for task in tasks:
            self._judged.pop(task, None)
            self._unjudged.pop(task, None)
            verdict = self.part.verdicts.get(task)
            if verdict and verdict.signal:
                self._withdrawn[task] = verdict
                self._verdicts[task] = replace(verdict, score=None, signal=None)

    def _restore(self, task: TaskId) -> None:
        if task in self.part.withdrawn:
            self._verdicts[task] = self._withdrawn.pop(task)
        if task in self.part.verdicts or task in self.part.test_runs:
            self._await_judgement(task)

    def _forget(self, tasks: Iterable[TaskId]) -> None:
        owned = (
            self._judged, self._unjudged, self._decisions, self._designs, self._revised, self._verdicts,
            self._withdrawn, self._test_runs,
        )  # fmt: skip
        for task in tasks:
            for one in owned:
                one.pop(task, None)
