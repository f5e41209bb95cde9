"""What was asked for, and the first events that follow from it."""

import click
import pytest
from tests.core.conftest import task

from iterdev.core.errors import UserError
from iterdev.core.limits.providers import provider_of
from iterdev.core.request import Request, checked, new_session, policy
from iterdev.core.session import tasks
from iterdev.core.session.events import Event, RowEdit, SessionStarted, TableEdited, TasksAdded
from iterdev.core.settings import AgentSettings, Limits, Run, Settings
from iterdev.core.types import Engine, Pipeline, Role, SessionId, Status
from iterdev.surfaces.cli.app import app


def begun(request: Request, settings: Settings | None = None, rows: tuple[RowEdit, ...] = ()) -> list[Event]:
    return new_session(
        request, settings or Settings(), session=SessionId("ids-x-1"), base="abc", branch="main", rows=rows
    )


def parsed(*words: str) -> dict[str, object]:
    """What the command line makes of the words after `iterdev run`."""
    # Without these settings click would remember another help option for the command.
    context = click.Context(app, **app.context_settings)
    command = app.get_command(context, "run")
    assert command
    return command.make_context("run", list(words), parent=context).params


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("flag", ["-y", "--yes"])
def test_both_spellings_of_yes_turn_auto_mode_on(flag: str) -> None:
    assert parsed(flag, "Add export")["yes"] is True
    assert parsed("Add export")["yes"] is False


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("auto", [True, False])
def test_auto_mode_is_part_of_the_rules_of_the_session(auto: bool) -> None:  # noqa: FBT001
    assert policy(Request(requirement="x", auto=auto), Settings()).auto is auto


@pytest.mark.requirement("R2")
@pytest.mark.parametrize("flag", ["-c", "--concurrency"])
def test_both_spellings_of_the_concurrency_are_read(flag: str) -> None:
    assert parsed(flag, "4", "Add export")["concurrency"] == 4


@pytest.mark.requirement("R2")
@pytest.mark.parametrize(
    ("asked", "configured", "limit"), [(None, Run(), 3), (None, Run(concurrency=5), 5), (4, Run(concurrency=5), 4)]
)
def test_the_concurrency_is_what_was_asked_else_configured_else_3(
    asked: int | None, configured: Run, limit: int
) -> None:
    request = Request(requirement="x", concurrency=asked)

    assert policy(request, Settings(run=configured)).concurrency == limit


@pytest.mark.requirement("R3")
@pytest.mark.parametrize(
    "words",
    [
        ("-y", "-c", "4", "Add export endpoint"),
        ("Add export endpoint", "--yes"),
        ("--concurrency=4", "Add", "export", "endpoint"),
    ],
)
def test_what_is_left_without_the_flags_is_the_requirement(words: tuple[str, ...]) -> None:
    text = parsed(*words)["text"]

    assert isinstance(text, tuple)
    assert " ".join(text) == "Add export endpoint"


@pytest.mark.requirement("R3")
def test_the_requirement_is_kept_as_the_session_s() -> None:
    (started,) = begun(Request(requirement="  Add export endpoint \n"))

    assert isinstance(started, SessionStarted)
    assert started.session.requirement == "Add export endpoint"


@pytest.mark.requirement("R4")
@pytest.mark.parametrize("text", ["Mend check-yaml", "use -yes-no- words", "say --yesterday or x-c4", "why -y? no"])
def test_a_flag_inside_a_requirement_is_no_flag_and_loses_no_letter(text: str) -> None:
    read = parsed(text)

    assert read["yes"] is False
    assert read["concurrency"] is None
    assert read["text"] == (text,)


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

    rules = policy(Request(requirement="x"), settings)

    assert (rules.wave_limit, rules.attempt_limit, rules.rounds) == (60, 30, 1)
    assert (rules.budget_usd, rules.budget_tokens) == (2.5, 7)
    assert (rules.task_budget_usd, rules.task_budget_tokens) == (1, None)
    assert (rules.day_budget_usd, rules.day_budget_tokens) == (None, 9)


def test_the_rules_say_which_agent_each_role_has_who_takes_over_and_who_answers_it() -> None:
    mine, same = (AgentSettings(command=("agent", "--fast"), fallback=name) for name in ("claude", None))
    settings = Settings(run=Run(agent="mine"), agents={"mine": mine, "same": same, "other": AgentSettings(script="s")})

    rules = policy(Request(requirement="x"), settings)

    assert set(rules.agents.values()) == {"mine"}
    assert rules.fallbacks == {"mine": "claude"}
    assert provider_of(rules, "mine") == provider_of(rules, "same")
    assert provider_of(rules, "mine") != provider_of(rules, "other")
    assert "fast" not in provider_of(rules, "mine")
    assert [provider_of(rules, name) for name in ("claude", "codex", "gemini", "qwen", "goose")] == [
        "anthropic",
        "openai",
        "google",
        "qwen",
        "goose",
    ]


def test_an_agent_for_all_roles_gives_way_to_one_for_a_role() -> None:
    (started,) = begun(Request(requirement="x", agent="mine", role_agents={Role.reviewer: "codex"}))

    assert isinstance(started, SessionStarted)
    assert started.session.agents[Role.developer] == "mine"
    assert started.session.agents[Role.reviewer] == "codex"


def test_the_analysis_uses_the_number_of_files_that_the_user_gave() -> None:
    (started,) = begun(Request(requirement="Add export endpoint", files=11))

    assert isinstance(started, SessionStarted)
    assert started.session.analysis.pipeline is Pipeline.sprint


@pytest.mark.parametrize(("engine", "root"), [(Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team")])
def test_the_folder_follows_from_the_engine(engine: Engine, root: str) -> None:
    (started,) = begun(Request(requirement="x", engine=engine))

    assert isinstance(started, SessionStarted)
    assert started.session.folder == f"{root}/ids-x-1"


def test_a_table_made_by_hand_comes_with_the_session() -> None:
    rows = tuple(RowEdit(task=row, status=Status.pending) for row in tasks.with_waves([task("DEV-001")]))

    started, added, edited = begun(Request(requirement="x", pipeline=Pipeline.patch), rows=rows)

    assert isinstance(started, SessionStarted)
    assert started.session.by_hand
    assert started.session.pipeline is Pipeline.sprint
    assert added == TasksAdded((rows[0].task,))
    assert edited == TableEdited(rows)
