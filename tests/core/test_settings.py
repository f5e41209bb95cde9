"""The configuration: defaults, and every problem of a document at once."""

import tomllib

import pytest

from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.core import settings as configuration
from iterdev.core.errors import UserError
from iterdev.core.settings import RemoteEngine, RemoteSettings, Settings, TimeLimits
from iterdev.teams.development.roles import WORKERS, Role

WHOLE = """
[run]
agent = "claude"
concurrency = 4
budget_usd = 5.0
budget_tokens = 1000000

[roles.reviewer]
agent = "codex"

[project]
setup = "npm ci"
test = "pytest -q"
copy = [".env"]

[limits]
wave = 900
attempt = 60.5
rounds = 0

[agents.mine]
command = ["python3", "tools/my_agent.py"]
"""

ONE_WAY = "needs exactly one of `command`, `script`, `acp` and `uses`"


def read(text: str) -> Settings:
    return configuration.read(tomllib.loads(text), WORKERS, KNOWN_AGENTS)


def problems(text: str) -> str:
    with pytest.raises(UserError) as caught:
        read(text)
    return caught.value.message.removeprefix("iterdev.toml: ")


@pytest.mark.requirement("R2")
def test_without_a_configuration_everything_has_its_default() -> None:
    settings = read("")

    assert settings == Settings()
    assert settings.run.concurrency == 3
    assert settings.limits.rounds == 3
    assert (settings.time_limits(TimeLimits()).wave, settings.limits.attempt) == (900, 900)


@pytest.mark.requirement("R29")
def test_an_interactive_agent_has_120_seconds_and_60_more_after_it_was_asked_to_finish() -> None:
    limits = Settings().time_limits(TimeLimits())

    assert (limits.interactive, limits.finish) == (120, 60)


def test_a_whole_document_is_read() -> None:
    settings = read(WHOLE)

    assert settings.run.concurrency == 4
    assert settings.project.copy == (".env",)
    assert (settings.limits.attempt, settings.limits.rounds) == (60.5, 0)
    assert settings.agents["mine"].command == ("python3", "tools/my_agent.py")


def test_a_role_has_its_own_agent_or_the_one_for_all() -> None:
    settings = read(WHOLE)

    assert settings.agent_for(Role.reviewer) == "codex"
    assert settings.agent_for(Role.developer) == "claude"


def test_shell_and_network_are_those_of_the_role_or_those_for_all() -> None:
    settings = read("[run]\nshell = false\n[roles.tester]\nnetwork = true\n[roles.developer]\nshell = true")

    assert {role: settings.allows_shell(role) for role in WORKERS} == {
        Role.architect: False,
        Role.developer: True,
        Role.tester: False,
        Role.reviewer: False,
    }
    assert [role for role in WORKERS if settings.allows_network(role)] == [Role.tester]
    assert [role for role in WORKERS if not read("").allows_shell(role) or read("").allows_network(role)] == []


@pytest.mark.parametrize(
    "table",
    [
        '[agents.claude]\nmodel = "haiku"',
        '[agents.gemini]\nargs = ["--debug"]\nhome = "~/gemini"',
        '[agents.fast]\nuses = "claude"\nmodel = "haiku"',
        '[agents.mine]\nacp = ["my-agent", "--acp"]\nmodel = "large"',
        '[agents.codex]\ncommand = ["my-codex"]',
    ],
)
def test_a_known_agent_is_adjusted_renamed_or_replaced(table: str) -> None:
    assert len(read(table).agents) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("runn = 1", 'unknown key "runn" (did you mean "run"?)'),
        ("[run]\nconcurency = 2", '[run] unknown key "concurency" (did you mean "concurrency"?)'),
        ("[run]\nzzz = 2", '[run] unknown key "zzz" (known: agent, concurrency, budget_usd, budget_tokens, '),
        ('[roles.tester]\nagnt = "x"', '[roles.tester] unknown key "agnt" (did you mean "agent"?)'),
        ('[roles.testr]\nagent = "x"', 'unknown role "testr" (did you mean "tester"?)'),
        ('[roles.gc-controller]\nagent = "x"', 'unknown role "gc-controller"'),
        ("[roles.reviewer]\nwrite = true", '[roles.reviewer] unknown key "write"'),
        ('[run]\nshell = "yes"', "[run] shell: Expected `bool`, got `str`"),
        ("[run]\nconcurrency = 0", "[run] concurrency is 0, and at least 1 is needed"),
        ("[run]\nconcurrency = true", "[run] concurrency: Expected `int`, got `bool`"),
        ("[run]\nbudget_usd = -1", "[run] budget_usd is -1, and at least 0 is needed"),
        ("[run]\nday_budget_tokens = -1", "[run] day_budget_tokens is -1, and at least 0 is needed"),
        ("[project]\nports = 32", "[project] ports is 32, and at most 31 is possible"),
        ("[limits]\nrounds = -1", "[limits] rounds is -1, and at least 0 is needed"),
        ("[limits]\nwave = 0", "[limits] wave is 0, and must be more than 0"),
        ("[limits]\nwave = inf", "[limits] wave is inf, and must be finite"),
        ("[limits]\nattempt = nan", "[limits] attempt is nan, and must be finite"),
        ('[limits]\nwave = "long"', "[limits] wave: Expected `float | null`, got `str`"),
        ('[agents.mine]\ncommand = ["x", 3]', "[agents.mine] command[1]: Expected `str`, got `int`"),
        ("[agents.mine]", f"[agents.mine] {ONE_WAY}"),
        ('[agents.mine]\nmodel = "x"', f"[agents.mine] {ONE_WAY}"),
        ('[agents.mine]\ncommand = ["x"]\nscript = "y"', f"[agents.mine] {ONE_WAY}"),
        ('[agents.claude]\ncommand = ["x"]\nacp = ["y"]', f"[agents.claude] {ONE_WAY}"),
        (
            '[agents.fast]\nuses = "claud"',
            '[agents.fast] uses "claud", which is no known agent (did you mean "claude"?)',
        ),
        (
            '[agents.mine]\ncommand = ["x"]\nmodel = "y"',
            "[agents.mine] `model` has no meaning beside `command`",
        ),
        ('[agents.mine]\nscript = "x"\nhome = "y"', "[agents.mine] `home` has no meaning beside `script`"),
        ('[debt]\nseverity = "ugly"', "[debt] severity: Invalid enum value 'ugly'"),
        ("[debt]\nsprints = -1", "[debt] sprints is -1, and at least 0 is needed"),
        ('[agents.a]\ncommand = ["x"]\nfallback = "a"', "[agents.a] fallback goes round in a circle: a -> a"),
        (
            '[agents.claude]\nfallback = "codex"\n[agents.codex]\nfallback = "claude"',
            "[agents.claude] fallback goes round in a circle: claude -> codex -> claude",
        ),
        ('run = "fast"', '[run] is "fast", expected a table'),
        ("roles = 3", '[roles] is "3", expected a table'),
        ('[roles]\ntester = "x"', '[roles.tester] is "x", expected a table'),
    ],
)
def test_a_problem_is_named_with_its_place_and_value(text: str, problem: str) -> None:
    assert problem in problems(text)


def test_every_problem_is_named_and_not_only_the_first() -> None:
    text = '[run]\nagent = 3\nconcurrency = 0\n[limits]\nwave = "x"\nattempt = "y"\n[agents.mine]\nscrip = 1'

    assert problems(text).split("; ") == [
        '[agents.mine] unknown key "scrip" (did you mean "script"?)',
        "[run] agent: Expected `str`, got `int`",
        "[run] concurrency is 0, and at least 1 is needed",
        "[limits] wave: Expected `float | null`, got `str`",
        "[limits] attempt: Expected `float`, got `str`",
        f"[agents.mine] {ONE_WAY}",
    ]


def test_hosts_are_used_only_if_the_configuration_says_so() -> None:
    assert read("").remote.engine is None
    assert read("[remote]\nengine = 'temporal'\n").remote == RemoteSettings(engine=RemoteEngine.temporal)


def test_a_lease_that_is_too_short_for_a_heartbeat_is_refused() -> None:
    assert problems("[remote]\nlease = 1\n") == "[remote] lease is 1, and at least 5 is needed"


def test_another_way_to_other_machines_is_refused() -> None:
    assert "[remote] engine" in problems("[remote]\nengine = 'ray'\n")
