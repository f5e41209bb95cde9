"""The form of a task description: PURPOSE, TASK, CONTEXT, EXPECTED, CONSTRAINTS and the inner-loop line."""

import re

from msgspec import Struct

SCOPE_LENGTH = 200
"""Characters of a request in a description; the prompt has all of it."""
SECTIONS = ("PURPOSE:", "TASK:", "CONTEXT:", "EXPECTED:", "CONSTRAINTS:", "InnerLoop:")


class Scope(Struct, frozen=True, kw_only=True):
    requirement: str
    folder: str


class Brief(Struct, frozen=True, kw_only=True):
    purpose: str
    success: str
    steps: tuple[str, ...]
    upstream: tuple[str, ...] = ()
    expected: str
    constraints: str


def describe(brief: Brief, scope: Scope, *, inner_loop: bool) -> str:
    upstream = [f"  - Upstream artifacts: {', '.join(brief.upstream)}"] if brief.upstream else []
    return "\n".join(
        [
            f"PURPOSE: {brief.purpose} | Success: {brief.success}",
            "TASK:",
            *(f"  - {step}" for step in brief.steps),
            "CONTEXT:",
            f"  - Session: {scope.folder}",
            f"  - Scope: {_one_line(scope.requirement)}",
            *upstream,
            f"  - Shared memory: {scope.folder}/.msg/meta.json",
            f"EXPECTED: {brief.expected}",
            f"CONSTRAINTS: {brief.constraints}",
            "---",
            f"InnerLoop: {'true' if inner_loop else 'false'}",
        ]
    )


def _one_line(text: str) -> str:
    first, *more = text.strip().splitlines() or [""]
    cut = f"{first[: SCOPE_LENGTH - 1]}…" if len(first) > SCOPE_LENGTH else first
    return f"{cut} …" if more and cut == first else cut


def missing_sections(description: str) -> tuple[str, ...]:
    return tuple(section for section in SECTIONS if not re.search(rf"(?m)^{section}", description))


def completed(description: str, *, title: str, scope: Scope, inner_loop: bool) -> str:
    """A free description put into the form; one that has the form stays as it is."""
    if not missing_sections(description):
        return description
    steps = [re.sub(r"^\s*[-*]\s+", "", line).strip() for line in description.splitlines() if line.strip()]
    brief = Brief(
        purpose=title,
        success="the task below is done and nothing else is changed",
        steps=tuple(steps),
        expected="what the task asks for",
        constraints="Preserve existing behavior | Follow code conventions",
    )
    return describe(brief, scope, inner_loop=inner_loop)
