"""What agents hand in: one schema per role, and the decoding that turns a misfit into a sentence.

An agent's numbers are taken only where nobody else can know them: scores of a review, never its verdict.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from iterdev.core.types import Role, Severity, TaskId

FINDINGS_LIMIT = 500
"""Longer findings are cut: the table is for people to read."""

Score = Annotated[float, Meta(ge=1, le=10)]
Dimension = Literal["correctness", "completeness", "maintainability", "security"]
Word = TypeVar("Word", bound=str)


class Misfit(ValueError):
    """A result that does not fit its schema; the text says where and why."""


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class Discovery(Struct, frozen=True):
    type: str
    data: dict[str, object]


class Wisdom(Struct, frozen=True, kw_only=True, gc=False):
    learnings: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()


class TechDebt(Struct, frozen=True, kw_only=True):
    """A shortcut that somebody will have to pay for; a bare sentence is one too."""

    description: str
    category: str = "code"
    severity: str = "medium"
    estimated_effort: str = ""
    priority: str = "medium"
    owner: str = ""
    resolution_plan: str = ""
    related_files: tuple[str, ...] = ()


class Result(Struct, frozen=True, kw_only=True):
    """What every role hands in."""

    id: str
    status: Literal["completed", "failed"]
    findings: str = ""
    error: str = ""
    discoveries: tuple[Discovery, ...] = ()
    artifact_path: str | None = None
    changed_files: tuple[str, ...] | None = None
    """What the agent says it changed; an empty list says that nothing had to be."""
    usage: Usage = Usage()
    tech_debt: tuple[TechDebt | str, ...] = ()
    wisdom: Wisdom = Wisdom()


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


class Milestone(Struct, frozen=True, kw_only=True):
    """What one sprint of a larger piece of work is for."""

    title: str
    tasks: tuple[str, ...] = ()
    """The ids of the breakdown's items that belong to it."""


class Design(Result, frozen=True, kw_only=True):
    design: str
    components: Annotated[tuple[Component, ...], Meta(min_length=1)]
    tasks: Annotated[tuple[WorkItem, ...], Meta(min_length=1)]
    milestones: tuple[Milestone, ...] = ()
    """One for each sprint, where the work takes several."""


class Dependency(Struct, frozen=True, kw_only=True):
    name: str
    version_range: str = ""
    source: str = "unknown"


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
    dimension: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(Dimension))})] = ""
    suggestion: str = ""

    def __post_init__(self) -> None:
        if self.severity.lower() not in set(Severity):
            raise ValueError(f'severity is "{self.severity}", expected one of {", ".join(Severity)}')

    @property
    def grade(self) -> Severity:
        return Severity(self.severity.lower())

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line not in {None, ""} else self.file

    @property
    def reference(self) -> str:
        """Where the problem is and of which kind, also where the reviewer did not say it."""
        return f"{self.place or 'no file given'} ({self.dimension or 'no dimension given'})"


REFERENCE = ("file", "line", "dimension")
"""What every finding is asked for. One without is taken all the same: better a problem without a place than none."""


class Review(Result, frozen=True, kw_only=True):
    scores: Scores
    issues: tuple[Finding, ...] = ()


class Decision(Result, frozen=True, kw_only=True):
    """The controller's word at the end of a round; computed, never asked for."""


AnyResult = Design | Development | Testing | Review | Decision

SCHEMAS: Mapping[Role, type[Result]] = {
    Role.architect: Design,
    Role.developer: Development,
    Role.tester: Testing,
    Role.reviewer: Review,
    Role.gc_controller: Decision,
}


@cache
def schema(role: Role) -> Mapping[str, object]:
    """The JSON Schema of a role's result, for the agent to read."""
    whole = msgspec.json.schema(SCHEMAS[role], schema_hook=lambda _kind: {"title": "any JSON value"})
    if finding := whole["$defs"].get(Finding.__name__):
        finding["required"] += REFERENCE
    return whole


def decode(body: bytes | str, *, role: Role, task: TaskId) -> Result:
    """The result as a value; a misfit says where it does not fit."""
    if not body.strip():
        raise Misfit("the result is empty")
    try:
        status = _failed_status(body)
        result = msgspec.json.decode(body, type=Result if status else SCHEMAS[role])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Misfit(str(error)) from error
    except RecursionError as error:
        raise Misfit("the result is nested too deeply") from error
    if result.id != task:
        raise Misfit(f'"id" is "{result.id}", expected "{task}"')
    if result.status == "failed" and not (result.error or result.findings):
        raise Misfit('"status" is "failed", but "error" does not say why')
    return msgspec.structs.replace(result, findings=cut(result.findings))


def cut(findings: str) -> str:
    return findings if len(findings) <= FINDINGS_LIMIT else findings[: FINDINGS_LIMIT - 1] + "…"


def _failed_status(body: bytes | str) -> bool:
    """Whether the agent says it failed: then only the common fields are asked of it."""
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("status") == "failed"
