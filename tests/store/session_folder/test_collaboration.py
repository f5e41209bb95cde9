import json
from pathlib import Path

import pytest
from tests.store.conftest import BEGIN, Story, task

from iterdev.core.collaboration import feedback, tech_debt
from iterdev.core.collaboration.checkpoints import CheckpointSaved
from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven, FeedbackLinked
from iterdev.core.collaboration.locks import LockGranted
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified, DebtMoved, DebtStatus, Effort
from iterdev.core.ids import moment
from iterdev.core.session.events import CollaborationEvent
from iterdev.core.session.state import State
from iterdev.core.types import Engine, Severity, TaskId
from iterdev.store import session_log
from iterdev.store.journal import Journal
from iterdev.store.session_folder import json_records, rebuild
from iterdev.teams.table import TEAMS

DEV = TaskId("DEV-001")


def filled(story: Story) -> State:
    """A session that has something of everything."""
    story.add(task("DEV-001"))
    wish = feedback.give((), Feedback(description="red", severity=Severity.high, timestamp=BEGIN), kept=50)
    owed = tech_debt.identified((), Debt(description="copied", detection_date=BEGIN, estimated_effort=Effort.large))
    story.tell(
        LockGranted(resource="a.py", task=DEV, role="developer", until=story.now + 300),
        CheckpointSaved(task=DEV, pointer="checkpoints/DEV-001-1.json"),
        CheckpointSaved(task=DEV, pointer="checkpoints/DEV-001-2.json"),
        wish,
        FeedbackLinked(feedback_id=wish.item.feedback_id, task=DEV),
        owed,
    )
    return story.tell(DebtMoved(debt_id=owed.item.debt_id, status=DebtStatus.in_progress, sprint=1))


def meta(story: Story) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((story.project() / ".msg" / "meta.json").read_text(encoding="utf-8"))
    return loaded


@pytest.mark.requirement("R107", "R124")
def test_locks_are_shared_with_task_time_and_role(story: Story) -> None:
    state = filled(story)

    assert meta(story)["resource_locks"] == {
        "a.py": {
            "locked_by_task_id": "DEV-001",
            "timestamp": moment(state.locks.held["a.py"].at),
            "holder_role": "developer",
        }
    }


@pytest.mark.requirement("R107", "R135")
def test_checkpoints_are_shared_with_time_and_pointer_newest_first(story: Story) -> None:
    filled(story)

    kept = meta(story)["task_checkpoints"]

    assert [one["state_data_pointer"] for one in kept["DEV-001"]] == [
        "checkpoints/DEV-001-2.json",
        "checkpoints/DEV-001-1.json",
    ]
    assert set(kept["DEV-001"][0]) == {"timestamp", "state_data_pointer"}


@pytest.mark.requirement("R107", "R137", "R138")
def test_feedback_is_shared_with_all_its_fields(story: Story) -> None:
    filled(story)

    (item,) = meta(story)["user_feedback_items"]

    assert item.pop("feedback_id").startswith("FB-")
    assert item == {
        "source_task_id": "DEV-001",
        "description": "red",
        "severity": "high",
        "status": "reviewed",
        "timestamp": moment(BEGIN),
        "category": "general",
        "planned_in": [],
    }


@pytest.mark.requirement("R107", "R140")
def test_debt_is_shared_with_all_its_fields(story: Story) -> None:
    filled(story)

    (item,) = meta(story)["tech_debt_items"]

    assert item.pop("debt_id").startswith("TD-")
    assert item == {
        "category": "code",
        "source_task_id": None,
        "description": "copied",
        "severity": "medium",
        "detection_date": moment(BEGIN),
        "owner": None,
        "resolution_plan": None,
        "estimated_effort": "large",
        "priority": "medium",
        "status": "in_progress",
        "related_files": [],
        "sprint": 1,
        "resolved_in": None,
        "resolved_by": None,
    }


@pytest.mark.requirement("R141")
def test_the_report_s_items_are_written_like_the_shared_ones(story: Story) -> None:
    state = filled(story)

    document = json.loads(json.dumps(json_records.debt_report(tech_debt.report(state.debt))))

    assert document["in_progress_items"] == meta(story)["tech_debt_items"]
    assert document["open_items"] == []


def read(meta: dict[str, object]) -> list[CollaborationEvent]:
    return list(rebuild.collaboration_events(json_records.read_fields(meta, json_records.MetaRecord)))


def rebuilt(folder: Path) -> State:
    created, events = rebuild.session_events(folder, Engine.wave, TEAMS, base="a" * 40, branch="main")
    journal = Journal(folder / "new.db")
    state = session_log.create(journal, events, at=created)
    journal.close()
    return state


@pytest.mark.requirement("R67")
def test_feedback_debt_and_checkpoints_survive_the_loss_of_the_journal_and_locks_do_not(story: Story) -> None:
    before = filled(story)
    story.project()

    after = rebuilt(story.folder)

    assert after.feedback == before.feedback
    assert after.debt == before.debt
    assert [one.pointer for one in after.checkpoints[DEV]] == [one.pointer for one in before.checkpoints[DEV]]
    assert after.locks.held == {}


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"user_feedback_items": 3, "tech_debt_items": {"a": 1}, "task_checkpoints": [1]},
        {"user_feedback_items": [3, {}, {"timestamp": "soon"}], "task_checkpoints": {"DEV-001": [{}, 4]}},
        {"tech_debt_items": [{"detection_date": moment(BEGIN), "description": "x", "severity": "ugly"}]},
    ],
)
def test_what_makes_no_sense_in_the_shared_state_is_left_out(damaged: dict[str, object]) -> None:
    assert read(damaged) == []


def test_one_damaged_item_does_not_take_the_others_with_it() -> None:
    good = {"feedback_id": "FB-1", "description": "red", "timestamp": moment(BEGIN)}
    owed = {"debt_id": "TD-1", "description": "copied", "detection_date": moment(BEGIN)}

    assert read({"user_feedback_items": [{}, good], "tech_debt_items": [owed, 7]}) == [
        FeedbackGiven(Feedback(feedback_id="FB-1", description="red", timestamp=BEGIN)),
        DebtIdentified(Debt(debt_id="TD-1", description="copied", detection_date=BEGIN)),
    ]
