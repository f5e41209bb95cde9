"""Money and tokens: what a session may spend, looked at before every start of an agent."""

from iterdev.core.state import State


def used_up(state: State) -> str:
    """Which budget is used up, in words; nothing if there is still some left."""
    policy, spent = state.policy, state.spent
    if policy.budget_usd is not None and spent.cost_usd >= policy.budget_usd:
        return f"the budget of ${policy.budget_usd:g} is used up (${spent.cost_usd:.2f} spent)"
    if policy.budget_tokens is not None and spent.tokens >= policy.budget_tokens:
        return f"the budget of {policy.budget_tokens} tokens is used up ({spent.tokens} used)"
    return ""
