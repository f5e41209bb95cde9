"""Asking an overloaded provider again."""

import anyio
import pytest

from iterdev.agents.contract import AgentFailure, Answer, Reply
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.execution.conversation import retry_overload

OVERLOADED = AgentFailure(kind=FailureKind.overloaded, message="busy")
ANSWER = Answer(body=b"{}")


def asked(*replies: Reply, waits: int) -> tuple[Reply, int]:
    """The reply that counts, and how often was asked for it; the last reply is given again and again."""
    requests = 0

    async def request() -> Reply:
        nonlocal requests
        requests += 1
        return replies[min(requests, len(replies)) - 1]

    return anyio.run(retry_overload, request, [0.0] * waits), requests


@pytest.mark.parametrize("busy", [0, 1, 2, 3])
def test_an_overloaded_provider_is_asked_again_until_it_answers(busy: int) -> None:
    assert asked(*[OVERLOADED] * busy, ANSWER, waits=3) == (ANSWER, busy + 1)


def test_a_provider_that_stays_overloaded_is_given_up_after_the_last_wait() -> None:
    assert asked(OVERLOADED, waits=3) == (OVERLOADED, 4)


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.overloaded])
def test_no_other_failure_is_retried(kind: FailureKind) -> None:
    trouble = AgentFailure(kind=kind, message="no")

    assert asked(trouble, waits=3) == (trouble, 1)
