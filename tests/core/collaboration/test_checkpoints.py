import pytest
from tests.core.conftest import Story, task

from iterdev.core.collaboration import checkpoints
from iterdev.core.collaboration.checkpoints import CheckpointRestored
from iterdev.core.types import TaskId

DEV = TaskId("DEV-001")


def saved(story: Story, name: TaskId = DEV) -> str:
    event = checkpoints.save(story.state.checkpoints, name, story.now, kept=story.state.policy.checkpoints_kept)
    story.happens(event)
    return event.pointer


@pytest.mark.requirement("R135")
def test_of_each_task_the_5_newest_checkpoints_are_kept_newest_first() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    saved(story, TaskId("DEV-002"))
    pointers = []
    for _ in range(7):
        story.now += 10
        pointers.append(saved(story))

    kept = story.state.checkpoints
    assert [checkpoint.pointer for checkpoint in kept[DEV]] == pointers[:1:-1]
    assert [checkpoint.at for checkpoint in kept[DEV]] == [1070, 1060, 1050, 1040, 1030]
    assert len(kept[TaskId("DEV-002")]) == 1


@pytest.mark.requirement("R135")
def test_a_checkpoint_s_file_is_named_after_its_task_and_its_time_and_no_two_have_the_same() -> None:
    story = Story(task("DEV-001"))

    pointers = [saved(story), saved(story)]

    assert pointers == ["checkpoints/DEV-001-1000000.json", "checkpoints/DEV-001-1000001.json"]


@pytest.mark.requirement("R136")
def test_the_newest_checkpoint_is_the_one_to_restore() -> None:
    story = Story(task("DEV-001"))
    before = checkpoints.newest(story.state.checkpoints, DEV)
    saved(story)
    story.now += 1
    latest = saved(story)

    newest = checkpoints.newest(story.state.checkpoints, DEV)

    assert before is None
    assert newest
    assert newest.pointer == latest


@pytest.mark.requirement("R135", "R136")
def test_saving_and_restoring_are_told_to_everybody_with_the_file() -> None:
    story = Story(task("DEV-001"))
    pointer = saved(story)
    kept = story.state.checkpoints
    story.happens(CheckpointRestored(task=DEV, pointer=pointer, saved_at=1000))

    messages = story.state.messages.sent[-2:]
    assert [message.type for message in messages] == ["context_checkpoint_saved", "context_restored"]
    assert {message.to for message in messages} == {"all"}
    assert [message.data["ref"] for message in messages] == [pointer, pointer]
    assert story.state.checkpoints == kept


def test_the_checkpoints_of_undone_work_are_forgotten() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    saved(story, TaskId("VERIFY-001"))
    saved(story, DEV)
    story.does("DEV-001")
    story.does("VERIFY-001")

    story.rolls_back("VERIFY-001")

    assert list(story.state.checkpoints) == ["DEV-001"]
