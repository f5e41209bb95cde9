"""The demo of the development team: what is asked of it, and whether the planted defect was found and fixed."""

from iterdev.core.session.state import State
from iterdev.teams.development.roles import Pipeline, Signal
from iterdev.teams.development.state import development

REQUIREMENT = "Add percentage discounts to the till"
PIPELINE = Pipeline.sprint
DEFECT = "The developer's first try has a planted defect."


def found_and_fixed(state: State) -> bool:
    """The first verdicts asked for a fix, the last ones did not, and convergence was not forced."""
    part = development(state)
    signals = [verdict.signal for verdict in part.verdicts.values()]
    failed = [run.failed for run in part.test_runs.values()]
    found = Signal.revision_needed in signals[:1] and True in failed[:1]
    return found and signals[-1] is Signal.converged and not failed[-1] and not part.forced
