"""Troubles and what is done about them: providers that are paused, and agents that take over."""

import itertools

import pytest
from tests.core.conftest import Outcome, Story, done, task

from iterdev.core.ids import ZONE
from iterdev.core.limits import providers
from iterdev.core.limits.agent_failures import FailureKind, Reaction, reaction
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.policy import Policy
from iterdev.core.rules.schedule import Start, Wait
from iterdev.core.session import events
from iterdev.core.types import Engine, TaskId
from iterdev.core.views.session import session_view
from iterdev.core.views.tasks import waits_for
from iterdev.teams.development.roles import WORKERS, Role
from iterdev.teams.development.team import DEVELOPMENT

DEV, DEV2 = TaskId("DEV-001"), TaskId("DEV-002")
ENGINES = pytest.mark.parametrize("engine", Engine)
EVERY_TASK = (FailureKind.not_installed, FailureKind.not_logged_in, FailureKind.over_budget)
THIS_TASK = (FailureKind.too_long, FailureKind.overloaded)


def team(*fallbacks: str, engine: Engine = Engine.wave, **policy: object) -> Story:
    """Two developers' tasks; the first agent is claude, and the others take over in their order."""
    agents = ("claude", *fallbacks)
    rules = {
        "agents": dict.fromkeys(WORKERS, "claude"),
        "fallbacks": dict(itertools.pairwise(agents)),
        "concurrency": 1,
    }
    story = Story(task("DEV-001"), task("DEV-002"), engine=engine, **(rules | policy))
    story.goes_on()
    return story


def next_start(story: Story) -> tuple[str, str]:
    story.goes_on()
    (start,) = story.decides()
    assert isinstance(start, Start)
    return start.task, start.agent


def limited(story: Story, seconds: float | None = 50) -> events.Limited:
    return events.Limited(error="429", reset_at=None if seconds is None else story.now + seconds)


def one_more_try(story: Story, outcome: Outcome) -> None:
    """The next start, carried out by the agent that was decided on."""
    name, agent = next_start(story)
    story.starts(name, agent=agent)
    story.ends(name, outcome)


def test_every_kind_of_trouble_has_a_reaction() -> None:
    assert {reaction(kind) for kind in FailureKind} == set(Reaction)


@ENGINES
def test_while_a_provider_is_paused_nothing_is_started_there_and_then_it_goes_on_by_itself(engine: Engine) -> None:
    story = team(engine=engine)
    one_more_try(story, limited(story))

    assert story.decides() == (Wait(1050.0),)
    story.now = 1050.0
    assert next_start(story) == ("DEV-001", "claude")


@ENGINES
def test_the_end_of_a_pause_is_waited_for_while_others_work(engine: Engine) -> None:
    agents = {Role.developer: "claude", Role.reviewer: "codex"}
    story = Story(task("DEV-001"), task("REVIEW-001"), engine=engine, agents=agents)
    story.goes_on()
    story.starts("DEV-001", agent="claude")
    story.starts("REVIEW-001", agent="codex")
    story.ends("DEV-001", limited(story))

    assert story.decides() == (Wait(1050.0),)


def test_agents_of_one_provider_wait_together() -> None:
    agents = {Role.developer: "quick", Role.reviewer: "thorough"}
    rules = {"agents": agents, "providers": dict.fromkeys(agents.values(), "acme"), "concurrency": 1}
    story = Story(task("DEV-001"), task("REVIEW-001"), **rules)
    one_more_try(story, limited(story))

    assert story.decides() == (Wait(1050.0),)


@ENGINES
def test_a_pause_is_not_taken_from_the_time_of_a_wave_also_when_an_engine_or_a_wave_starts_in_it(
    engine: Engine,
) -> None:
    story = team(engine=engine, wave_limit=100)
    one_more_try(story, limited(story, 5000))
    story.happens(events.EngineStarted(2, "base0000"))
    story.now += 5050

    assert next_start(story) == ("DEV-001", "claude")


def test_a_wave_that_starts_while_a_provider_is_paused_has_its_time_afterwards() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), wave_limit=100)
    story.goes_on()
    story.starts("DEV-001")
    story.happens(ProviderPaused("mine", story.now + 5000, "429"))
    story.ends("DEV-001", done(""))
    story.goes_on()
    story.now += 5050

    assert story.goes_on() == ["REVIEW-001"]


def test_without_a_time_the_provider_is_left_alone_longer_from_one_guess_to_the_next() -> None:
    story = team()
    pauses = []
    for _ in range(6):
        one_more_try(story, limited(story, None))
        pauses.append(story.state.providers.pauses["anthropic"].until - story.now)
        story.now = story.state.providers.pauses["anthropic"].until

    assert pauses == [60, 120, 240, 480, 900, 900]


@pytest.mark.parametrize("outcome", [done(""), events.Failed(error="its work did not pass")])
def test_after_an_answer_guessing_begins_anew(outcome: Outcome) -> None:
    story = team()
    for ended in (limited(story, None), outcome, limited(story, None)):
        one_more_try(story, ended)
        story.now += 100

    assert story.state.providers.pauses["anthropic"].until == 1200 + 60


@pytest.mark.parametrize(("later", "paused"), [(-1, True), (0, False), (1, False)])
def test_an_answer_ends_a_pause_that_is_over_and_no_other(later: float, *, paused: bool) -> None:
    story = team(concurrency=2)
    story.starts("DEV-001", "DEV-002", agent="claude")
    story.ends("DEV-001", limited(story, 50))
    story.now += 50 + later

    story.ends("DEV-002", done("worked"))

    assert ("anthropic" in story.state.providers.pauses) is paused


def test_a_limit_that_others_ran_into_at_the_same_time_is_one_limit() -> None:
    story = team(concurrency=2)
    story.starts("DEV-001", "DEV-002", agent="claude")
    story.ends("DEV-001", limited(story, None))
    story.now += 1
    story.ends("DEV-002", limited(story, None))

    assert story.state.providers.pauses["anthropic"] == ProviderPaused("anthropic", 1060, "429", 1)


@pytest.mark.parametrize(("first", "second", "until"), [(50, 20, 1050), (20, 50, 1050), (None, 20, 1020)])
def test_of_two_times_the_later_one_holds_and_a_told_one_rather_than_a_guess(
    first: float | None, second: float, until: float
) -> None:
    story = team(concurrency=2)
    story.starts("DEV-001", "DEV-002", agent="claude")
    story.ends("DEV-001", limited(story, first))
    story.ends("DEV-002", limited(story, second))

    assert story.state.providers.pauses["anthropic"].until == until


@pytest.mark.parametrize(("seconds", "until"), [(-5, 1060), (0, 1060), (1e300, 1000 + Policy().longest_pause)])
def test_a_time_that_makes_no_sense_is_no_reason_to_ask_at_once_or_to_wait_for_ever(
    seconds: float, until: float
) -> None:
    story = team()
    one_more_try(story, limited(story, seconds))

    assert story.state.providers.pauses["anthropic"].until == until


def test_while_a_provider_is_paused_the_agent_that_takes_over_works_and_afterwards_the_first_one_again() -> None:
    story = team("codex")
    one_more_try(story, limited(story))
    meanwhile = next_start(story)
    story.now += 50

    assert meanwhile == ("DEV-001", "codex")
    assert next_start(story) == ("DEV-001", "claude")


def test_when_everybody_who_could_take_over_is_paused_the_first_that_answers_is_waited_for() -> None:
    story = team("codex", "gemini")
    for seconds in (50, 20, 30):
        one_more_try(story, limited(story, seconds))

    assert story.decides() == (Wait(1020.0),)
    story.now = 1020.0
    assert next_start(story) == ("DEV-001", "codex")


@pytest.mark.parametrize("kind", EVERY_TASK)
def test_an_agent_that_cannot_be_used_is_replaced_for_every_task_until_the_next_engine(kind: FailureKind) -> None:
    story = team("codex")
    one_more_try(story, events.Failed(error="log in first", kind=kind))
    one_more_try(story, done(""))
    other = next_start(story)
    story.happens(events.EngineStarted(2, "base0000"))

    assert story.status("DEV-001") == "completed"
    assert other == ("DEV-002", "codex")
    assert next_start(story) == ("DEV-002", "claude")


@pytest.mark.parametrize("kind", THIS_TASK)
def test_an_agent_that_cannot_do_one_task_is_replaced_for_that_one_only(kind: FailureKind) -> None:
    story = team("codex")
    one_more_try(story, events.Failed(error="too long", kind=kind))
    one_more_try(story, done(""))

    assert story.state.spending.by_agent == {}
    assert story.state.tasks.progress[DEV].agent == "codex"
    assert next_start(story) == ("DEV-002", "claude")


def test_the_user_is_told_who_takes_over_and_why() -> None:
    story = team("codex")
    one_more_try(story, events.Failed(error="claude is not logged in", kind=FailureKind.not_logged_in))

    assert story.state.warnings == ("DEV-001: claude is not logged in; codex takes over",)
    told = [message.summary for message in story.state.messages.sent]
    assert "[developer] DEV-001 needs another agent: claude is not logged in" in told


def test_when_the_last_agent_has_failed_the_task_has_in_its_words() -> None:
    story = team("codex", "gemini")
    for error in ("one", "two", "three"):
        one_more_try(story, events.Failed(error=error, kind=FailureKind.too_long))

    assert story.status("DEV-001") == "failed"
    assert story.state.tasks.progress[DEV].error == "three"
    assert next_start(story) == ("DEV-002", "claude")


def test_a_last_agent_that_nobody_can_use_fails_every_task_in_its_own_words() -> None:
    story = team("codex")
    for _ in range(3):
        one_more_try(story, events.Failed(error="log in", kind=FailureKind.not_logged_in))
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert [story.status(name) for name in ("DEV-001", "DEV-002")] == ["failed", "failed"]


def test_an_agent_that_only_waits_for_its_provider_is_not_lost_when_its_successor_fails() -> None:
    story = team("codex")
    one_more_try(story, limited(story))
    one_more_try(story, events.Failed(error="too long", kind=FailureKind.too_long))

    assert story.status("DEV-001") == "pending"
    story.now += 50
    assert next_start(story) == ("DEV-001", "claude")


@pytest.mark.parametrize(
    "kind", [None, FailureKind.crashed, FailureKind.timed_out, FailureKind.permission, FailureKind.silent]
)
def test_a_failure_that_another_agent_might_have_too_is_a_failure(kind: FailureKind | None) -> None:
    story = team("codex")
    one_more_try(story, events.Failed(error="it broke", kind=kind))

    assert story.status("DEV-001") == "failed"


@pytest.mark.parametrize("kind", [*EVERY_TASK, *THIS_TASK])
def test_without_anybody_to_take_over_the_task_has_failed(kind: FailureKind) -> None:
    story = team()
    one_more_try(story, events.Failed(error="log in first", kind=kind))

    assert (story.status("DEV-001"), story.state.tasks.progress[DEV].error) == ("failed", "log in first")


def test_a_task_that_is_retried_begins_with_its_first_agent() -> None:
    story = team("codex")
    for _ in range(2):
        one_more_try(story, events.Failed(error="too long", kind=FailureKind.too_long))
    story.happens(events.TasksReset((DEV,)))

    assert next_start(story) == ("DEV-001", "claude")


def test_only_pauses_of_own_providers_that_are_longer_than_known_are_news() -> None:
    story = team("codex")
    one_more_try(story, limited(story))
    told = [
        ProviderPaused("anthropic", 1050.0, "known"),
        ProviderPaused("openai", 1010.0, "new"),
        ProviderPaused("google", 1010.0, "not ours"),
        ProviderPaused("openai", 1000.0, "over"),
        ProviderPaused("openai", 1e300, "absurd"),
    ]

    def learned(*told: ProviderPaused, now: float = story.now) -> list[str]:
        state = story.state
        return [pause.why for pause in providers.shared_pauses(state.providers, state.agents, state.policy, told, now)]

    assert learned(*told) == ["new"]
    assert learned(told[0], now=900) == []
    assert learned(ProviderPaused("anthropic", 1051.0, "longer")) == ["longer"]


def test_others_are_told_of_pauses_that_they_do_not_know_or_know_shorter() -> None:
    story = team()
    one_more_try(story, limited(story))

    def told(*known: ProviderPaused, now: float = 1000) -> list[float]:
        return [pause.until for pause in providers.unshared_pauses(story.state.providers, known, now)]

    assert told() == [1050.0]
    assert told(ProviderPaused("anthropic", 1020.0, "")) == [1050.0]
    assert told(ProviderPaused("anthropic", 1050.0, "")) == []
    assert told(now=1050) == []


def test_a_pause_that_others_told_holds_like_one_of_our_own() -> None:
    story = team()
    story.happens(ProviderPaused("anthropic", 1050.0, "429 elsewhere"))

    assert story.decides() == (Wait(1050.0),)
    (shown,) = session_view(story.state, DEVELOPMENT).pauses
    assert (shown.agents, shown.until, shown.why) == (("claude",), "1970-01-01T08:17:30+08:00", "429 elsewhere")


def test_a_pending_task_says_whose_provider_is_paused_until_when() -> None:
    story = team()
    one_more_try(story, limited(story))

    assert waits_for(story.state, DEV2, ZONE) == (
        "the provider of claude has reached its limit and is paused until 1970-01-01T08:17:30+08:00"
    )


@ENGINES
@pytest.mark.parametrize(("seconds", "wait"), [(30, 20), (-3600, 50)])
def test_a_pause_goes_on_while_the_machine_sleeps_and_is_no_longer_when_its_clock_is_set_back(
    engine: Engine, seconds: float, wait: float
) -> None:
    story = Story(task("DEV-001"), engine=engine)
    story.goes_on()
    story.does("DEV-001", events.Limited(error="429", reset_at=story.now + 50))
    story.now += seconds
    story.happens(ClockChanged(seconds))

    assert story.decides() == (Wait(story.now + wait),)
