"""A program that makes a part of an environment: how it is run, and what is said when it fails."""

from collections.abc import Mapping, Sequence

import pytest
from tests.host.environments.conftest import Bench

from iterdev.host.environments.cache import Cache
from iterdev.host.environments.workplace import CommandFailed, Workplace
from iterdev.host.processes.spawn import ProgramResult

pytestmark = pytest.mark.anyio


async def endless(_: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
    return ProgramResult(code=-9, timed_out=True, stdout=b"", stderr=b"")


async def test_the_limit_of_a_program_is_told_in_minutes(bench: Bench) -> None:
    work = Workplace(
        tree=bench.repo.path,
        home=bench.folder,
        cache=Cache(bench.cache),
        checkout=None,
        trusted=True,
        hard_links=True,
        run=endless,
        variables={},
        limit=600,
    )

    with pytest.raises(CommandFailed, match=r"^`npm ci` failed: it took longer than 10 min$"):
        await work.call("npm", "ci")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param(
            "npm error code E404\nnpm error A complete log of this run is in x", "npm error code E404", id="npm"
        ),
        pytest.param(
            "\N{BLACK RIGHTWARDS ARROWHEAD} YN0028: The lockfile would have been modified.\n"
            "\N{BLACK RIGHTWARDS ARROWHEAD} YN0000: Failed with errors in 0s 37ms",
            "The lockfile would have been modified",
            id="Yarn 4",
        ),
        pytest.param("", "no message", id="nothing"),
    ],
)
def test_a_failure_is_told_by_the_line_that_says_why(output: str, reason: str) -> None:
    assert str(CommandFailed("install", output)).endswith(reason)
