import json

import pytest

from iterdev.agents.claude.protocol import ModelTokens, Tokens, TurnResult, read, turn_usage
from iterdev.core.results import Usage


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"type":"something_new","x":1}',
        b'{"no":"type"}',
        b'{"type":"assistant","message":7}',
        b'{"type":"\xff"}',
    ],
)
def test_a_line_of_another_kind_is_no_event(line: bytes) -> None:
    assert read(line) is None


def test_the_end_of_a_turn_is_reported_even_if_it_cannot_be_decoded() -> None:
    ended = read(b'{"type":"result","is_error":"perhaps"}')

    assert isinstance(ended, TurnResult)
    assert ended.is_error
    assert "could not be read" in ended.text


def test_a_structured_output_is_kept_as_it_was_written() -> None:
    line = json.dumps(
        {"structured_output": {"n": [1, 2.50]}, "result": "x", "new_field": {}, "type": "result"}
    ).encode()

    ended = read(line)

    assert isinstance(ended, TurnResult)
    assert json.loads(bytes(ended.structured_output)) == {"n": [1, 2.5]}


def test_a_turn_counts_the_tokens_of_all_models_in_it() -> None:
    big = ModelTokens(
        input_tokens=1, cache_creation_input_tokens=2, cache_read_input_tokens=3, output_tokens=4, cost=0.5
    )
    small = ModelTokens(input_tokens=10, output_tokens=5, cost=0.25)
    ended = TurnResult(total_cost_usd=9, model_usage_since_last_result={"big": big, "small": small})

    assert turn_usage(ended, cost_before=None) == Usage(input_tokens=16, output_tokens=9, cost_usd=0.75)


def test_without_a_count_of_the_turn_the_cost_is_a_difference() -> None:
    ended = TurnResult(total_cost_usd=0.75, usage=Tokens(input_tokens=1, cache_read_input_tokens=2, output_tokens=3))

    assert turn_usage(ended, cost_before=0.5) == Usage(input_tokens=3, output_tokens=3, cost_usd=0.25)
    assert turn_usage(ended, cost_before=None).cost_usd == 0
