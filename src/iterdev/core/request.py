"""What was asked for, checked before anything is created, and the first events of the session that it becomes."""

import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.limits import providers
from iterdev.core.policy import DebtRule, Policy
from iterdev.core.session.events import Event, IssueText, RowEdit, Session, SessionStarted, TableEdited, TasksAdded
from iterdev.core.settings import BUDGETS, AgentSettings, Settings, TimeLimits
from iterdev.core.types import Engine, Role, SessionId

EMPTY_HINT = 'iterdev run "Add a greeting"'


class Request(Struct, frozen=True, kw_only=True):
    requirement: str
    auto: bool = False
    concurrency: int | None = None
    pipeline: str | None = None
    """One of the team's, if the user named it."""
    files: int | None = None
    """About how many files the change will touch."""
    engine: Engine = Engine.wave
    agent: str | None = None
    role_agents: Mapping[Role, str] = {}
    team_name: str = "iterdev"
    issue: IssueText | None = None
    prepared: object = None
    """What was made for the team before: the answer of its analyzer, or what the session is about."""


def checked(request: Request) -> Request:
    if not request.requirement.strip():
        raise UserError("The requirement is empty", hint=EMPTY_HINT)
    if request.concurrency is not None and request.concurrency < 1:
        raise UserError(f'The concurrency "{request.concurrency}" is not a positive number', hint="-c 3")
    if request.files is not None and request.files < 0:
        raise UserError(f'The number of files "{request.files}" is negative', hint="--files 4")
    return request


def policy(
    settings: Settings, workers: Collection[Role], defaults: TimeLimits, *, auto: bool, concurrency: int | None
) -> Policy:
    """The limits of the configuration, with the defaults of a team and what the user said on the command line."""
    named = {name: provider for name, table in settings.agents.items() if (provider := _provider(table))}
    severity = settings.debt.severity
    return Policy(
        auto=auto,
        concurrency=concurrency or settings.run.concurrency,
        wave_limit=settings.time_limits(defaults).wave,
        attempt_limit=settings.limits.attempt,
        debt=DebtRule(severity=severity, sprints=settings.debt.sprints) if severity else None,
        agents={role: settings.agent_for(role) for role in workers},
        fallbacks=settings.fallbacks,
        providers=named,
        **{name: getattr(settings.run, name) for name in BUDGETS},
        conflicts=settings.run.conflicts,
    )


def _provider(table: AgentSettings) -> str:
    """The provider of an agent that the user defined; that of any other is known by the agent's name."""
    if table.uses:
        return providers.KNOWN_PROVIDERS.get(table.uses, table.uses)
    command = list(table.command or table.acp or filter(None, [table.script]))
    # The same in every repository, and without anything secret of the command.
    return f"command-{sha256(json.dumps(command).encode()).hexdigest()[:12]}" if command else ""


def named_agents(request: Request, roles: Collection[Role]) -> dict[Role, str]:
    """The agents that the user named on the command line, by role."""
    return (dict.fromkeys(roles, request.agent) if request.agent else {}) | dict(request.role_agents)


def new_session(
    session: Session, policy: Policy, team_events: Sequence[Event], rows: tuple[RowEdit, ...] = ()
) -> list[Event]:
    """The first events of a session; the rows of a table made by hand come with it."""
    table: list[Event] = [TasksAdded(tuple(row.task for row in rows)), TableEdited(rows)] if rows else []
    return [SessionStarted(session, policy), *team_events, *table]


def session_facts(
    request: Request, *, team: str, name: SessionId, base: str, branch: str, agents: Mapping[Role, str], by_hand: bool
) -> Session:
    return Session(
        id=name,
        team=team,
        engine=request.engine,
        requirement=request.requirement.strip(),
        folder=ids.folder(request.engine, name),
        base=base,
        branch=branch,
        agents=agents,
        team_name=request.team_name,
        by_hand=by_hand,
        issue=request.issue,
    )
