from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import CRITICAL, design, review, started, task, team_started

from iterdev.core.collaboration.checkpoints import CheckpointRestored, CheckpointSaved
from iterdev.core.collaboration.external_packages import (
    PackageCheck,
    PackagesOverridden,
    PackagesRechecked,
    PackageStatus,
    PackageUpdate,
    PackageUpdateFound,
)
from iterdev.core.collaboration.feedback import (
    Feedback,
    FeedbackGiven,
    FeedbackLinked,
    FeedbackMoved,
    FeedbackPlanned,
    FeedbackStatus,
)
from iterdev.core.collaboration.locks import (
    DeadlockBroken,
    LockExpired,
    LockGranted,
    LockRefused,
    LockReleased,
    LockRenewed,
    LockWaitEnded,
)
from iterdev.core.collaboration.messages import Announced, MessageDeleted, MessagesCleared, MessageSent
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified, DebtMoved, DebtStatus, Effort
from iterdev.core.collaboration.wisdom import WisdomInherited, WisdomNoted, WisdomRejected, note
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.limits.budget import DaySpent
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.limits.providers import AgentReplaced, ProviderAnswered, ProviderPaused
from iterdev.core.policy import DebtRule, Policy
from iterdev.core.results import Dependency, Discovery, Usage
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted, AcceptUndone, Notified, PullRequestOpened
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded, LandingTestStarted
from iterdev.core.types import AcceptStyle, ConflictStrategy, Severity, Status, TaskId
from iterdev.core.verification import SuiteReport, Verification
from iterdev.store.journal import EventCodec
from iterdev.teams.development import events as team_events
from iterdev.teams.development.roles import Pipeline, Role, Signal

CODEC = EventCodec()
DEV = TaskId("DEV-001")
DONE = events.Done(
    findings="all of it",
    commit="c" * 40,
    changed=("a b.py", "中.py"),
    usage=Usage(input_tokens=1, output_tokens=2, cost_usd=0.25),
    discoveries=(Discovery("convention", {"name": "tabs", "deep": {"list": [1, None, True, 2.5]}}),),
    dependencies=(Dependency(name="lib", version_range=">=1"),),
    resolved_debt=("TD-1",),
)
CHECK = PackageCheck(
    name="lib", version_range=">=1", source="pip", actual_version=None, status=PackageStatus.missing, reason="not there"
)
PLAN = events.Gate(kind="plan", question="Run it?", choices=("yes", "no"))
NOTE = note("issues", "slow", session="s", task="DEV-001", commit="c", at=1.5)


def ended(outcome: events.Outcome, status: Status, **more: object) -> events.AttemptEnded:
    return events.AttemptEnded(task=DEV, number=1, agent="mine", requests=2, outcome=outcome, status=status, **more)


EXAMPLES: tuple[events.Event, ...] = (
    started(),
    events.PolicyChanged(Policy(auto=True, concurrency=7, debt=DebtRule(severity=Severity.high, sprints=2))),
    events.GateOpened(PLAN),
    events.GateAnswered("plan", "yes"),
    events.AnswerApplied("plan"),
    events.TasksAdded((task("DEV-001"), task("GC-CHECK-001", "DEV-001", round=2))),
    events.TasksReplanned((task("VERIFY-001", "DEV-001"),)),
    events.TableEdited((events.RowEdit(task=task("DEV-001"), status=Status.skipped, findings="no"),)),
    events.TasksReset((DEV,)),
    events.TasksRemoved((DEV,)),
    events.RetryRequested(),
    events.UpdateRequested(branch="main", commit="c" * 40),
    events.UpdateStarted(TaskId("UPDATE-001"), "c" * 40),
    events.WaveStarted(2),
    events.WaveMerged(2),
    events.AttemptStarted(DEV, 1, "mine", "b" * 40),
    events.AttemptPlaced(DEV, 1, "builder-1"),
    ended(DONE, Status.landing),
    ended(events.Failed(error="no", kind=FailureKind.not_logged_in), Status.failed, error="no"),
    ended(events.Limited(error="429", reset_at=12.5), Status.pending),
    ended(events.Interrupted(commit="c"), Status.pending, denied=("Bash: make",)),
    ended(events.Interrupted(problem="the disk is full"), Status.pending),
    ended(events.Unmet(), Status.pending, checked=(CHECK,), blocked_by=(CHECK,)),
    events.Landed(task=DEV, tip="c" * 40, changed=("a.py",), status=Status.completed),
    events.LandingRefused(
        task=DEV,
        files=("a.py",),
        tip="c" * 40,
        conflict=events.Conflict(files=("a.py",), others=(TaskId("DEV-002"),), merged=False),
    ),
    LandingTestStarted(tasks=(DEV, TaskId("DEV-002")), tip="c" * 40, commit="d" * 40),
    LandingTestEnded(
        tasks=(DEV,), tip="c" * 40, passed=False, verification=Verification(pass_rate=0.5, failures=("test_a",))
    ),
    LandingTakenOut(task=DEV, commit="c" * 40, error="test_a fails", output="E assert", status=Status.pending),
    events.ConflictResolved(
        task=DEV, strategy=ConflictStrategy.manual, fix=TaskId("DEV-001-fix-conflict"), status=Status.completed
    ),
    events.RollbackStarted(
        target="DEV-001",
        snapshot="snapshot-DEV-001-1",
        tip="c" * 40,
        rows=(task("DEV-001"),),
        removed=(TaskId("DEV-fix-1"),),
        answers={"plan": events.Answer(PLAN, "yes")},
        reason="not wanted",
    ),
    events.RollbackCompleted("snapshot-DEV-001-1"),
    events.RollbackFailed("snapshot-DEV-001-1", "the disk is full"),
    events.TaskFailed(DEV, "late"),
    events.TaskSkipped(DEV, "not wanted"),
    events.TaskCompleted(DEV, "nothing left"),
    events.TaskReported(task=DEV, findings="it is there"),
    events.WorkerStarted(Role.developer),
    events.WorkerEnded(Role.developer, (DEV,)),
    MessageDeleted(7),
    MessagesCleared(),
    MessageSent(
        sender="developer", to="all", kind="state_update", summary="half way", data={"deep": [1, {"a": None}]}, task=DEV
    ),
    Announced(sender="coordinator", to="all", kind="error", summary="careful", data={"task": DEV}, number=7),
    events.EnvironmentMade("Node: made by `npm ci` in 1 s: 1 package: ms@2.1.3"),
    events.Warned("\u2028 \0 ü 😀"),
    events.EngineStarted(4711, "c" * 40),
    ProviderPaused("anthropic", 12.5, "429", 2),
    ProviderAnswered("anthropic"),
    AgentReplaced(task=DEV, agent="mine", successor="other", error="not installed", for_every_task=True),
    DaySpent(86400.0, Usage(cost_usd=0.25)),
    ClockChanged(-3600.0),
    events.Paused("interrupted"),
    events.Finished(),
    Accepted("main", "c" * 40, before="b" * 40, work="a" * 40, style=AcceptStyle.squash, own_author=True),
    AcceptUndone("main", "b" * 40),
    Notified({"ready the session": "2 tasks completed"}, ("question plan 1.000",)),
    PullRequestOpened(branch="iterdev/x", url="https://github.com/o/r/pull/3", number=3, head="a" * 40),
    events.Archived("/elsewhere"),
    events.Kept(),
    events.Reopened(),
    LockGranted(resource="a b", task=DEV, role="developer", until=12.5),
    LockRenewed(resource="a b", task=DEV, until=12.5),
    LockRefused(resource="a b", task=DEV, role="developer", holder=TaskId("DEV-002"), until=12.5),
    LockWaitEnded(resource="a b", task=DEV),
    LockReleased(resource="a b", task=DEV),
    LockExpired(resource="a b", task=DEV, role="tester"),
    DeadlockBroken(task=DEV, others=(TaskId("DEV-002"),), resource="a b"),
    CheckpointSaved(task=DEV, pointer="checkpoints/DEV-001-1.json"),
    CheckpointRestored(task=DEV, pointer="checkpoints/DEV-001-1.json", saved_at=12.5),
    FeedbackGiven(Feedback(feedback_id="FB-1", description="too 慢", timestamp=12.5, source_task_id=DEV), ("FB-0",)),
    FeedbackLinked(feedback_id="FB-1", task=DEV),
    FeedbackPlanned(feedback_id="FB-1", tasks=(DEV,)),
    FeedbackMoved(feedback_id="FB-1", status=FeedbackStatus.addressed),
    DebtIdentified(Debt(debt_id="TD-1", description="copied", detection_date=1.5, estimated_effort=Effort.large)),
    DebtMoved(debt_id="TD-1", status=DebtStatus.resolved, sprint=2),
    PackagesOverridden(DEV, (CHECK,)),
    PackagesRechecked(DEV),
    PackageUpdateFound(
        PackageUpdate(name="lib", source="git", version_range="v1", actual_version="v1", newest="v2", found_by=DEV),
    ),
    WisdomNoted((NOTE,)),
    WisdomInherited((NOTE,), {"W-1": "no"}),
    WisdomRejected("W-1", "no"),
    team_started(team_events.Thresholds(rounds=1, passing_score=7.5)),
    team_events.FixRequested((DEV,)),
    team_events.ThresholdsChanged(team_events.Thresholds(batch=2)),
    team_events.PipelineChosen(Pipeline.multi_sprint),
    team_events.DesignAccepted(task=TaskId("DESIGN-001"), design=design(), revised=True),
    team_events.ReviewScored(
        task=DEV, review=review(8.5, CRITICAL), score=8.5, signal=Signal.revision_needed, grade=Severity.high
    ),
    team_events.TestsMeasured(
        task=DEV,
        verification=Verification(command="pytest", pass_rate=0.5, total=2, failures=("t",)),
        iterations=3,
        failed=True,
    ),
    team_events.BaselineMeasured((SuiteReport(command="pytest", exit_code=1, failed=("t",), counted=True),)),
    team_events.VerdictEdited(task=DEV, score=7.5, signal=Signal.converged, judged=True),
    team_events.RoundStarted(sprint=1, number=2, raised_by=(DEV,), why="a score of 4"),
    team_events.Reverified(DEV),
    team_events.ReviewPassed(DEV),
    team_events.ConvergenceForced(sprint=1, raised_by=(DEV,), problems=("open",), rounds=3),
    team_events.RoundDecided(task=DEV, decision="REVISION", number=1),
    team_events.SprintEnded(
        1,
        team_events.SprintRecord(
            pipeline=Pipeline.multi_sprint, expected=6, velocity=5, mean_score=None, rounds=2, unsuccessful=(DEV,)
        ),
    ),
    team_events.SprintStarted(2, "the second milestone"),
    team_events.SprintRestored(sprint=1, rounds={1: 2}, forced=(1,), unjudged=(DEV,)),
)


def test_every_kind_of_event_has_an_example_here() -> None:
    assert {type(example) for example in EXAMPLES} == {*get_args(events.KernelEvent), *team_events.EVENTS}


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: events.Event) -> None:
    assert CODEC.decode(CODEC.encode(event)) == event


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert CODEC.decode(CODEC.encode(events.Warned(text))) == events.Warned(text)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"type":"Failed","error":"no"}', events.Failed(error="no", kind=None)),
        (b'{"type":"Limited","error":"429","reset_at":12.5}', events.Limited(error="429", reset_at=12.5)),
        (b'{"type":"Interrupted","commit":"c"}', events.Interrupted(commit="c")),
    ],
)
def test_an_outcome_of_an_earlier_version_is_still_read(body: bytes, outcome: events.Outcome) -> None:
    facts = b'"task":"DEV-001","number":1,"agent":"mine","requests":2,"status":"pending"'
    written = b'{"type":"AttemptEnded",' + facts + b',"outcome":' + body + b"}"

    assert CODEC.decode(written) == ended(outcome, Status.pending)


def test_rules_of_an_earlier_version_are_still_read() -> None:
    assert CODEC.decode(b'{"type":"PolicyChanged","policy":{"auto":true}}') == events.PolicyChanged(Policy(auto=True))


def test_a_field_that_a_later_version_added_is_passed_over() -> None:
    assert CODEC.decode(b'{"type":"Warned","text":"careful","colour":"red"}') == events.Warned("careful")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"type":"Unheard"}', b'{"type":"Landed","task":7,"tip":"c"}'])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        CODEC.decode(body)
