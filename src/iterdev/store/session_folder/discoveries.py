"""discoveries.ndjson: discoveries that agents share. Lines are only appended; unreadable lines are skipped."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.encodable import encodable_document
from iterdev.core.formatting import MASK
from iterdev.core.results import MOST_LEVELS, Discovery, nesting
from iterdev.store import atomic_files

NAME = "discoveries.ndjson"

KEYS: Mapping[str, tuple[str, ...]] = {
    "design_decision": ("component",),
    "implementation": ("file",),
    "test_result": ("test_suite",),
    "review_finding": ("file_line",),
    "convention": ("name",),
    "gc_decision": ("round",),
    "file_found": ("path",),
    "pattern_found": ("pattern", "location"),
    "dependency_found": ("from", "to"),
    "solution_approach": ("issue_id",),
    "conflict_found": ("files",),
    "impl_result": ("issue_id",),
}
"""By type, the fields of `data` that make two entries the same discovery."""

FURTHER_KEYS: Mapping[str, tuple[str, ...]] = {"gc_decision": ("sprint",)}
"""Optional fields that distinguish discoveries: rounds are numbered separately in each sprint."""


class Line(Struct, frozen=True, kw_only=True):
    ts: object = ""
    worker: object = ""
    """Agents write lines too, so that these need not be text."""
    type: str
    data: dict[str, object]

    @property
    def identity(self) -> tuple[str, str]:
        fields = (*KEYS.get(self.type, tuple(sorted(self.data))), *FURTHER_KEYS.get(self.type, ()))
        values = [self.data.get(field) for field in fields]
        return self.type, json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)


def read(path: Path) -> list[Line]:
    """The readable entries, each discovery once."""
    text = (atomic_files.read(path) or b"").decode("utf-8", "replace")
    found: dict[tuple[str, str], Line] = {}
    for line in filter(None, map(_parsed, text.split("\n"))):
        found.setdefault(line.identity, line)
    return list(found.values())


def add(path: Path, discoveries: Iterable[Discovery], *, worker: str, ts: str) -> int:
    """Appends what is new, in one write, and returns the number of new lines."""
    known = {line.identity for line in read(path)}
    fresh: dict[tuple[str, str], Line] = {}
    for discovery in discoveries:
        line = Line(ts=ts, worker=worker, type=discovery.type, data=discovery.data)
        if discovery.type in KEYS and line.identity not in known:
            fresh.setdefault(line.identity, line)
    if fresh:
        documents = map(msgspec.structs.asdict, fresh.values())
        lines = (json.dumps(document, ensure_ascii=False, default=str) for document in documents)
        atomic_files.extend(path, "".join(f"{line}\n" for line in lines))
    return len(fresh)


def redact(path: Path, clean: Callable[[str], str], *, complete: bool = True) -> None:
    """Removes secrets from the lines that agents wrote themselves.

    Every line keeps its place and its length, because agents may append at the same time; then the last one may not be
    complete, and is left for later.
    """
    with suppress(OSError), open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+b") as file:  # noqa: PTH123 - a descriptor
        place, body = 0, file.read()
        text = body.decode("utf-8", "ignore")
        if clean(text) == text:
            return
        for line in body.split(b"\n")[: None if complete else -1]:
            if (kept := _redacted(line, clean)) != line:
                os.pwrite(file.fileno(), kept, place)
            place += len(line) + 1


def _redacted(line: bytes, clean: Callable[[str], str]) -> bytes:
    """The line without secrets, padded with blanks; an unreadable line becomes all blank."""
    text = line.decode("utf-8", "ignore")
    if _parsed(text) is None:
        return b" " * len(line)
    redacted = clean(text)
    if redacted == text:
        return line
    # A secret has at least six letters, and may be shorter than what stands for it.
    short = redacted.replace(MASK, "***")
    fitting = next((one for one in (redacted, short) if len(one.encode()) <= len(line)), "")
    return fitting.encode().ljust(len(line))


def _parsed(text: str) -> Line | None:
    with suppress(ValueError, RecursionError):
        if nesting(text) > MOST_LEVELS:
            return None
        line = msgspec.convert(encodable_document(json.loads(text)), Line)
        return line if line.type in KEYS else None
    return None
