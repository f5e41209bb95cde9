from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import CRITICAL, design, review, started, task

from iterdev.core import completion
from iterdev.core import events as e
from iterdev.core.checkpoints import CheckpointRestored, CheckpointSaved
from iterdev.core.debt import Debt, DebtIdentified, DebtMoved, DebtRule, DebtStatus, Effort
from iterdev.core.dependencies import (
    Checked,
    DependenciesOverridden,
    DependenciesRechecked,
    Standing,
    Update,
    UpdateNeeded,
)
from iterdev.core.feedback import (
    Feedback,
    FeedbackGiven,
    FeedbackLinked,
    FeedbackMoved,
    FeedbackStatus,
    FeedbackTakenUp,
)
from iterdev.core.locks import (
    DeadlockBroken,
    LockExpired,
    LockForgone,
    LockGranted,
    LockRefused,
    LockReleased,
    LockRenewed,
)
from iterdev.core.results import Dependency, Discovery, TechDebt, Usage, Wisdom
from iterdev.core.troubles import TroubleKind
from iterdev.core.verification import SuiteReport, Verification
from iterdev.core.wisdom import WisdomInherited, WisdomRejected, note
from iterdev.core.words import Pipeline, Role, Severity, Status, Strategy, TaskId
from iterdev.store import codec

DEV = TaskId("DEV-001")
DONE = e.Done(
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
EXAMPLES: tuple[e.Event, ...] = (
    started(),
    e.PolicyChanged(e.Policy(auto=True, concurrency=7, debt=DebtRule(severity=Severity.high, sprints=2))),
    e.PipelineChosen(Pipeline.multi_sprint),
    e.GateOpened(e.Gate(id="plan", question="Run it?", choices=("yes", "no"))),
    e.GateAnswered("plan", "yes"),
    e.TasksAdded((task("DEV-001"), task("GC-CHECK-001", "DEV-001", round=2))),
    e.TasksReplanned((task("VERIFY-001", "DEV-001"),)),
    e.SprintEnded(
        1,
        e.SprintRecord(pipeline=Pipeline.multi_sprint, expected=6, velocity=5, mean_score=None, rounds=2, lost=(DEV,)),
    ),
    e.SprintStarted(2, "the second milestone"),
    e.TableEdited((e.RowEdit(task=task("DEV-001"), status=Status.skipped, score=7.5),)),
    e.TasksReset((DEV,)),
    e.WaveStarted(2),
    e.WaveMerged(2),
    e.AttemptStarted(DEV, 1, "mine", "b" * 40),
    e.AttemptEnded(DEV, 1, 2, DONE),
    e.AttemptEnded(DEV, 1, 2, e.Failed(error="no", kind=TroubleKind.not_logged_in)),
    e.AttemptEnded(DEV, 1, 2, e.Limited(error="429", reset_at=12.5)),
    e.AttemptEnded(DEV, 1, 2, e.Interrupted(commit="c"), denied=("Bash: make",)),
    e.Landed(DEV, "c" * 40),
    e.LandingRefused(DEV, ("a.py",)),
    e.ConflictResolved(task=DEV, strategy=Strategy.manual, fix=TaskId("DEV-001-fix-conflict")),
    e.RollbackStarted(
        target="DEV-001",
        snapshot="snapshot-DEV-001-1",
        tip="c" * 40,
        rows=(task("DEV-001"),),
        removed=(TaskId("DEV-fix-1"),),
        sprint=1,
        rounds={1: 2},
        answers={"plan": "approve"},
    ),
    e.RollbackCompleted("snapshot-DEV-001-1"),
    e.RollbackFailed("snapshot-DEV-001-1", "the disk is full"),
    e.TaskFailed(DEV, "late"),
    e.TaskSkipped(DEV, "not wanted"),
    e.NothingLeft(DEV),
    e.TaskReported(task=DEV, findings="it is there"),
    e.WorkerStarted(Role.developer),
    e.WorkerEnded(Role.developer, (DEV,)),
    e.RoundStarted(sprint=1, number=2, raised_by=(DEV,), why="a score of 4"),
    e.Reverified(DEV),
    e.ReviewPassed(DEV, Severity.medium),
    e.ConvergenceForced(sprint=1, raised_by=(DEV,), problems=("open",)),
    e.RoundDecided(task=DEV, decision="REVISION", number=1),
    e.DesignRestored(TaskId("DESIGN-001"), design()),
    e.MessageDeleted(7),
    e.MessagesCleared(),
    e.MessageSent(
        sender="developer", to="all", kind="state_update", summary="half way", data={"deep": [1, {"a": None}]}, task=DEV
    ),
    e.Warned("\u2028 \0 ü 😀"),
    e.EngineStarted(4711, "c" * 40),
    e.ProviderPaused("anthropic", 12.5, "429"),
    e.DaySpent(86400.0, Usage(cost_usd=0.25)),
    e.Paused("interrupted"),
    e.Finished(),
    e.Accepted("main", "c" * 40),
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
    e.AttemptEnded(DEV, 1, 0, e.Unmet(), (LOOK,)),
    DependenciesOverridden(DEV, (LOOK,)),
    DependenciesRechecked(DEV),
    UpdateNeeded(
        Update(name="lib", source="git", version_range="v1", actual_version="v1", newest="v2", found_by=DEV),
    ),
    WisdomInherited((note("issues", "slow", session="s", task="DEV-001", commit="c", at=1.5),), {"W-1": "no"}),
    WisdomRejected("W-1", "no"),
    completion.Archived("/elsewhere"),
    completion.Kept(),
    completion.Reopened(),
)


def test_every_kind_of_event_has_an_example_here() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(e.Event))


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: e.Event) -> None:
    assert codec.decode(codec.encode(event)) == event


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert codec.decode(codec.encode(e.Warned(text))) == e.Warned(text)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"type":"Failed","error":"no"}', e.Failed(error="no", kind=None)),
        (b'{"type":"Limited","error":"429","reset_at":12.5}', e.Limited(error="429", reset_at=12.5)),
        (b'{"type":"Interrupted","commit":"c"}', e.Interrupted(commit="c")),
    ],
)
def test_an_outcome_of_an_earlier_version_is_still_read(body: bytes, outcome: e.Outcome) -> None:
    ended = b'{"type":"AttemptEnded","task":"DEV-001","number":1,"requests":1,"outcome":' + body + b"}"

    assert codec.decode(ended) == e.AttemptEnded(DEV, 1, 1, outcome)


def test_rules_of_an_earlier_version_are_still_read() -> None:
    assert codec.decode(b'{"type":"PolicyChanged","policy":{"auto":true}}') == e.PolicyChanged(e.Policy(auto=True))


def test_a_field_that_a_later_version_added_is_passed_over() -> None:
    assert codec.decode(b'{"type":"Warned","text":"careful","colour":"red"}') == e.Warned("careful")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"type":"Unheard"}', b'{"type":"Landed","task":7,"tip":"c"}'])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        codec.decode(body)
