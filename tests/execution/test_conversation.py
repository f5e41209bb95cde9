"""Asking an overloaded provider again, and an interactive agent to finish."""

import anyio
import pytest

from iterdev.agents.contract import AgentFailure, Answer, Reply
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.prompts import FINISH_NOW
from iterdev.core.settings import Limits
from iterdev.execution.conversation import ask_to_finish, retry_overload

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


@pytest.mark.parametrize(("answers_to", "sent"), [(0, ["Do it."]), (1, ["Do it.", FINISH_NOW])])
def test_an_interactive_agent_that_answers_in_time_is_asked_nothing_more(answers_to: int, sent: list[str]) -> None:
    reply, prompts = urged(answers_to=answers_to)

    assert (reply, prompts) == (ANSWER, sent)


def test_an_interactive_agent_that_never_answers_is_asked_once_to_finish() -> None:
    reply, prompts = urged(answers_to=None)

    assert prompts == ["Do it.", FINISH_NOW]
    assert isinstance(reply, AgentFailure)
    assert reply.kind is FailureKind.timed_out


def urged(*, answers_to: int | None) -> tuple[Reply, list[str]]:
    """The reply of an interactive agent that answers only one of its prompts, and the prompts that it got."""
    prompts: list[str] = []

    async def send(prompt: str) -> Reply:
        prompts.append(prompt)
        if len(prompts) - 1 != answers_to:
            await anyio.sleep_forever()
        return ANSWER

    return anyio.run(ask_to_finish, send, "Do it.", Limits(interactive=0.01, finish=0.01), "mine"), prompts
