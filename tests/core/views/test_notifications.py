"""Which messages there are about what needs the user, and when several become one."""

from collections.abc import Mapping

import pytest
from tests.core.conftest import Story, task

from iterdev.core.session import events
from iterdev.core.session.delivery import Notified
from iterdev.core.session.gates import GateKind
from iterdev.core.settings import NotifySettings
from iterdev.core.types import NotificationKind, SessionId
from iterdev.core.views.attention import Need, NeedKind
from iterdev.core.views.notifications import SEVERAL, Notification, changes, due

SESSION = SessionId("ids-x-20260308")
ALL = frozenset(NotificationKind)


def need(kind: NeedKind, about: str = "the session", since: float = 1, gate: str = "") -> Need:
    return Need(kind=kind, session=SESSION, about=about, since=since, text=f"{kind} of {about}", gate=gate)


def new(*needs: Need, notified: Mapping[str, str] | None = None, kinds: frozenset[NotificationKind] = ALL) -> list[str]:
    found = changes(SESSION, needs, notified or {}, kinds)
    return [f"{one.kind}{' over' if one.is_over else ''}: {one.text}" for one in found]


def told(*needs: Need) -> dict[str, str]:
    return {key: text for one in changes(SESSION, needs, {}, ALL) for key, text in one.needs.items()}


def test_a_need_is_a_message_once_and_another_one_when_it_is_gone() -> None:
    failed = need(NeedKind.failed, "DEV-001")

    assert new(failed) == ["failed: failed of DEV-001"]
    assert new(failed, notified=told(failed)) == []
    assert new(notified=told(failed)) == ["failed over: No longer: failed of DEV-001"]


def test_a_need_that_came_and_went_before_it_was_told_is_no_message() -> None:
    assert new() == []


def test_a_question_that_is_asked_again_is_another_one() -> None:
    first = need(NeedKind.question, gate="plan", since=1)
    again = need(NeedKind.question, gate="plan", since=2)

    assert new(again, notified=told(first)) == [
        "question over: No longer: question of the session",
        "question: question of the session",
    ]


def test_two_questions_at_the_same_moment_are_two_messages() -> None:
    both = (need(NeedKind.question, gate="plan"), need(NeedKind.question, gate="wave-1"))

    assert len(new(*both)) == 2


def test_a_need_whose_time_moves_on_is_the_same() -> None:
    assert new(need(NeedKind.stalled, since=9), notified=told(need(NeedKind.stalled))) == []


def test_the_question_of_a_spent_budget_is_a_kind_of_its_own() -> None:
    asked = need(NeedKind.question, gate=GateKind.budget)

    assert new(asked, kinds=frozenset({NotificationKind.budget})) == ["budget: question of the session"]
    assert new(asked, kinds=frozenset({NotificationKind.question})) == []


def test_only_the_kinds_that_are_asked_for_are_told() -> None:
    needs = [need(kind, gate="plan") for kind in NeedKind]

    told = [line.partition(":")[0] for line in new(*needs, kinds=frozenset(NotifySettings().on))]

    assert told == ["question", "failed", "stalled", "ready"]


def messages(count: int) -> list[Notification]:
    return [
        Notification(session=SESSION, kind="failed", text=f"DEV-{number}", needs={f"failed {number}": "x"})
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "sent", "kinds"),
    [
        (3, [], ["failed"] * 3),
        (4, [], [SEVERAL]),
        (1, [91.0, 92.0, 93.0], []),
        (1, [80.0, 89.0, 90.0], ["failed"]),
        (2, [95.0, 96.0], []),
        (2, [200.0], ["failed"] * 2),
    ],
    ids=["three", "four", "a fourth", "ten seconds later", "until the burst is over", "after the clock was set back"],
)
def test_more_than_three_messages_in_ten_seconds_become_one(count: int, sent: list[float], kinds: list[str]) -> None:
    assert [one.kind for one in due(messages(count), sent, 100.0)] == kinds


def test_a_message_for_several_needs_stands_for_each_of_them() -> None:
    (one,) = due(messages(4), [], 100.0)

    assert one.event == Notified({f"failed {number}": "x" for number in range(4)})
    assert one.text == "4 messages: failed: DEV-0; failed: DEV-1; failed: DEV-2; failed: DEV-3"


def test_what_was_told_is_known_after_a_replay_and_is_no_work() -> None:
    story = Story(task("DEV-001"))
    last = story.state.last

    story.happens(Notified({"a": "1", "b": "2"}), Notified({"c": "3"}, ("a",)))

    assert story.state.delivery.notified == {"b": "2", "c": "3"}
    assert story.state.last == last
    assert isinstance(story.state.last.event, events.TasksAdded)
