"""One target for each parser of what iterdev did not write."""

from tests.fuzz.target import Target
from tests.fuzz.targets import agents, projects, reports, sessions

TARGETS: dict[str, Target] = {
    target.name: target for group in (agents, projects, reports, sessions) for target in group.TARGETS
}
