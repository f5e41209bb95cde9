"""Messages that agents and people send."""

import pytest
from tests.core.conftest import Story, task

from iterdev.core.collaboration.messages import (
    MessageDeleted,
    MessagesCleared,
    MessageSent,
    by_id,
    compose,
    find,
    members,
    objection,
)
from iterdev.core.session import events
from iterdev.core.types import TaskId
from iterdev.teams.development.roles import WORKERS, Role
from iterdev.teams.development.team import DEVELOPMENT

TYPES = DEVELOPMENT.message_types


def told(*messages: MessageSent) -> Story:
    """A session with two messages of its own, and then these, one second apart."""
    story = Story(task("DEV-001"))
    for message in messages:
        story.now += 1
        story.happens(message)
    return story


@pytest.mark.requirement("R171")
def test_what_is_left_out_is_filled_in() -> None:
    message = compose("tester")

    assert (message.to, message.kind, message.summary) == ("coordinator", "message", "[tester] message to coordinator")


@pytest.mark.requirement("R94")
@pytest.mark.parametrize("summary", ["half way", "[tester] half way", "  half way\n"])
def test_a_summary_starts_with_its_sender_once(summary: str) -> None:
    assert compose("tester", summary=summary).summary == "[tester] half way"


def test_a_message_names_the_task_that_it_comes_from() -> None:
    message = compose("tester", data={"task": "another", "n": 1}, task=TaskId("VERIFY-001"))

    assert (message.task, message.data) == ("VERIFY-001", {"task": "VERIFY-001", "n": 1})


@pytest.mark.requirement("R114")
def test_there_are_twenty_types_of_the_coordinator() -> None:
    assert len(set(TYPES["coordinator"])) == 20


@pytest.mark.requirement("R114")
@pytest.mark.parametrize(("sender", "kind"), [(who, kind) for who, kinds in TYPES.items() for kind in kinds])
def test_every_type_can_be_sent_and_found_again(sender: str, kind: str) -> None:
    story = told(compose(sender, kind=kind, summary="news"))

    (message,) = find(story.state.messages, sender=sender, kind=kind, last=1)

    assert by_id(story.state.messages, message.id) == message
    assert (message.sender, message.type, message.ts) == (sender, kind, 1001.0)


@pytest.mark.parametrize("role", WORKERS)
@pytest.mark.parametrize("kind", ["progress", "blocker", "state_update", "task_complete", "error", "message"])
def test_every_role_may_say_what_is_nobody_s(role: Role, kind: str) -> None:
    assert objection(role, compose(role, kind=kind), TYPES) == ""


@pytest.mark.requirement("R95")
def test_a_role_may_say_what_is_its_own_and_nothing_that_is_another_s() -> None:
    own = {
        role: {kind for kind in TYPES[role] if not objection(role, compose(role, kind=kind), TYPES)} for role in WORKERS
    }
    others = {kind for kinds in TYPES.values() for kind in kinds} - set(TYPES[Role.developer])

    assert own == {role: set(TYPES[role]) for role in WORKERS}
    assert all(objection(Role.developer, compose("developer", kind=kind), TYPES) for kind in others)


@pytest.mark.requirement("R95")
@pytest.mark.parametrize(("to", "allowed"), [("coordinator", True), ("all", True), ("reviewer", False), ("me", False)])
def test_workers_talk_to_the_coordinator_and_not_to_each_other(to: str, allowed: bool) -> None:  # noqa: FBT001
    assert (objection(Role.developer, compose("developer", to=to), TYPES) == "") is allowed


@pytest.mark.requirement("R172")
def test_messages_are_found_by_sender_recipient_and_type() -> None:
    story = told(
        compose("developer", kind="progress"),
        compose("tester", kind="progress", to="all"),
        compose("developer", kind="blocker"),
    )

    def numbers(**wanted: str) -> list[int]:
        return [message.number for message in find(story.state.messages, **wanted)]

    assert numbers() == [1, 2, 3, 4, 5]
    assert numbers(sender="developer") == [3, 5]
    assert numbers(to="all") == [1, 2, 4]
    assert numbers(sender="developer", kind="blocker") == [5]
    assert numbers(sender="nobody") == []


@pytest.mark.requirement("R172")
def test_the_last_twenty_are_listed_unless_another_number_is_asked_for() -> None:
    story = told(*(compose("developer", summary=str(number)) for number in range(30)))

    assert [message.number for message in find(story.state.messages)] == list(range(13, 33))
    assert [message.number for message in find(story.state.messages, last=2)] == [31, 32]


@pytest.mark.parametrize("name", ["", "MSG-000", "MSG-003", "MSG-1", "msg-001", "MSG-001 ", "1", "MSG-" + "9" * 5000])
def test_an_id_of_no_message_finds_none(name: str) -> None:
    assert by_id(told().state.messages, name) is None


@pytest.mark.requirement("R172")
def test_members_are_told_with_the_one_heard_last_first() -> None:
    story = told(compose("developer", summary="one"), compose("tester"), compose("developer", summary="two"))

    assert [(member.name, member.count) for member in members(story.state.messages)] == [
        ("developer", 2),
        ("tester", 1),
        ("coordinator", 2),
    ]
    assert (members(story.state.messages)[0].last_seen, members(story.state.messages)[0].last_action) == (
        1003.0,
        "[developer] two",
    )


@pytest.mark.requirement("R115")
def test_what_somebody_shares_is_merged_over_their_updates() -> None:
    story = told(
        compose("developer", kind="state_update", data={"a": 1, "b": 1}),
        compose("developer", kind="progress", data={"c": 1}),
        compose("developer", kind="state_update", data={"b": 2}),
        compose("tester", kind="state_update"),
    )

    assert {name: (shared.at, shared.data) for name, shared in story.state.messages.shared.items()} == {
        "developer": (1003.0, {"a": 1, "b": 2})
    }


def test_a_message_that_is_deleted_is_gone_and_the_others_keep_their_ids() -> None:
    story = told(compose("developer", summary="one"), compose("developer", summary="two"))
    story.happens(MessageDeleted(3))
    story.happens(compose("developer", summary="three"))

    assert by_id(story.state.messages, "MSG-003") is None
    assert [(message.id, message.summary) for message in story.state.messages.sent[2:]] == [
        ("MSG-004", "[developer] two"),
        ("MSG-005", "[developer] three"),
    ]


def test_a_bus_that_is_cleared_begins_again_and_forgets_what_was_shared() -> None:
    story = told(compose("developer", kind="state_update", data={"a": 1}))
    story.happens(MessagesCleared())
    cleared = story.state
    story.happens(compose("developer"))

    assert (cleared.messages.sent, cleared.messages.shared) == ((), {})
    assert [message.id for message in story.state.messages.sent] == ["MSG-001"]


def test_the_last_words_of_an_attempt_are_known_until_the_next_one() -> None:
    dev = TaskId("DEV-001")
    story = told(compose("developer", summary="nobody works", task=dev))
    story.starts("DEV-001")
    before = dict(story.state.attempts.last_message)
    story.happens(compose("developer", summary="one", task=dev), compose("developer", summary="two", task=dev))
    during = dict(story.state.attempts.last_message)
    story.ends("DEV-001", events.Interrupted())
    story.starts("DEV-001")

    assert (before, during, dict(story.state.attempts.last_message)) == ({}, {"DEV-001": "[developer] two"}, {})
