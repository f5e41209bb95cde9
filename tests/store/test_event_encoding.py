from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import CRITICAL, design, review, started, task

from iterdev.core.collaboration.checkpoints import CheckpointRestored, CheckpointSaved
from iterdev.core.collaboration.external_packages import (
    Checked,
    DependenciesOverridden,
    DependenciesRechecked,
    Standing,
    Update,
    UpdateNeeded,
)
from iterdev.core.collaboration.feedback import (
    Feedback,
    FeedbackGiven,
    FeedbackLinked,
    FeedbackMoved,
    FeedbackStatus,
    FeedbackTakenUp,
)
from iterdev.core.collaboration.locks import (
    DeadlockBroken,
    LockExpired,
    LockForgone,
    LockGranted,
    LockRefused,
    LockReleased,
    LockRenewed,
)
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified, DebtMoved, DebtRule, DebtStatus, Effort
from iterdev.core.collaboration.wisdom import WisdomInherited, WisdomRejected, note
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Dependency, Discovery, TechDebt, Usage, Wisdom
from iterdev.core.session import archive, events
from iterdev.core.types import Pipeline, Role, Severity, Status, Strategy, TaskId
from iterdev.core.verification import SuiteReport, Verification
from iterdev.store import journal

DEV = TaskId("DEV-001")
DONE = events.Done(
    findings="all of it",
    commit="c" * 40,
    changed=("a b.py", "中.py"),
    usage=Usage(input_tokens=1, output_tokens=2, cost_usd=0.25),
    wisdom=Wisdom(learnings=("slow",)),
    discoveries=(Discovery("convention", {"name": "tabs", "deep": {"list": [1, None, True, 2.5]}}),),
    notes=("set aside",),
    design=design(),
    review=review(8.5, CRITICAL),
    verification=Verification(command="pytest", pass_rate=0.5, total=2, failures=("t",)),
    baseline=SuiteReport(command="pytest", exit_code=1, failed=("t",), counted=True),
    iterations=3,
    dependencies=(Dependency(name="lib", version_range=">=1"),),
    tech_debt=("a sentence", TechDebt(description="more", related_files=("a.py",))),
)
LOOK = Checked(
    name="lib", version_range=">=1", source="pip", actual_version=None, status=Standing.missing, reason="not there"
)
EXAMPLES: tuple[events.Event, ...] = (
    started(),
    events.PolicyChanged(events.Policy(auto=True, concurrency=7, debt=DebtRule(severity=Severity.high, sprints=2))),
    events.PipelineChosen(Pipeline.multi_sprint),
    events.GateOpened(events.Gate(id="plan", question="Run it?", choices=("yes", "no"))),
    events.GateAnswered("plan", "yes"),
    events.TasksAdded((task("DEV-001"), task("GC-CHECK-001", "DEV-001", round=2))),
    events.TasksReplanned((task("VERIFY-001", "DEV-001"),)),
    events.SprintEnded(
        1,
        events.SprintRecord(
            pipeline=Pipeline.multi_sprint, expected=6, velocity=5, mean_score=None, rounds=2, lost=(DEV,)
        ),
    ),
    events.SprintStarted(2, "the second milestone"),
    events.TableEdited((events.RowEdit(task=task("DEV-001"), status=Status.skipped, score=7.5),)),
    events.TasksReset((DEV,)),
    events.WaveStarted(2),
    events.WaveMerged(2),
    events.AttemptStarted(DEV, 1, "mine", "b" * 40),
    events.AttemptEnded(DEV, 1, 2, DONE),
    events.AttemptEnded(DEV, 1, 2, events.Failed(error="no", kind=FailureKind.not_logged_in)),
    events.AttemptEnded(DEV, 1, 2, events.Limited(error="429", reset_at=12.5)),
    events.AttemptEnded(DEV, 1, 2, events.Interrupted(commit="c"), denied=("Bash: make",)),
    events.Landed(DEV, "c" * 40),
    events.LandingRefused(DEV, ("a.py",)),
    events.ConflictResolved(task=DEV, strategy=Strategy.manual, fix=TaskId("DEV-001-fix-conflict")),
    events.RollbackStarted(
        target="DEV-001",
        snapshot="snapshot-DEV-001-1",
        tip="c" * 40,
        rows=(task("DEV-001"),),
        removed=(TaskId("DEV-fix-1"),),
        sprint=1,
        rounds={1: 2},
        answers={"plan": "approve"},
    ),
    events.RollbackCompleted("snapshot-DEV-001-1"),
    events.RollbackFailed("snapshot-DEV-001-1", "the disk is full"),
    events.TaskFailed(DEV, "late"),
    events.TaskSkipped(DEV, "not wanted"),
    events.NothingLeft(DEV),
    events.TaskReported(task=DEV, findings="it is there"),
    events.WorkerStarted(Role.developer),
    events.WorkerEnded(Role.developer, (DEV,)),
    events.RoundStarted(sprint=1, number=2, raised_by=(DEV,), why="a score of 4"),
    events.Reverified(DEV),
    events.ReviewPassed(DEV, Severity.medium),
    events.ConvergenceForced(sprint=1, raised_by=(DEV,), problems=("open",)),
    events.RoundDecided(task=DEV, decision="REVISION", number=1),
    events.DesignRestored(TaskId("DESIGN-001"), design()),
    events.MessageDeleted(7),
    events.MessagesCleared(),
    events.MessageSent(
        sender="developer", to="all", kind="state_update", summary="half way", data={"deep": [1, {"a": None}]}, task=DEV
    ),
    events.Warned("\u2028 \0 ü 😀"),
    events.EngineStarted(4711, "c" * 40),
    events.ProviderPaused("anthropic", 12.5, "429"),
    events.DaySpent(86400.0, Usage(cost_usd=0.25)),
    events.Paused("interrupted"),
    events.Finished(),
    events.Accepted("main", "c" * 40),
    LockGranted(resource="a b", task=DEV, role="developer"),
    LockRenewed(resource="a b", task=DEV),
    LockRefused(resource="a b", task=DEV, role="developer", holder=TaskId("DEV-002")),
    LockForgone(resource="a b", task=DEV),
    LockReleased(resource="a b", task=DEV),
    LockExpired(resource="a b", task=DEV, role="tester"),
    DeadlockBroken(task=DEV, others=(TaskId("DEV-002"),), resource="a b"),
    CheckpointSaved(task=DEV, pointer="checkpoints/DEV-001-1.json"),
    CheckpointRestored(task=DEV, pointer="checkpoints/DEV-001-1.json", saved_at=12.5),
    FeedbackGiven(Feedback(feedback_id="FB-1", description="too 慢", timestamp=12.5, source_task_id=DEV)),
    FeedbackLinked(feedback_id="FB-1", task=DEV),
    FeedbackTakenUp(feedback_id="FB-1", tasks=(DEV,)),
    FeedbackMoved(feedback_id="FB-1", status=FeedbackStatus.addressed),
    DebtIdentified(Debt(debt_id="TD-1", description="copied", detection_date=1.5, estimated_effort=Effort.large)),
    DebtMoved(debt_id="TD-1", status=DebtStatus.resolved, sprint=2),
    events.AttemptEnded(DEV, 1, 0, events.Unmet(), (LOOK,)),
    DependenciesOverridden(DEV, (LOOK,)),
    DependenciesRechecked(DEV),
    UpdateNeeded(
        Update(name="lib", source="git", version_range="v1", actual_version="v1", newest="v2", found_by=DEV),
    ),
    WisdomInherited((note("issues", "slow", session="s", task="DEV-001", commit="c", at=1.5),), {"W-1": "no"}),
    WisdomRejected("W-1", "no"),
    archive.Archived("/elsewhere"),
    archive.Kept(),
    archive.Reopened(),
)


def test_every_kind_of_event_has_an_example_here() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(events.Event))


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: events.Event) -> None:
    assert journal.decode(journal.encode(event)) == event


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert journal.decode(journal.encode(events.Warned(text))) == events.Warned(text)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"type":"Failed","error":"no"}', events.Failed(error="no", kind=None)),
        (b'{"type":"Limited","error":"429","reset_at":12.5}', events.Limited(error="429", reset_at=12.5)),
        (b'{"type":"Interrupted","commit":"c"}', events.Interrupted(commit="c")),
    ],
)
def test_an_outcome_of_an_earlier_version_is_still_read(body: bytes, outcome: events.Outcome) -> None:
    ended = b'{"type":"AttemptEnded","task":"DEV-001","number":1,"requests":1,"outcome":' + body + b"}"

    assert journal.decode(ended) == events.AttemptEnded(DEV, 1, 1, outcome)


def test_rules_of_an_earlier_version_are_still_read() -> None:
    assert journal.decode(b'{"type":"PolicyChanged","policy":{"auto":true}}') == events.PolicyChanged(
        events.Policy(auto=True)
    )


def test_a_field_that_a_later_version_added_is_passed_over() -> None:
    assert journal.decode(b'{"type":"Warned","text":"careful","colour":"red"}') == events.Warned("careful")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"type":"Unheard"}', b'{"type":"Landed","task":7,"tip":"c"}'])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        journal.decode(body)
