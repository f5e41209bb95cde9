"""Every expectation is met by what it asks for, and describes what it misses otherwise."""

import json

import pytest
from msgspec.structs import replace

from iterdev.agents.contract import AgentFailure, Answer, PermissionAsked, Reply
from iterdev.conformance.expectations import (
    Answered,
    DenialReported,
    Discovered,
    Expectation,
    Failed,
    NoReply,
    NotWritten,
    Observation,
    Recovered,
    RequestContained,
    ResetReported,
    ToolCalled,
    Wrote,
    misses,
)
from iterdev.conformance.model.tool_server import Note
from iterdev.core.limits.agent_failures import FailureKind

NOW = 1_800_000_000.0
NOTHING = Observation(replies=(None,), events=(), requests=(), first_request_at=None, notes=(), token="t", files={})


def answer(findings: str, **more: object) -> Answer:
    document = {"id": "DEV-001", "status": "completed", "findings": findings, **more}
    return Answer(body=json.dumps(document).encode())


def limited(reset_at: float | None) -> AgentFailure:
    return AgentFailure(kind=FailureKind.limited, message="wait", reset_at=reset_at)


def replied(*replies: Reply | None) -> Observation:
    return replace(NOTHING, replies=replies, first_request_at=NOW)


@pytest.mark.parametrize(
    ("expected", "met", "missed", "words"),
    [
        (Answered(("a", "b")), replied(answer("a"), answer("b")), replied(answer("a"), None), "got a, no reply"),
        (Answered(("a",)), replied(answer("a")), replied(Answer(body=b'{"id": "X"}')), "invalid result"),
        (Recovered("b"), replied(None, answer("b")), replied(answer("b"), None), "got no reply"),
        (
            Discovered({"a": {"b": 1}}),
            replied(answer("a", discoveries=[{"type": "pattern", "data": {"a": {"b": 1}}}])),
            replied(answer("a", discoveries=[{"type": "pattern", "data": {"a": '{"b": 1}'}}])),
            "expected the discovery",
        ),
        (Failed(FailureKind.limited), replied(limited(None)), replied(answer("a")), 'expected "rate limited"'),
        (Failed(FailureKind.limited), replied(limited(NOW)), replied(None), "got no reply"),
        (NoReply(), replied(None), replied(answer("a")), "expected no reply"),
        (ResetReported(5), replied(limited(NOW + 6)), replied(limited(NOW + 90)), "off by 85 s"),
        (ResetReported(5), replied(limited(NOW + 4)), replied(limited(None)), "no reset time"),
        (Wrote("a", "x"), replace(NOTHING, files={"a": "x"}), replace(NOTHING, files={"a": "y"}), "written as 'y'"),
        (Wrote("a"), replace(NOTHING, files={"a": "x"}), NOTHING, "not written"),
        (NotWritten("a"), NOTHING, replace(NOTHING, files={"a": ""}), "a was written"),
        (DenialReported(), replace(NOTHING, events=[PermissionAsked("x")]), NOTHING, "no denial"),
        (
            ToolCalled("n"),
            replace(NOTHING, notes=[Note(text="n", token="t")]),
            replace(NOTHING, notes=[Note(text="n", token="other")]),
            "the tool got",
        ),
        (
            RequestContained("plum", 2),
            replace(NOTHING, requests=["", "plum plum"]),
            replace(NOTHING, requests=["plum"]),
            "1 times",
        ),
    ],
)
def test_an_expectation_is_met_or_its_miss_is_described(
    expected: Expectation, met: Observation, missed: Observation, words: str
) -> None:
    (miss,) = misses([expected], missed)

    assert words in miss
    assert misses([expected], met) == ()


def test_a_process_that_is_left_is_always_a_miss() -> None:
    assert misses([], replace(NOTHING, left=["sleep 600"])) == ("still running: sleep 600",)
