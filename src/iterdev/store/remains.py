"""What a session folder still tells when the journal is gone: designs, sprints that are over, and the bus.

What cannot be read is left out; that is for whoever asks to bear.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct, field

from iterdev.core import events as e
from iterdev.core.names import number_of
from iterdev.core.results import Design
from iterdev.core.words import Pipeline, Role
from iterdev.store.projections import MESSAGES


class Line(Struct, frozen=True, kw_only=True):
    """One message as its file has it."""

    id: str
    ts: datetime
    sender: str = field(name="from")
    to: str
    type: str
    summary: str
    data: dict[str, object] = {}

    def as_sent(self) -> e.MessageSent:
        return e.MessageSent(
            sender=self.sender,
            to=self.to,
            kind=self.type,
            summary=self.summary,
            data=self.data,
            sent_at=self.ts.timestamp(),
            number=int(self.id.removeprefix("MSG-")),
        )


class Sprint(Struct, frozen=True, kw_only=True):
    """One entry of the sprint history."""

    sprint_id: str
    pipeline: Pipeline
    velocity: int
    expected_velocity: int
    mean_review_score: float | None
    gc_rounds: int
    what_worked: tuple[str, ...] = ()
    what_failed: tuple[str, ...] = ()
    patterns_learned: tuple[str, ...] = ()
    tech_debt: str = ""


def read_json(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def designs(folder: Path, rows: Sequence[e.RowEdit]) -> Iterator[e.DesignRestored]:
    """What the architects handed in, and with it the milestones of the sprints to come."""
    for row in rows:
        kept = read_json(folder / "design" / f"design-{number_of(row.task.id)}.json")
        if row.task.role is Role.architect and kept:
            try:
                yield e.DesignRestored(row.task.id, msgspec.convert(kept, Design))
            except msgspec.ValidationError:
                continue


def sprints(meta: Mapping[str, object], before: int) -> Iterator[e.SprintEnded]:
    """How the sprints before this one went."""
    history = meta.get("sprint_history")
    for kept in history if isinstance(history, list) else ():
        try:
            sprint = msgspec.convert(kept, Sprint)
            number = int(sprint.sprint_id.removeprefix("sprint-"))
        except ValueError:
            continue
        if number < before:
            yield e.SprintEnded(number, _record(sprint))


def messages(folder: Path, team: str) -> Iterator[e.MessageSent]:
    """What was on the bus, which older versions kept for each team; a line that is no message is skipped."""
    own, older = folder / MESSAGES, folder.parents[1] / ".team-msg" / Path(team).name / "messages.jsonl"
    try:
        lines = (own if own.exists() else older).read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Line).as_sent()
        except (ValueError, OverflowError, RecursionError):
            continue


def _record(sprint: Sprint) -> e.SprintRecord:
    return e.SprintRecord(
        pipeline=sprint.pipeline,
        expected=sprint.expected_velocity,
        velocity=sprint.velocity,
        mean_score=sprint.mean_review_score,
        rounds=sprint.gc_rounds,
        worked=sprint.what_worked,
        failed=sprint.what_failed,
        learned=sprint.patterns_learned,
        debt=sprint.tech_debt,
    )
