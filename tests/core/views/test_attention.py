"""What needs the user now, with the reason and the commands."""

import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.limits.providers import AgentReplaced
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import TaskId
from iterdev.core.views.attention import Need, NeedKind, in_order
from iterdev.core.views.session import session_view
from iterdev.teams.development.team import DEVELOPMENT

SESSION = "ids-add-export-endpoint-20260308"
DEV = TaskId("DEV-001")


def needs(story: Story, *, engine_alive: bool = True) -> tuple[Need, ...]:
    return session_view(story.state, DEVELOPMENT, engine_alive=engine_alive).needs


def only(story: Story, *, engine_alive: bool = True) -> Need:
    (need,) = needs(story, engine_alive=engine_alive)
    assert need.session == SESSION
    return need


def finished(*, lands: bool = True) -> Story:
    """A session whose only task is completed."""
    story = Story(task("DEV-001"))
    story.does("DEV-001", done(commit="c1" if lands else None))
    if lands:
        story.lands("DEV-001")
    story.now += 60
    story.happens(events.Finished())
    return story


def test_a_session_that_works_needs_nothing() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")

    assert needs(story) == ()


@pytest.mark.parametrize(
    ("engine", "then"), [("alive", ()), ("was detached", ()), ("has ended", (f"iterdev resume {SESSION}",))]
)
def test_an_open_question_has_the_commands_that_answer_it(engine: str, then: tuple[str, ...]) -> None:
    story = Story(task("DEV-001"))
    story.happens(events.EngineStarted(1, "tip", detached=engine == "was detached"))
    story.now += 10
    story.happens(events.GateOpened(plan_gate()))

    need = only(story, engine_alive=engine == "alive")

    answers = tuple(f"iterdev answer {SESSION} plan {choice}" for choice in ("approve", "reject"))
    assert (need.kind, need.since, need.text) == (NeedKind.question, 1010.0, "Run these tasks?")
    assert need.commands == answers + then


def test_a_task_that_failed_is_looked_at_and_retried_when_the_session_is_over() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.fails("DEV-001", "no\nluck")
    running = only(story)
    story.happens(events.TaskSkipped(TaskId("VERIFY-001"), "lost"), events.Finished())
    over = only(story, engine_alive=False)

    assert (running.kind, running.about, running.text) == (NeedKind.failed, DEV, "DEV-001 failed: no luck")
    assert running.commands == (f"iterdev logs {SESSION} DEV-001",)
    assert over.commands == (f"iterdev logs {SESSION} DEV-001", f"iterdev retry {SESSION}")


def test_many_failures_are_one_need() -> None:
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 8)))
    for number in range(1, 8):
        story.fails(f"DEV-00{number}")

    assert only(story).text == "DEV-001, DEV-002, DEV-003, DEV-004, DEV-005 and 2 others failed"


def test_a_session_whose_result_is_not_good_says_why() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    story.does("DEV-001", done(commit="c1"))
    story.lands("DEV-001")
    story.verifies("VERIFY-001", None)
    story.happens(events.Finished())

    need = only(story, engine_alive=False)

    assert (need.kind, need.commands[0]) == (NeedKind.failed, f"iterdev report {SESSION}")
    assert need.text.startswith("not successful: ")


def test_what_a_failed_task_was_denied_is_told() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    story.ends("DEV-001", events.Failed(error="no network"), denied=("network: pip install",))

    failed, denied = needs(story)

    assert (failed.kind, denied.kind) == (NeedKind.failed, NeedKind.denied)
    assert denied.text == "DEV-001 asked for, and was denied: network: pip install"
    assert denied.commands == (f"iterdev why {SESSION} DEV-001",)


def test_finished_work_waits_to_be_accepted() -> None:
    story = finished()

    need = only(story, engine_alive=False)
    story.happens(Accepted("main", "c" * 40))

    assert (need.kind, need.since) == (NeedKind.ready, 1060.0)
    assert need.text == "1 task completed, not accepted yet; Tests: not run"
    assert need.commands == (f"iterdev diff {SESSION}", f"iterdev accept {SESSION}")
    assert needs(story, engine_alive=False) == ()


@pytest.mark.parametrize(
    "story", [finished(lands=False), Story(task("DEV-001"))], ids=["nothing changed", "rejected or archived"]
)
def test_a_session_with_nothing_to_decide_needs_nothing(story: Story) -> None:
    if not story.state.lifecycle.is_finished:
        story.happens(events.Finished(events.Finished.WHY_REJECTED))

    assert needs(story, engine_alive=False) == ()


def test_an_archived_session_needs_nothing() -> None:
    story = finished()
    story.happens(events.Archived())

    assert needs(story, engine_alive=False) == ()


def test_a_session_whose_engine_is_gone_is_to_be_resumed() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")

    need = only(story, engine_alive=False)

    assert (need.kind, need.commands) == (NeedKind.unfinished, (f"iterdev resume {SESSION}",))
    assert need.text.endswith("left unfinished: DEV-001")


def test_a_session_in_which_nothing_can_start_names_the_chain_of_blockers() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.starts("DEV-001")

    need = only(story, engine_alive=False)

    assert need.kind is NeedKind.stalled
    assert need.text == "DEV-002 is blocked by DEV-001 (in_progress)"
    assert need.commands == (f"iterdev resume {SESSION}", f"iterdev why {SESSION} DEV-002")


def test_an_agent_that_cannot_be_used_is_named_and_a_paused_provider_asks_for_nothing() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.starts("DEV-001", "DEV-002")
    story.happens(AgentReplaced(task=DEV, agent="codex", successor="mine", error="no login", for_every_task=True))
    story.ends("DEV-002", events.Limited(error="429", reset_at=2000))

    agent, paused = needs(story)

    assert (agent.text, agent.commands) == ("codex cannot be used: no login", ("iterdev doctor",))
    assert (paused.kind, paused.about, paused.commands) == (NeedKind.paused, "mine", ())


def test_the_gravest_is_first_and_of_the_same_kind_the_oldest() -> None:
    story = finished()
    ready = only(story, engine_alive=False)
    question = Need(kind=NeedKind.question, session=ready.session, about="x", since=5000, text="?")
    older = Need(kind=NeedKind.ready, session=ready.session, about="x", since=1, text="!")

    assert in_order([ready, question, older]) == (question, older, ready)
