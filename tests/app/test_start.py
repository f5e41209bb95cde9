"""How sessions are created, also by several processes at once."""

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from tests.app.conftest import Sessions

from iterdev.app.analyze import analyze
from iterdev.app.start import Request, start
from iterdev.core.errors import HostError, UserError
from iterdev.teams.development.roles import Pipeline

AT_ONCE = 12


def test_sessions_of_the_same_text_that_start_at_once_wait_for_each_other(sessions: Sessions) -> None:
    request = Request(requirement="Add a greeting", pipeline=Pipeline.patch)
    processes = [sessions.open() for _ in range(AT_ONCE)]

    with ThreadPoolExecutor(AT_ONCE) as executor:
        names = list(executor.map(lambda repository: start(repository, request), processes))

    assert len(set(names)) == AT_ONCE
    assert set(sessions.repository.sessions()) == set(names)
    assert set(sessions.repo.git("branch", "--list", "iterdev/*", "--format=%(refname:short)").split()) == {
        f"iterdev/{name}" for name in names
    }


def test_a_budget_of_the_user_takes_the_place_of_the_configured_one(sessions: Sessions) -> None:
    request = Request(requirement="Add a greeting", pipeline=Pipeline.patch)

    limited, usual = (start(sessions.repository, request, budget_usd=usd) for usd in (2.5, None))

    assert sessions.state(limited).policy.budget_usd == 2.5
    assert sessions.state(usual).policy.budget_usd is None


@pytest.mark.parametrize("usd", [-0.01, float("nan"), float("inf")])
def test_a_budget_that_is_no_amount_starts_nothing(sessions: Sessions, usd: float) -> None:
    with pytest.raises(UserError, match="is not an amount of money"):
        start(sessions.repository, Request(requirement="Add a greeting"), budget_usd=usd)

    assert sessions.repository.sessions() == []


def test_an_analyzer_that_only_hosts_have_is_missed_on_this_machine(sessions: Sessions) -> None:
    agents = '[agents.mine]\ncommand = ["not-installed-here"]\n'
    sessions.repo.write("iterdev.toml", f'[run]\nagent = "mine"\n[remote]\nengine = "temporal"\n{agents}')

    with pytest.raises(HostError, match=r'"mine" cannot be used: .*; it analyzes on this machine, not on a host'):
        anyio.run(analyze, sessions.open(), Request(requirement="Add a greeting"))
