"""A sequence that only grows. Older values stay as they were, and adding an item copies nothing.

The parts of the state that have an item for each of many events, such as messages, would otherwise be copied for
every one of them, and the time to fold a journal would grow with the square of its length.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Self, TypeVar, overload

T = TypeVar("T")


class AppendOnly(Sequence[T]):
    """Values that grew from one another share one list; each has its first items, up to a length of its own."""

    __slots__ = ("_count", "_items", "_load")

    _load: Callable[[], list[T]]

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._count = len(self._items)

    @classmethod
    def deferred(cls, count: int, load: Callable[[], list[T]]) -> Self:
        """A value whose items, in the order in which they were added, are made when one of them is first used."""
        value = cls.__new__(cls)
        value._count, value._load = count, load  # noqa: SLF001 - of this class
        return value

    def __getattr__(self, name: str) -> list[T]:
        # Called for what is not set: the items of a deferred value.
        if name != "_items":
            raise AttributeError(name)
        self._items = self._load()
        return self._items

    def as_added(self) -> list[T]:
        """The items in the order in which they were added."""
        return self._items[: self._count]

    def extended(self, items: Iterable[T]) -> Self:
        # Something else was added to this value before, and belongs to another future.
        shared = self._items if len(self._items) == self._count else self._items[: self._count]
        shared.extend(items)
        longer = type(self)()
        longer._items, longer._count = shared, len(shared)  # noqa: SLF001 - of this class
        return longer

    def begins_with(self, earlier: "AppendOnly[T]") -> bool:
        """Whether this value is the earlier one, or adds to it."""
        if self._items is earlier._items:  # noqa: SLF001 - of this class
            return len(earlier) <= len(self)
        return self.as_added()[: len(earlier)] == earlier.as_added()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple([self._items[number] for number in self._places()[place]])
        return self._items[self._places()[place]]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._count)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AppendOnly) and other._items is self._items:
            return self._count == other._count
        if not isinstance(other, AppendOnly | tuple):
            return NotImplemented
        return self._count == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def _places(self) -> range:
        return range(self._count)


class NewestFirst(AppendOnly[T]):
    """The same, in the opposite order: what was added last comes first."""

    __slots__ = ()

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(reversed([*items]))

    def __iter__(self) -> Iterator[T]:
        return (self._items[number] for number in self._places())

    def _places(self) -> range:
        return range(self._count)[::-1]
