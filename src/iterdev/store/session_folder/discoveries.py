"""discoveries.ndjson: what agents tell each other. Lines are only ever added; a line nobody can read is passed over."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.core.results import Discovery
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
"""Fields that tell discoveries apart where somebody gives them: rounds are counted anew in each sprint."""


class Line(Struct, frozen=True, kw_only=True):
    ts: str
    worker: str
    type: str
    data: dict[str, object]

    @property
    def identity(self) -> tuple[str, str]:
        fields = (*KEYS.get(self.type, tuple(sorted(self.data))), *FURTHER_KEYS.get(self.type, ()))
        values = [self.data.get(field) for field in fields]
        return self.type, json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)


def read(path: Path) -> list[Line]:
    """The readable entries, each discovery once."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    found: dict[tuple[str, str], Line] = {}
    for line in filter(None, map(_parsed, text.split("\n"))):
        found.setdefault(line.identity, line)
    return list(found.values())


def add(path: Path, discoveries: Iterable[Discovery], *, worker: str, ts: str) -> int:
    """Appends what is new, in one write, and says how many that were."""
    known = {line.identity for line in read(path)}
    fresh: dict[tuple[str, str], Line] = {}
    for discovery in discoveries:
        line = Line(ts=ts, worker=worker, type=discovery.type, data=discovery.data)
        if discovery.type in KEYS and line.identity not in known:
            fresh.setdefault(line.identity, line)
    if fresh:
        atomic_files.extend(path, "".join(f"{_text(line)}\n" for line in fresh.values()))
    return len(fresh)


def _parsed(text: str) -> Line | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        return None
    if not isinstance(document.get("type"), str) or document["type"] not in KEYS:
        return None
    return Line(
        ts=str(document.get("ts", "")),
        worker=str(document.get("worker", "")),
        type=document["type"],
        data=document["data"],
    )


def _text(line: Line) -> str:
    document = {"ts": line.ts, "worker": line.worker, "type": line.type, "data": line.data}
    return json.dumps(document, ensure_ascii=False, default=str)
