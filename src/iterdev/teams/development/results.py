"""What the agents of the development team hand in, one schema per role."""

from enum import StrEnum
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct

from iterdev.core.results import Dependency, Result
from iterdev.core.types import Severity

REFERENCE = ("file", "line", "dimension")
"""What every finding is asked for."""
OMISSIONS_NAMED = 5
"""Findings that are named when they lack something."""

Score = Annotated[float, Meta(ge=1, le=10)]


class Component(Struct, frozen=True, kw_only=True):
    name: str
    dependencies: tuple[str, ...]
    responsibility: str = ""
    files: tuple[str, ...] = ()
    complexity: str = ""


class WorkItem(Struct, frozen=True, kw_only=True):
    """One entry of the architect's breakdown."""

    id: str
    title: str
    files: tuple[str, ...] = ()
    complexity: str = ""
    dependencies: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] | str = ()
    feedback: Annotated[tuple[str, ...], Meta(description="ids of the user's feedback that this task takes up")] = ()

    @property
    def name(self) -> str:
        """The title in one line, or where there is none the id."""
        return " ".join(self.title.split()) or " ".join(self.id.split()) or "untitled"

    @property
    def criteria(self) -> tuple[str, ...]:
        criteria = self.acceptance_criteria
        return criteria if isinstance(criteria, tuple) else (criteria,) if criteria else ()


class Milestone(Struct, frozen=True, kw_only=True):
    """What one sprint of a larger piece of work is for."""

    title: str
    tasks: tuple[str, ...] = ()
    """The ids of the breakdown's items that belong to it."""


class Strategy(StrEnum):
    """How an architect cuts the work."""

    direct = "direct"
    """One module changes."""
    components = "components"
    """Several modules change, and meet at integration points."""
    phases = "phases"
    """A large refactoring, in milestones that each leave the code working."""


class Design(Result, frozen=True, kw_only=True):
    design: str
    strategy: Annotated[str, Meta(extra_json_schema={"enum": list(Strategy)})] = ""
    """A word of the architect's own is shown as it is."""
    integration_points: tuple[str, ...] = ()
    components: Annotated[tuple[Component, ...], Meta(min_length=1)]
    tasks: Annotated[tuple[WorkItem, ...], Meta(min_length=1)]
    milestones: tuple[Milestone, ...] = ()
    """One for each sprint, where the work takes several."""


class Development(Result, frozen=True, kw_only=True):
    external_dependencies: tuple[Dependency, ...] = ()
    resolved_debt: Annotated[tuple[str, ...], Meta(description="ids of technical debt that this work pays back")] = ()


class Testing(Result, frozen=True, kw_only=True):
    test_command: str | None = None


class Scores(Struct, frozen=True, kw_only=True):
    correctness: Score
    completeness: Score
    maintainability: Score
    security: Score


class Finding(Struct, frozen=True, kw_only=True):
    """One problem that a reviewer names."""

    severity: str
    description: str
    file: str = ""
    line: int | str | None = None
    dimension: Annotated[str, Meta(extra_json_schema={"enum": list(Scores.__struct_fields__)})] = ""
    suggestion: str = ""

    def __post_init__(self) -> None:
        if self.severity.lower() not in set(Severity):
            raise ValueError(f'severity is "{self.severity}", expected one of {", ".join(Severity)}')

    @property
    def grade(self) -> Severity:
        return Severity(self.severity.lower())

    @property
    def omissions(self) -> tuple[str, ...]:
        """What every finding is asked for and this one does not say."""
        known = self.dimension.casefold() in Scores.__struct_fields__
        lacking = {"file": not self.file, "line": self.line in {None, ""}, "dimension": not known}
        return tuple(name for name in REFERENCE if lacking[name])

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line not in {None, ""} else self.file

    @property
    def reference(self) -> str:
        """Where the problem is and of which kind, also where the reviewer did not say it."""
        return f"{self.place or 'no file given'} ({self.dimension or 'no dimension given'})"


class Review(Result, frozen=True, kw_only=True):
    scores: Scores
    issues: tuple[Finding, ...] = ()
    design_alignment: Annotated[
        str, Meta(description="whether the change follows the design, and where it does not")
    ] = ""

    @property
    def omissions(self) -> str:
        found = (
            f'"issues[{number}]" does not name its {" and ".join(lacking)}'
            for number, issue in enumerate(self.issues)
            if (lacking := issue.omissions)
        )
        return "; ".join(islice(found, OMISSIONS_NAMED))


class Decision(Result, frozen=True, kw_only=True):
    """The controller's decision at the end of a round; computed, never asked for."""
