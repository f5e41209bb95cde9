"""What can go wrong with an agent, and what is done about it: one table of kinds and reactions."""

from enum import StrEnum


class TroubleKind(StrEnum):
    """What went wrong, as far as it makes a difference to what is done about it."""

    not_installed = "not installed"
    not_logged_in = "not logged in"
    limited = "rate limited"
    overloaded = "overloaded"
    """The provider failed or was too busy; trying again later may help."""
    too_long = "context too long"
    over_budget = "budget used up"
    """The budget that the user has with the provider."""
    stopped = "stopped by a budget"
    """A budget of iterdev's own, which allows no further request."""
    permission = "permission denied"
    silent = "no result"
    crashed = "crashed"
    timed_out = "timed out"


class Reaction(StrEnum):
    """What is done about a trouble."""

    wait = "the provider is paused for everybody, and the task is tried again"
    insist = "the same is asked again after a while, then another agent is tried"
    correct = "the agent is asked again, and told what was wrong"
    change_agent = "another agent is tried, for every task"
    change_here = "another agent is tried, for this task"
    stop = "the user is asked whether to spend more"
    fail = "the attempt has failed"


def reaction(kind: TroubleKind) -> Reaction:
    match kind:
        case TroubleKind.limited:
            return Reaction.wait
        case TroubleKind.overloaded:
            return Reaction.insist
        case TroubleKind.silent:
            return Reaction.correct
        case TroubleKind.not_installed | TroubleKind.not_logged_in | TroubleKind.over_budget:
            return Reaction.change_agent
        case TroubleKind.too_long:
            return Reaction.change_here
        case TroubleKind.stopped:
            return Reaction.stop
        case TroubleKind.crashed | TroubleKind.timed_out | TroubleKind.permission:
            return Reaction.fail
