"""From what an agent said to the outcome of its attempt."""

from iterdev.agents.contract import Trouble, TroubleKind
from iterdev.core.events import Done, Failed, Limited, Outcome
from iterdev.core.results import Design, Development, Result, Review
from iterdev.engine.talks import Talk


def unsuccessful(trouble: Trouble) -> Outcome:
    if trouble.kind is TroubleKind.limited and trouble.reset_at is not None:
        return Limited(error=trouble.message, reset_at=trouble.reset_at)
    return Failed(error=trouble.message)


def done(result: Result, talk: Talk) -> Done:
    return Done(
        findings=result.findings,
        usage=talk.usage,
        wisdom=result.wisdom,
        discoveries=result.discoveries,
        tech_debt=result.tech_debt,
        design=result if isinstance(result, Design) else None,
        review=result if isinstance(result, Review) else None,
        dependencies=result.external_dependencies if isinstance(result, Development) else (),
    )
