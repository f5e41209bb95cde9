"""The inputs with which faults were found, kept so that none comes back.

A file holds one input: a list of texts, each with the number of times that it is repeated. Bytes that are not UTF-8 are
lone surrogates.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

FOUND = Path(__file__).with_name("found")
SHORT = 20_000
"""Bytes of an input that is kept as it is; a longer one is mostly a part that is repeated."""


def inputs(target: str) -> dict[str, bytes]:
    """By the names of the files."""
    paths = sorted((FOUND / target.replace(" ", "-")).glob("*.json"))
    return {path.stem: decoded(json.loads(path.read_text(encoding="utf-8"))) for path in paths}


def keep(target: str, data: bytes) -> Path:
    folder = FOUND / target.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256(data).hexdigest()[:12]}.json"
    path.write_text(json.dumps(encoded(data), indent=1) + "\n", encoding="utf-8")
    return path


def decoded(parts: Sequence[Sequence[str | int]]) -> bytes:
    return b"".join(str(text).encode("utf-8", "surrogateescape") * int(times) for text, times in parts)


def encoded(data: bytes) -> list[list[str | int]]:
    """The longest repetition of a short part, between what is before and behind it."""
    best = (0, 0, 1)
    if len(data) > SHORT:
        middle = len(data) // 2
        for size in range(1, 300):
            part = data[middle : middle + size]
            start, end = middle, middle
            while data[start - size : start] == part and start >= size:
                start -= size
            while data[end : end + size] == part:
                end += size
            if end - start > 10 * size and end - start > best[1] - best[0]:
                best = (start, end, size)
    start, end, size = best
    pieces = ((data[:start], 1), (data[start : start + size], (end - start) // size), (data[end:], 1))
    return [[piece.decode("utf-8", "surrogateescape"), times] for piece, times in pieces if piece and times]
