"""Findings across rounds: the same problem, named again, is the same finding."""

import re
from hashlib import sha256

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskId
from iterdev.teams.development.fields import fields
from iterdev.teams.development.results import Finding, Review
from iterdev.teams.development.state import development

_NOISE = re.compile(r"[\W\d_]+")
"""What does not change a problem: letter case, spaces, punctuation, and numbers, which are mostly those of lines."""


def identity(finding: Finding) -> str:
    """Made of file, dimension and words; the line is left out, because it moves when something above it is fixed."""
    words = _NOISE.sub(" ", finding.description.casefold()).strip()
    text = f"{finding.file}\n{finding.dimension.casefold()}\n{words}"
    return f"F-{sha256(text.encode()).hexdigest()[:8]}"


class Comparison(Struct, frozen=True, kw_only=True):
    """What became of the findings of the review before."""

    fixed: tuple[Finding, ...]
    still_there: tuple[Finding, ...]
    new: tuple[Finding, ...]


def compared(before: Review, after: Review) -> Comparison:
    known, now = {identity(one) for one in before.issues}, {identity(one) for one in after.issues}
    return Comparison(
        fixed=tuple(one for one in before.issues if identity(one) not in now),
        still_there=tuple(one for one in after.issues if identity(one) in known),
        new=tuple(one for one in after.issues if identity(one) not in known),
    )


def review_before(state: State, task: Task) -> TaskId | None:
    """The latest review of an earlier round of the same sprint."""
    own = fields(task)
    rows = map(state.tasks.plan.__getitem__, development(state).reviews if own.round else ())
    earlier = [row.id for row in rows if fields(row).sprint == own.sprint and fields(row).round < own.round]
    return max(earlier, key=state.tasks.order.__getitem__, default=None)


def of_round(state: State, task: TaskId) -> Comparison | None:
    """How a review differs from the one of the round before; None for a first review."""
    reviews, before = development(state).reviews, review_before(state, state.tasks.plan[task])
    return compared(reviews[before], reviews[task]) if before and task in reviews else None
