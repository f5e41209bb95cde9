"""The table of keys: what is pressed means one thing."""

from collections import Counter

import pytest

from iterdev.core.views.keys import KEYS, Action, Place, Surface, keys_of


@pytest.mark.parametrize("surface", Surface)
@pytest.mark.parametrize("place", Place)
def test_a_key_does_one_thing_in_each_place(surface: Surface, place: Place) -> None:
    here = [key for key in keys_of(surface) if key.place in {Place.everywhere, place}]

    pressed = Counter(word for key in here for word in key.keys)

    assert [word for word, count in pressed.items() if count > 1] == []


@pytest.mark.parametrize("surface", Surface)
def test_no_key_is_the_beginning_of_two_keys(surface: Surface) -> None:
    pressed = {word for key in keys_of(surface) for word in key.keys}

    assert [word for word in pressed if " " in word and word.split()[0] in pressed] == []


def test_every_action_has_a_key_and_a_sentence() -> None:
    assert {key.action for key in KEYS} == set(Action)
    assert all(key.keys and key.help and not key.help.endswith(".") for key in KEYS)
