"""How an agent can fail, and what is done about it: one table of kinds and reactions."""

from enum import StrEnum


class FailureKind(StrEnum):
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
    pause_provider = "the provider is paused for all tasks, and the task is tried again"
    retry_later = "the same is asked again after a while, then another agent is tried"
    ask_again = "the same agent is asked again, with what was wrong"
    replace_agent = "another agent is tried, for every task"
    replace_for_task = "another agent is tried, for this task"
    stop = "the user is asked whether to spend more"
    fail = "the attempt has failed"


REPLACING = frozenset({Reaction.replace_agent, Reaction.replace_for_task, Reaction.retry_later})
"""Another agent may succeed where one failed."""


def reaction(kind: FailureKind) -> Reaction:
    match kind:
        case FailureKind.limited:
            return Reaction.pause_provider
        case FailureKind.overloaded:
            return Reaction.retry_later
        case FailureKind.silent:
            return Reaction.ask_again
        case FailureKind.not_installed | FailureKind.not_logged_in | FailureKind.over_budget:
            return Reaction.replace_agent
        case FailureKind.too_long:
            return Reaction.replace_for_task
        case FailureKind.stopped:
            return Reaction.stop
        case FailureKind.crashed | FailureKind.timed_out | FailureKind.permission:
            return Reaction.fail
