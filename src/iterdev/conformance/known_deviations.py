"""Known deviations: scenarios that an agent does not pass, what it does instead, and how iterdev handles that.

A deviation has its own exact expectations. Any other behaviour is a failure.
"""

from msgspec import Struct

from iterdev.conformance.expectations import Answered, DenialReported, Expectation, Failed, NoReply, NotWritten, Wrote
from iterdev.conformance.scenarios import TURN_TIMEOUT
from iterdev.core.limits.agent_failures import FailureKind

SHORT_TIMEOUT = 20.0
"""Seconds after which an agent is known to wait or to retry without a report."""

WAITS_TOO = (
    "The attempt waits as well, at most for `[limits] attempt`. Other attempts are not paused, because the limit is "
    "not reported."
)
READS_LATE = (
    "The attempt continues until the agent gives up, or until `[limits] attempt` is over. The failure is then handled "
    "as usual."
)


class Deviation(Struct, frozen=True, kw_only=True):
    agents: tuple[str, ...]
    scenario: str
    expects: tuple[Expectation, ...]
    behaviour: str
    """What the agent does; no setting changes it."""
    reaction: str
    """How iterdev handles it."""

    @property
    def timeout(self) -> float:
        return SHORT_TIMEOUT if NoReply() in self.expects else TURN_TIMEOUT


DEVIATIONS = (
    Deviation(
        agents=("gemini",),
        scenario="resumed conversation",
        expects=(Answered(("first", "first")),),
        behaviour="It offers to load a conversation, and then does not find it.",
        reaction="A new conversation is started. Nothing is lost: a prompt of iterdev has all that the task needs.",
    ),
    Deviation(
        agents=("opencode", "copilot"),
        scenario="denied permission",
        expects=(Failed(FailureKind.silent), NotWritten("hello.txt"), DenialReported()),
        behaviour="A denial ends its turn.",
        reaction="A turn without a result is followed by another one in the same conversation, at most twice.",
    ),
    Deviation(
        agents=("kimi",),
        scenario="denied permission",
        expects=(Answered(("went on",)), Wrote("hello.txt", "hello\n")),
        behaviour="It writes in its workspace without asking.",
        reaction="Changes of a read-only role are kept aside and reported. They do not land.",
    ),
    Deviation(
        agents=("opencode", "copilot", "goose", "kimi"),
        scenario="429 with reset",
        expects=(NoReply(),),
        behaviour="It waits for as long as the provider asks, without a report.",
        reaction=WAITS_TOO,
    ),
    Deviation(
        agents=("qwen",),
        scenario="429 with reset",
        expects=(NoReply(),),
        behaviour="It retries seven times in 80 s, whatever the provider asks.",
        reaction=WAITS_TOO,
    ),
    Deviation(
        agents=("qwen", "opencode", "kimi"),
        scenario="500",
        expects=(NoReply(),),
        behaviour="It retries for more than a minute before it reports the failure.",
        reaction=READS_LATE,
    ),
    Deviation(
        agents=("opencode", "kimi"),
        scenario="dropped stream",
        expects=(NoReply(),),
        behaviour="It retries for more than a minute before it reports the failure.",
        reaction=READS_LATE,
    ),
)


def deviation(agent: str, scenario: str) -> Deviation | None:
    return next((known for known in DEVIATIONS if agent in known.agents and scenario == known.scenario), None)
