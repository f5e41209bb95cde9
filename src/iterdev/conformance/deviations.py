"""Where an agent is known to miss a scenario: what it does instead, why, and what iterdev makes of it.

A deviation is exact: what is expected instead stands beside the reason. Anything else is a failure.
"""

from msgspec import Struct

from iterdev.conformance.expectations import Answered, Expectation, Heard, Unanswered
from iterdev.conformance.scenarios import PATIENCE, PLUM

AT_A_LOSS = 20.0
"""Seconds after which it is plain that an agent tries again and again, and tells nobody."""

WHOLE_PROMPTS = "A new conversation is begun. Nothing is lost: a prompt of iterdev says all that the task needs."
PATIENT = (
    "The attempt goes on until the agent gives up, or until `[limits] attempt` is over. What the agent says in the end "
    "is read as usual."
)


class Deviation(Struct, frozen=True, kw_only=True):
    agents: tuple[str, ...]
    scenario: str
    expects: tuple[Expectation, ...]
    behaviour: str
    """What the agent does by itself, and nothing can change."""
    reaction: str
    """What iterdev does about it."""
    patience: float = PATIENCE


DEVIATIONS = (
    Deviation(
        agents=("gemini",),
        scenario="resumed conversation",
        expects=(Answered(("first", "first")),),
        behaviour="It offers to load sessions, and then does not find them.",
        reaction=WHOLE_PROMPTS,
    ),
    Deviation(
        agents=("qwen",),
        scenario="resumed conversation",
        expects=(Answered(("first", "first")), Heard(PLUM)),
        behaviour="It takes up what was said to it, without its own answers.",
        reaction="None is needed: a prompt of iterdev says all that the task needs.",
    ),
    Deviation(
        agents=("qwen",),
        scenario="429 with reset",
        expects=(Unanswered(),),
        behaviour="It tries again seven times in about 80 s, whatever the provider says; no setting changes that.",
        reaction=PATIENT,
        patience=AT_A_LOSS,
    ),
    Deviation(
        agents=("qwen",),
        scenario="500",
        expects=(Unanswered(),),
        behaviour="It tries again seven times in about 80 s; no setting changes that.",
        reaction=PATIENT,
        patience=AT_A_LOSS,
    ),
)


def deviation(agent: str, scenario: str) -> Deviation | None:
    return next((known for known in DEVIATIONS if agent in known.agents and scenario == known.scenario), None)
