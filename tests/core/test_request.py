"""What was asked for, and the first events that follow from it."""

import pytest
from tests.core.conftest import task

from iterdev.core.errors import UserError
from iterdev.core.limits.providers import Agents
from iterdev.core.policy import Policy
from iterdev.core.request import Request, checked, named_agents, new_session, policy, session_facts
from iterdev.core.session.events import Event, RowEdit, SessionStarted, TableEdited, TasksAdded
from iterdev.core.settings import AgentSettings, Limits, Run, Settings
from iterdev.core.types import Engine, SessionId, Status
from iterdev.teams.development.events import TeamStarted
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT


def begun(request: Request, settings: Settings | None = None, rows: tuple[RowEdit, ...] = ()) -> list[Event]:
    settings = settings or Settings()
    agents = named_agents(request, DEVELOPMENT.workers)
    facts = {"team": DEVELOPMENT.name, "name": SessionId("ids-x-1"), "base": "abc", "branch": "main"}
    session = session_facts(request, **facts, agents=agents, by_hand=bool(rows))
    started = DEVELOPMENT.started(request, settings, agents)
    return new_session(session, rules(request, settings), started, rows)


def rules(request: Request, settings: Settings) -> Policy:
    team = DEVELOPMENT
    return policy(settings, team.workers, team.time_limits, auto=request.auto, concurrency=request.concurrency)


@pytest.mark.parametrize("auto", [True, False])
def test_auto_mode_is_part_of_the_rules_of_the_session(auto: bool) -> None:  # noqa: FBT001
    assert rules(Request(requirement="x", auto=auto), Settings()).auto is auto


@pytest.mark.requirement("R2")
@pytest.mark.parametrize(
    ("asked", "configured", "limit"), [(None, Run(), 3), (None, Run(concurrency=5), 5), (4, Run(concurrency=5), 4)]
)
def test_the_concurrency_is_what_was_asked_else_configured_else_3(
    asked: int | None, configured: Run, limit: int
) -> None:
    request = Request(requirement="x", concurrency=asked)

    assert rules(request, Settings(run=configured)).concurrency == limit


@pytest.mark.requirement("R3")
def test_the_requirement_is_kept_as_the_session_s() -> None:
    started, _ = begun(Request(requirement="  Add export endpoint \n"))

    assert isinstance(started, SessionStarted)
    assert started.session.requirement == "Add export endpoint"


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (Request(requirement=" \n"), "The requirement is empty"),
        (Request(requirement="x", concurrency=0), 'The concurrency "0" is not a positive number'),
        (Request(requirement="x", concurrency=-2), 'The concurrency "-2" is not a positive number'),
        (Request(requirement="x", files=-1), 'The number of files "-1" is negative'),
    ],
)
def test_a_wrong_request_is_refused_with_its_value_and_a_hint(request_: Request, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        checked(request_)

    assert caught.value.message == complaint
    assert caught.value.hint


def test_a_right_request_passes_as_it_is() -> None:
    request = Request(requirement="Add export", concurrency=1, files=0)

    assert checked(request) is request


def test_the_limits_of_the_configuration_become_rules_of_the_session() -> None:
    run = Run(budget_usd=2.5, budget_tokens=7, task_budget_usd=1, day_budget_tokens=9)
    settings = Settings(run=run, limits=Limits(wave=60, attempt=30, rounds=1))

    started, team = begun(Request(requirement="x"), settings)

    assert isinstance(started, SessionStarted)
    assert isinstance(team, TeamStarted)
    limits = started.policy
    assert (limits.wave_limit, limits.attempt_limit, team.thresholds.rounds) == (60, 30, 1)
    assert (limits.budget_usd, limits.budget_tokens) == (2.5, 7)
    assert (limits.task_budget_usd, limits.task_budget_tokens) == (1, None)
    assert (limits.day_budget_usd, limits.day_budget_tokens) == (None, 9)


def test_the_rules_say_which_agent_each_role_has_who_takes_over_and_who_answers_it() -> None:
    mine, same = (AgentSettings(command=("agent", "--fast"), fallback=name) for name in ("claude", None))
    settings = Settings(run=Run(agent="mine"), agents={"mine": mine, "same": same, "other": AgentSettings(script="s")})

    given = rules(Request(requirement="x"), settings)
    made = Agents(by_role=given.agents, fallbacks=given.fallbacks, providers=given.providers)

    assert set(made.by_role.values()) == {"mine"}
    assert made.fallbacks == {"mine": "claude"}
    assert made.provider_of("mine") == made.provider_of("same")
    assert made.provider_of("mine") != made.provider_of("other")
    assert "fast" not in made.provider_of("mine")
    assert [made.provider_of(name) for name in ("claude", "codex", "gemini", "qwen", "goose")] == [
        "anthropic",
        "openai",
        "google",
        "qwen",
        "goose",
    ]


def test_an_agent_for_all_roles_gives_way_to_one_for_a_role() -> None:
    started, _ = begun(Request(requirement="x", agent="mine", role_agents={Role.reviewer: "codex"}))

    assert isinstance(started, SessionStarted)
    assert started.session.agents[Role.developer] == "mine"
    assert started.session.agents[Role.reviewer] == "codex"


def test_the_analysis_uses_the_number_of_files_that_the_user_gave() -> None:
    _, team = begun(Request(requirement="Add export endpoint", files=11))

    assert isinstance(team, TeamStarted)
    assert team.analysis.pipeline is Pipeline.sprint


@pytest.mark.parametrize(("engine", "root"), [(Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team")])
def test_the_folder_follows_from_the_engine(engine: Engine, root: str) -> None:
    started, _ = begun(Request(requirement="x", engine=engine))

    assert isinstance(started, SessionStarted)
    assert started.session.folder == f"{root}/ids-x-1"


def test_a_table_made_by_hand_comes_with_the_session() -> None:
    rows = (RowEdit(task=task("DEV-001"), status=Status.pending),)

    started, team, added, edited = begun(Request(requirement="x", pipeline=Pipeline.sprint), rows=rows)

    assert isinstance(started, SessionStarted)
    assert started.session.by_hand
    assert isinstance(team, TeamStarted)
    assert team.pipeline is Pipeline.sprint
    assert added == TasksAdded((rows[0].task,))
    assert edited == TableEdited(rows)
