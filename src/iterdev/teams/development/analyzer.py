"""What a model says of a requirement before the work begins; without it, the text alone decides."""

import json
from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import Struct

from iterdev.core.prompts import RESULT
from iterdev.teams.development.fields import WORKERS, Pipeline, Role
from iterdev.teams.development.requirement_analysis import Analysis, Capability

TASK = "task-analysis"


class Assessment(Struct, frozen=True, kw_only=True):
    """What the analyzer hands in."""

    pipeline_mode: Pipeline
    complexity_score: int = 0
    capabilities: tuple[str, ...] = ()
    """The roles whose work the requirement asks for."""


@cache
def schema() -> Mapping[str, object]:
    return msgspec.json.schema(Assessment)


def prompt(requirement: str, tech: str = "") -> str:
    """The question; `tech` is the file that describes the project, if there is one."""
    known = f"Begin with {tech}, which describes the project. " if tech else ""
    return (
        "# task-analysis\n\nYou analyse a requirement before a team works on it. "
        f"{known}Read the repository in the current directory as far as you need to, and change nothing.\n\n"
        f"## Requirement\n{requirement}\n\n"
        "## What to find out\n"
        "- patch: a small change that needs no design; sprint: one piece of work with a design and a review; "
        "multi-sprint: work that is better done in several steps, each reviewed on its own.\n"
        f"- which of these roles it asks for: {', '.join(WORKERS)}\n\n"
        f"## Result\nWrite one JSON object to {RESULT} (the variable ITERDEV_RESULT holds its path), or print it as "
        f"the last thing. It must fit this JSON Schema:\n```json\n{json.dumps(schema(), ensure_ascii=False)}\n```\n"
    )


def decode(body: bytes) -> Assessment | str:
    """The assessment, or what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=Assessment)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


def applied(analysis: Analysis, found: Assessment) -> Analysis:
    """The analysis of the text, as far as the model did not judge otherwise."""
    known = {capability.role: capability for capability in analysis.capabilities}
    roles = [Role(name) for name in found.capabilities if name in WORKERS]
    return msgspec.structs.replace(
        analysis,
        pipeline=found.pipeline_mode,
        score=found.complexity_score,
        capabilities=tuple(known.get(role, Capability(role, ())) for role in roles) or analysis.capabilities,
    )
