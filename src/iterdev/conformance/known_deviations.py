"""Where an agent is known to miss a scenario: what it does instead, why, and what iterdev makes of it.

A deviation is exact: what is expected instead stands beside the reason. Anything else is a failure.
"""

from msgspec import Struct

from iterdev.agents.contract import TroubleKind
from iterdev.conformance.expectations import Answered, DenialTold, Expectation, Failed, Unanswered, Untouched, Wrote
from iterdev.conformance.scenarios import PATIENCE

AT_A_LOSS = 20.0
"""Seconds after which it is plain that an agent waits or tries again, and tells nobody."""

WAITS_TOO = (
    "The attempt waits with it, at most for `[limits] attempt`. Other attempts are not held back, because nobody told "
    "of the limit."
)
READS_LATE = (
    "The attempt goes on until the agent gives up, or until `[limits] attempt` is over. What it says in the end is "
    "read as usual."
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
        behaviour="It offers to load a conversation, and then does not find it.",
        reaction="A new conversation is begun. Nothing is lost: a prompt of iterdev says all that the task needs.",
    ),
    Deviation(
        agents=("opencode", "copilot"),
        scenario="denied permission",
        expects=(Failed(TroubleKind.silent), Untouched("hello.txt"), DenialTold()),
        behaviour="A denial ends its turn.",
        reaction="A turn without a result is followed by another one in the same conversation, at most twice.",
    ),
    Deviation(
        agents=("kimi",),
        scenario="denied permission",
        expects=(Answered(("went on",)), Wrote("hello.txt", "hello\n")),
        behaviour="It asks nobody before it writes in its workspace.",
        reaction="What a role that only reads has changed is set aside and reported. It does not land.",
    ),
    Deviation(
        agents=("opencode", "copilot", "goose", "kimi"),
        scenario="429 with reset",
        expects=(Unanswered(),),
        behaviour="It waits for as long as the provider asks, and tells nobody.",
        reaction=WAITS_TOO,
        patience=AT_A_LOSS,
    ),
    Deviation(
        agents=("qwen",),
        scenario="429 with reset",
        expects=(Unanswered(),),
        behaviour="It tries seven times in 80 s, whatever the provider says; no setting changes that.",
        reaction=WAITS_TOO,
        patience=AT_A_LOSS,
    ),
    Deviation(
        agents=("qwen", "opencode", "kimi"),
        scenario="500",
        expects=(Unanswered(),),
        behaviour="It tries for more than a minute before it says so.",
        reaction=READS_LATE,
        patience=AT_A_LOSS,
    ),
    Deviation(
        agents=("opencode", "kimi"),
        scenario="dropped stream",
        expects=(Unanswered(),),
        behaviour="It tries for more than a minute before it says so.",
        reaction=READS_LATE,
        patience=AT_A_LOSS,
    ),
)


def deviation(agent: str, scenario: str) -> Deviation | None:
    return next((known for known in DEVIATIONS if agent in known.agents and scenario == known.scenario), None)
