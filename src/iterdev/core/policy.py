"""The limits and thresholds that the rules of a session follow."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.types import ConflictStrategy, Role, Severity


class DebtRule(Struct, frozen=True, kw_only=True):
    """Debt of at least this severity may not be older than so many sprints."""

    severity: Severity
    sprints: int


class Policy(Struct, frozen=True, kw_only=True):
    """Journalled, so that every decision can be repeated. What only one team knows is in that team's own part."""

    auto: bool = False
    concurrency: int = 3
    wave_limit: float = 900
    attempt_limit: float = 900
    budget_usd: float | None = None
    budget_tokens: int | None = None
    task_budget_usd: float | None = None
    task_budget_tokens: int | None = None
    day_budget_usd: float | None = None
    day_budget_tokens: int | None = None
    agents: Mapping[Role, str] = {}
    """Agents of the configuration, by role."""
    fallbacks: Mapping[str, str] = {}
    """Which agent takes over from which."""
    providers: Mapping[str, str] = {}
    """The provider of an agent, where it does not follow from its name."""
    conflicts: ConflictStrategy = ConflictStrategy.auto_merge
    conflict_fixes: int = 2
    """How often the fix of a conflict may itself be in conflict with what landed meanwhile."""
    landing_returns: int = 1
    """How often work goes back to be tried again because the tests fail together with what landed since it began."""
    host_deaths: int = 3
    """Attempts at a task, one after another, during which their host may die until the task has failed."""
    debt: DebtRule | None = None
    lock_seconds: float = 300
    """How long a lock lasts that is not renewed, and how long a task that was refused counts as waiting.

    It is one number on purpose: a task that lets more time pass between two requests cannot keep its own locks
    meanwhile, so tasks that wait for each other are always found.
    """
    contention_seconds: float = 60
    """How long a refusal of the same lock is not announced again."""
    feedback_kept: int = 50
    checkpoints_kept: int = 5
    """Checkpoints of one task."""
    first_pause: float = 60
    longest_guess: float = 900
    """Seconds that a provider is paused when it names no time: doubled from the first to the longest."""
    longest_pause: float = 31 * 86400
    """No provider is paused for longer; its clock may be wrong."""
