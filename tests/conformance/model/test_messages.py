"""Which turn a conversation has come to, whatever messages its client drops, splits or inserts."""

from iterdev.agents.scripted.script import Fail
from iterdev.conformance.model.messages import (
    Author,
    Message,
    ModelRequest,
    ModelResponse,
    ToolCall,
    pieces,
    retry_headers,
)

USER = Message(author=Author.user, text="Do it.")
TOOL = Message(author=Author.other)


def model(text: str = "", *calls: str) -> Message:
    return Message(author=Author.model, text=text, calls=calls)


def turn(*history: Message) -> int:
    return ModelRequest(model="m", streaming=False, history=history).turn


def test_a_conversation_begins_with_turn_0() -> None:
    assert turn(USER) == 0


def test_turns_are_counted() -> None:
    assert turn(USER, model("one"), USER, model("two"), USER) == 2


def test_parts_of_one_turn_are_counted_once() -> None:
    assert turn(USER, model("I will."), model("", "turn_0_call_0"), TOOL) == 1


def test_the_ids_of_calls_name_the_turn_where_messages_were_dropped_or_split() -> None:
    assert turn(USER, model("", "turn_4_call_0", "turn_4_call_1"), TOOL) == 5
    assert turn(USER, model("I will."), USER, model("", "turn_0_call_0"), TOOL) == 1
    assert turn(USER, model("", "write_file__turn_2_call_0"), TOOL) == 3


def test_messages_that_a_client_inserts_in_the_name_of_the_model_are_not_counted() -> None:
    assert turn(USER, model("Got it. Thanks for the context!"), USER) == 0
    assert turn(USER, model("", "turn_1_call_0"), TOOL, model("No response requested."), USER) == 2


def test_ids_name_their_turn_and_are_the_same_when_it_is_requested_again() -> None:
    calls = (ToolCall(tool="a", arguments={}), ToolCall(tool="b", arguments={}))
    response = ModelResponse(model="m", turn=3, calls=calls)

    ids = [id_ for id_, _ in response.calls_with_ids()]

    assert len(set(ids)) == 2
    assert ids == [id_ for id_, _ in response.calls_with_ids()]
    assert turn(USER, model("", *ids)) == 4


def test_a_text_comes_in_pieces_that_make_the_text() -> None:
    assert len(pieces("a longer text")) > 1
    assert "".join(pieces("a longer text")) == "a longer text"
    assert pieces("") == ()


def test_a_limit_says_when_to_retry() -> None:
    assert retry_headers(Fail(status=500)) == {}
    assert retry_headers(Fail(status=429, reset_in=60)) == {"retry-after": "60"}
    assert retry_headers(Fail(status=429, reset_in=60, retry_after=1.5)) == {"retry-after": "1.5"}
