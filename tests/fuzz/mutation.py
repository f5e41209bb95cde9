"""Makes inputs out of examples: bytes changed, parts repeated, nested, cut, exchanged and joined.

The same seed gives the same inputs on every machine.
"""

from collections.abc import Callable, Sequence
from random import Random

SMALL, LARGE = 10_000, 200_000
"""Bytes of most inputs, and of those in which something is repeated: what is not linear does not end with those."""
LARGE_ONE_IN = 40

PIECES: Sequence[bytes] = (
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b" ",
        b"\0",
        b"\x1b[31m",
        b"\x1b]0;",
        b"\x07",
        b"\x7f",
        b"\xff",
        b"\xc3",
        b"\xe2\x80\xae",
    ),
    *(
        b"\xed\xa0\x80",
        "\u2028".encode(),
        "\u017f".encode(),
        "\u0663".encode(),
        "\U0001d7d9".encode(),
        "\U00010348".encode(),
    ),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"(",
        b")",
        b"<",
        b">",
        b'"',
        b"'",
        b"`",
        b"\\",
        b"/",
        b"|",
        b"#",
        b"=",
        b":",
        b",",
        b";",
    ),
    *(b"{}", b"[]", b'""', b"null", b"true", b"NaN", b"Infinity", b"-0", b"1e999", b"9" * 20, b"9" * 400, b"9" * 5_000),
    *(
        b"\\ud800",
        b"\\u0000",
        b'"\\ud800"',
        b'{"a":',
        b"[[",
        b"- ",
        b"* ",
        b"::",
        b" > ",
        b"/../",
        b"..",
        b"~",
        b"%s",
        b"%00",
    ),
    *(
        b"-----BEGIN PRIVATE KEY-----",
        b"-----END PRIVATE KEY-----",
        b"<!--",
        b"<![CDATA[",
        b"]]>",
        b"&amp;",
        b"<a>",
        b"</a>",
    ),
    *(
        b"1970-01-01T00:00:00Z",
        b"9999-99-99T99:99:99Z",
        b"2026-02-30",
        b"-1",
        b"0",
        b"1",
        b"2147483648",
        b"18446744073709551616",
    ),
)
"""What parsers trip over."""


class Mutator:
    def __init__(self, examples: Sequence[bytes], random: Random) -> None:
        self._examples, self._random = examples, random

    def input(self) -> bytes:
        chance = self._random
        data = chance.choice(self._examples)
        large = chance.randrange(LARGE_ONE_IN) == 0
        for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8))):
            data = chance.choice(_CHANGES)(self, data)[: max(SMALL, len(data))]
        return self._enlarged(data) if large else data

    def _span(self, data: bytes) -> tuple[int, int]:
        start = self._random.randrange(len(data) + 1)
        return start, min(len(data), start + self._random.choice((1, 2, 4, 8, 16, 64, 256)))

    def _enlarged(self, data: bytes) -> bytes:
        """A part of the input, repeated until it is large, inside of the rest or alone."""
        start, end = self._span(data)
        part = data[start:end] if self._random.random() < 0.6 else b"".join(self._random.choices(PIECES, k=2))[:64]
        many = part * (LARGE // max(1, len(part)))
        return data[:start] + many + data[end:] if self._random.random() < 0.7 else many

    def _overwrite(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._random.choice((1, 1, 2, 4))):
            if changed:
                changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)

    def _insert(self, data: bytes) -> bytes:
        start, _ = self._span(data)
        return data[:start] + self._random.choice(PIECES) + data[start:]

    def _replace(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:start] + self._random.choice(PIECES) + data[end:]

    def _delete(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:end] + data[start:end] * self._random.choice((1, 2, 10, 100, 1000)) + data[end:]

    def _nest(self, data: bytes) -> bytes:
        """Brackets around a part, many of them."""
        start, end = self._span(data)
        opening, closing = self._random.choice(
            ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<a>", b"</a>"), (b"    ", b""))
        )
        depth = self._random.choice((1, 3, 70, 300, 1500))
        return data[:start] + opening * depth + data[start:end] + closing * depth + data[end:]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._random.randrange(len(data) + 1)]

    def _join(self, data: bytes) -> bytes:
        other = self._random.choice(self._examples)
        return data[: self._random.randrange(len(data) + 1)] + other[self._random.randrange(len(other) + 1) :]

    def _exchange_lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        first, second = self._random.randrange(len(lines)), self._random.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        return b"\n".join(lines)

    def _exchange_numbers(self, data: bytes) -> bytes:
        """Another digit in the place of one that is there, which most parsers take as a number."""
        places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
        if not places:
            return self._overwrite(data)
        place = self._random.choice(places)
        return (
            data[:place] + self._random.choice((b"0", b"9", b"-1", b"13", b"99", b"9" * 30, b".")) + data[place + 1 :]
        )


_CHANGES: Sequence[Callable[[Mutator, bytes], bytes]] = (
    Mutator._overwrite,
    Mutator._insert,
    Mutator._insert,
    Mutator._replace,
    Mutator._replace,
    Mutator._delete,
    Mutator._repeat,
    Mutator._nest,
    Mutator._cut,
    Mutator._join,
    Mutator._exchange_lines,
    Mutator._exchange_numbers,
)
