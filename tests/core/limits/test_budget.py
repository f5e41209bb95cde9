"""Money and tokens: of the session, of one task and of the day."""

import pytest
from tests.core.conftest import Outcome, Story, done, task

from iterdev.core.limits import budget
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.limits.budget import DaySpent
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.types import TaskId
from iterdev.core.views.report import report
from iterdev.core.views.session import spending_view
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")
DOLLAR = Usage(cost_usd=1.0)
TOKENS = Usage(input_tokens=6, output_tokens=4)


def two(**policy: object) -> Story:
    story = Story(task("DEV-001"), task("DEV-002"), concurrency=1, **policy)
    story.goes_on()
    return story


@pytest.mark.parametrize(
    ("policy", "usage", "words"),
    [
        ({"task_budget_usd": 1.0}, DOLLAR, "the budget of $1 for DEV-001 is used up ($1.00 spent)"),
        ({"task_budget_tokens": 10}, TOKENS, "the budget of 10 tokens for DEV-001 is used up (10 used)"),
    ],
)
def test_a_task_that_has_used_up_its_budget_is_not_tried_again_and_the_others_are(
    policy: dict[str, float], usage: Usage, words: str
) -> None:
    story = two(**policy)
    story.does("DEV-001", events.Interrupted(usage=usage))
    following = story.goes_on()
    story.does("DEV-002")
    story.goes_on()

    assert following == ["DEV-002"]
    assert story.state.lifecycle.is_over
    assert story.state.tasks.progress[DEV].error == words


@pytest.mark.parametrize(
    ("policy", "usage", "words"),
    [
        ({"day_budget_usd": 1.0}, DOLLAR, "the budget of $1 for one day is used up ($1.00 spent)"),
        ({"day_budget_tokens": 10}, TOKENS, "the budget of 10 tokens for one day is used up (10 used)"),
    ],
)
def test_what_other_sessions_spent_today_is_taken_from_the_budget_of_the_day(
    policy: dict[str, float], usage: Usage, words: str
) -> None:
    story = two(**policy)
    story.happens(DaySpent(900.0, usage))
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert story.state.tasks.progress[DEV].error == words


def test_a_new_day_has_a_new_budget() -> None:
    story = two(auto=False, day_budget_usd=1.0)
    story.happens(events.GateAnswered("plan", "approve"))
    story.happens(DaySpent(900.0, DOLLAR), DaySpent(87300.0, Usage()))

    assert story.goes_on() == ["DEV-001"]


@pytest.mark.parametrize("policy", ["budget_usd", "task_budget_usd", "day_budget_usd"])
def test_the_user_is_asked_before_more_is_spent_and_may_lift_every_budget(policy: str) -> None:
    story = two(auto=False, **{policy: 1.0})
    story.happens(events.GateAnswered("plan", "approve"), DaySpent(900.0, DOLLAR))
    for name in ("DEV-001", "DEV-002"):
        story.does(name, events.Interrupted(usage=DOLLAR))
    story.goes_on()
    (gate,) = story.state.gates.open.values()
    story.happens(events.GateAnswered(gate.id, "go-on"))

    assert "is used up" in gate.question
    assert story.goes_on() == ["DEV-001"]
    assert not any(getattr(story.state.policy, name) for name in ("budget_usd", "task_budget_usd", "day_budget_usd"))


@pytest.mark.parametrize(
    ("policy", "more", "may"),
    [
        ({}, DOLLAR, True),
        ({"budget_usd": 3.0}, DOLLAR, True),
        ({"budget_usd": 2.0}, DOLLAR, False),
        ({"task_budget_usd": 2.0}, DOLLAR, False),
        ({"task_budget_usd": 2.0}, Usage(cost_usd=0.5), True),
        ({"day_budget_usd": 6.0}, DOLLAR, False),
        ({"budget_tokens": 10}, TOKENS, False),
        ({"budget_tokens": 11}, TOKENS, True),
    ],
)
def test_a_running_attempt_may_ask_again_while_all_budgets_allow_it(
    policy: dict[str, float], more: Usage, *, may: bool
) -> None:
    story = two(**policy)
    story.happens(DaySpent(900.0, Usage(cost_usd=5.0)))
    state = story.does("DEV-001", events.Interrupted(usage=DOLLAR))

    assert (not budget.objection(state.policy, state.spending, DEV, state.tasks.progress[DEV].usage, more)) is may


@pytest.mark.parametrize(
    "outcome",
    [
        done("", usage=DOLLAR),
        events.Failed(error="no", usage=DOLLAR),
        events.Limited(error="429", reset_at=1000.5, usage=DOLLAR),
        events.Interrupted(usage=DOLLAR),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_whatever_became_of_an_attempt_what_it_cost_is_counted_once(outcome: Outcome) -> None:
    story = two()
    state = story.does("DEV-001", outcome)

    assert state.spending.total == DOLLAR
    assert state.tasks.progress[DEV].usage == DOLLAR
    assert state.spending.by_agent == {"mine": DOLLAR}


def test_a_retry_forgets_nothing_that_was_spent() -> None:
    story = two()
    story.does("DEV-001", events.Failed(error="no", usage=DOLLAR))
    story.happens(events.TasksReset((DEV,)))
    state = story.does("DEV-001", done("", usage=DOLLAR))

    assert state.tasks.progress[DEV].usage == state.spending.total == Usage(cost_usd=2.0)


def a_paid_session() -> Story:
    story = Story(
        task("DEV-001"),
        task("DEV-002"),
        task("REVIEW-001"),
        agents={Role.developer: "claude", Role.reviewer: "codex"},
        fallbacks={"claude": "codex"},
    )
    story.starts("DEV-001", agent="claude")
    story.ends("DEV-001", events.Failed(error="too long", kind=FailureKind.too_long, usage=DOLLAR))
    story.starts("DEV-001", agent="codex")
    story.ends("DEV-001", done("", usage=TOKENS))
    story.starts("REVIEW-001", agent="codex")
    story.ends("REVIEW-001", done("", usage=Usage(cost_usd=0.25)))
    return story


def test_spending_is_told_by_role_task_and_agent_and_only_where_there_is_some() -> None:
    told = spending_view(a_paid_session().state)

    assert told.roles == {"developer": DOLLAR + TOKENS, "reviewer": Usage(cost_usd=0.25)}
    assert told.tasks == {"DEV-001": DOLLAR + TOKENS, "REVIEW-001": Usage(cost_usd=0.25)}
    assert told.agents == {"claude": DOLLAR, "codex": TOKENS + Usage(cost_usd=0.25)}
    assert told.by_role_and_agent == (
        "developer $1.00, 10 tokens; reviewer $0.25 · claude $1.00; codex $0.25, 10 tokens"
    )


def test_a_session_that_spent_nothing_has_no_figures() -> None:
    story = two()
    story.does("DEV-001")

    assert "Spending" not in report(story.state, DEVELOPMENT)
    assert spending_view(story.state).by_role_and_agent == ""


def test_the_report_has_a_table_of_spending() -> None:
    text = report(a_paid_session().state, DEVELOPMENT)

    for line in (
        "| Role | developer | $1.00, 10 tokens |",
        "| Task | REVIEW-001 | $0.25 |",
        "| Agent | claude | $1.00 |",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("policy", "usd", "tokens"),
    [
        ({}, None, None),
        ({"budget_usd": 5.0, "day_budget_usd": 9.0}, 4.0, None),
        ({"budget_usd": 5.0, "task_budget_usd": 2.0}, 1.0, None),
        ({"day_budget_tokens": 100, "task_budget_tokens": 30}, None, 20),
    ],
)
def test_what_is_left_of_the_tightest_budget_may_be_spent_while_nobody_can_be_asked(
    policy: dict[str, float], usd: float | None, tokens: int | None
) -> None:
    spent = DOLLAR + TOKENS
    spending = budget.Spending(total=spent, today=spent)

    left = budget.allowance(two(**policy).state.policy, spending, spent)

    assert (left.usd, left.tokens) == (usd, tokens)
    assert left.is_limited is bool(policy)


def test_an_attempt_that_has_spent_its_allowance_may_not_go_on() -> None:
    left = budget.Allowance(usd=1.0)

    assert left.objection(Usage(cost_usd=0.5)) == ""
    assert left.objection(DOLLAR) == "the budget of $1 for this attempt is used up ($1.00 spent)"
