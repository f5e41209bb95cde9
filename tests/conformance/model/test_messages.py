"""Which step a conversation has come to, whatever its client made of it."""

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model.messages import (
    Author,
    Message,
    ModelResponse,
    ToolCall,
    pieces,
    retry_headers,
    turns_so_far,
)

USER = Message(author=Author.user, text="Do it.")
TOOL = Message(author=Author.other)


def model(text: str = "", *calls: str) -> Message:
    return Message(author=Author.model, text=text, calls=calls)


def test_a_conversation_begins_with_step_0() -> None:
    assert turns_so_far([USER]) == 0


def test_turns_are_counted() -> None:
    assert turns_so_far([USER, model("one"), USER, model("two"), USER]) == 2


def test_parts_of_one_turn_are_counted_once() -> None:
    assert turns_so_far([USER, model("I will."), model("", "turn_0_call_0"), TOOL]) == 1


def test_the_ids_of_calls_say_the_step_where_messages_were_dropped_or_split() -> None:
    assert turns_so_far([USER, model("", "turn_4_call_0", "turn_4_call_1"), TOOL]) == 5
    assert turns_so_far([USER, model("I will."), USER, model("", "turn_0_call_0"), TOOL]) == 1
    assert turns_so_far([USER, model("", "write_file__turn_2_call_0"), TOOL]) == 3


def test_words_that_a_client_puts_into_the_models_mouth_are_no_turn() -> None:
    assert turns_so_far([USER, model("Got it. Thanks for the context!"), USER]) == 0
    assert turns_so_far([USER, model("", "turn_1_call_0"), TOOL, model("No response requested."), USER]) == 2


def test_ids_say_their_step_and_are_the_same_when_a_step_is_asked_for_again() -> None:
    calls = (ToolCall(tool="a", arguments={}), ToolCall(tool="b", arguments={}))
    response = ModelResponse(model="m", turn=3, calls=calls)

    ids = [id_ for id_, _ in response.calls_with_ids()]

    assert len(set(ids)) == 2
    assert ids == [id_ for id_, _ in response.calls_with_ids()]
    assert turns_so_far([USER, model("", *ids)]) == 4


def test_a_text_comes_in_pieces_that_make_the_text() -> None:
    assert len(pieces("a longer text")) > 1
    assert "".join(pieces("a longer text")) == "a longer text"
    assert pieces("") == ()


def test_a_limit_says_when_to_come_back() -> None:
    assert retry_headers(Fail(status=500)) == {}
    assert retry_headers(Fail(status=429, reset_in=60)) == {"retry-after": "60"}
    assert retry_headers(Fail(status=429, reset_in=60, retry_after=1.5)) == {"retry-after": "1.5"}
