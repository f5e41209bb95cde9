"""From what an agent said to the outcome of its attempt."""

import math

from iterdev.agents.contract import AgentFailure
from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.results import Design, Development, Result, Review
from iterdev.core.session.events import Done, Failed, Interrupted, Limited, Outcome


def unsuccessful(trouble: AgentFailure) -> Outcome:
    match reaction(trouble.kind):
        case Reaction.wait:
            # The journal's numbers are those of JSON, which has no endless ones.
            told = trouble.reset_at is not None and math.isfinite(trouble.reset_at)
            return Limited(error=trouble.message, reset_at=trouble.reset_at if told else None)
        case Reaction.stop:
            return Interrupted()
        case _:
            return Failed(error=trouble.message, kind=trouble.kind)


def done(result: Result) -> Done:
    return Done(
        findings=result.findings,
        wisdom=result.wisdom,
        discoveries=result.discoveries,
        tech_debt=result.tech_debt,
        design=result if isinstance(result, Design) else None,
        review=result if isinstance(result, Review) else None,
        dependencies=result.external_dependencies if isinstance(result, Development) else (),
        resolved_debt=result.resolved_debt if isinstance(result, Development) else (),
    )
