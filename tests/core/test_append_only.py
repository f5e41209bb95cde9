"""A sequence that only grows."""

from iterdev.core.append_only import AppendOnly, NewestFirst


def test_an_older_value_stays_as_it_was() -> None:
    before = AppendOnly("ab")

    after = before.extended("cd")

    assert (tuple(before), len(before)) == (("a", "b"), 2)
    assert (tuple(after), len(after)) == (("a", "b", "c", "d"), 4)


def test_two_values_that_grow_from_the_same_one_do_not_mix() -> None:
    before = AppendOnly("a")

    first, second = before.extended("b"), before.extended("c")

    assert (first, second) == (("a", "b"), ("a", "c"))


def test_places_and_slices_end_with_the_value() -> None:
    before = AppendOnly("abc")
    before.extended("d")

    assert (before[-1], before[1:], before[:-1]) == ("c", ("b", "c"), ("a", "b"))
    assert list(reversed(before)) == ["c", "b", "a"]


def test_a_value_equals_what_has_the_same_items() -> None:
    before = AppendOnly("ab")

    assert before == AppendOnly("ab")
    assert before == ("a", "b")
    assert before != before.extended("c")
    assert before != ("a", "c")


def test_a_value_begins_with_every_one_that_it_grew_from() -> None:
    before = AppendOnly("ab")
    after = before.extended("c")

    assert after.begins_with(before)
    assert AppendOnly("abc").begins_with(before)
    assert not before.begins_with(after)
    assert not AppendOnly("bbc").begins_with(before)


def test_what_was_added_last_comes_first() -> None:
    before = NewestFirst("ba")

    after = before.extended("c")

    assert (tuple(after), after[0], after[-1], after[:2]) == (("c", "b", "a"), "c", "a", ("c", "b"))
    assert (before, list(reversed(after))) == (("b", "a"), ["a", "b", "c"])


def test_the_items_of_a_deferred_value_are_made_when_one_is_used_and_only_once() -> None:
    made: list[str] = []

    def load() -> list[str]:
        made.append("now")
        return ["a", "b"]

    value = AppendOnly.deferred(2, load)
    assert (len(value), bool(value), made) == (2, True, [])

    assert value.extended("c") == ("a", "b", "c")
    assert value == ("a", "b")
    assert made == ["now"]


def test_a_deferred_value_has_its_own_order() -> None:
    value = NewestFirst.deferred(2, lambda: ["old", "new"])

    assert value == ("new", "old")
    assert value.as_added() == ["old", "new"]
