"""What was asked for, checked before anything is created."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.collaboration.tech_debt import DebtRule
from iterdev.core.errors import UserError
from iterdev.core.limits import providers
from iterdev.core.session.events import Event, Policy, RowEdit, Session, SessionStarted, TableEdited, TasksAdded
from iterdev.core.settings import BUDGETS, AgentSettings, Settings
from iterdev.core.types import WORKERS, Engine, Pipeline, Role, SessionId, Team
from iterdev.teams.development.analyzer import Assessment, applied
from iterdev.teams.development.requirement_analysis import Analysis, analyse

EMPTY_HINT = 'iterdev run "Add a greeting"'


class Request(Struct, frozen=True, kw_only=True):
    requirement: str
    auto: bool = False
    concurrency: int | None = None
    pipeline: Pipeline | None = None
    files: int | None = None
    engine: Engine = Engine.wave
    agent: str | None = None
    role_agents: Mapping[Role, str] = {}
    team_name: str = "iterdev"
    assessment: Assessment | None = None
    """What a model made of the requirement, if one was asked."""


def checked(request: Request) -> Request:
    if not request.requirement.strip():
        raise UserError("The requirement is empty", hint=EMPTY_HINT)
    if request.concurrency is not None and request.concurrency < 1:
        raise UserError(f'The concurrency "{request.concurrency}" is not a positive number', hint="-c 3")
    if request.files is not None and request.files < 0:
        raise UserError(f'The number of files "{request.files}" is negative', hint="--files 4")
    return request


def policy(request: Request, settings: Settings) -> Policy:
    return rules(settings, auto=request.auto, concurrency=request.concurrency or settings.run.concurrency)


def rules(settings: Settings, *, auto: bool, concurrency: int) -> Policy:
    """The rules of the configuration, with what the user said on the command line."""
    return Policy(
        auto=auto,
        concurrency=concurrency,
        rounds=settings.limits.rounds,
        wave_limit=settings.limits.wave,
        attempt_limit=settings.limits.attempt,
        debt=_debt_rule(settings),
        agents={role: settings.agent_for(role) for role in WORKERS},
        fallbacks=settings.fallbacks,
        providers={name: provider for name, table in settings.agents.items() if (provider := _provider(table))},
        **{name: getattr(settings.run, name) for name in BUDGETS},
        conflicts=settings.run.conflicts,
    )


def _debt_rule(settings: Settings) -> DebtRule | None:
    severity = settings.debt.severity
    return DebtRule(severity=severity, sprints=settings.debt.sprints) if severity else None


def _provider(table: AgentSettings) -> str:
    """Who answers an agent that the user made; the provider of any other is known by the agent's name."""
    if table.uses:
        return providers.NAMED.get(table.uses, table.uses)
    command = table.command or table.acp or ((table.script,) if table.script else ())
    return providers.key_of(command) if command else ""


def new_session(
    request: Request, settings: Settings, *, session: SessionId, base: str, branch: str, rows: tuple[RowEdit, ...] = ()
) -> list[Event]:
    """The first events of a session; the rows of a table made by hand come with it."""
    agents = dict(request.role_agents)
    if request.agent:
        agents = dict.fromkeys(Role, request.agent) | agents
    _check_reviewer(agents, settings)
    started = Session(
        id=session,
        team=Team.iterdev,
        engine=request.engine,
        requirement=request.requirement.strip(),
        folder=ids.folder(request.engine, session),
        base=base,
        branch=branch,
        analysis=_analysis(request),
        pipeline=rows[0].task.pipeline if rows else request.pipeline,
        agents=agents,
        team_name=request.team_name,
        by_hand=bool(rows),
    )
    events: list[Event] = [SessionStarted(started, policy(request, settings))]
    if rows:
        events += [TasksAdded(tuple(row.task for row in rows)), TableEdited(rows)]
    return events


def _analysis(request: Request) -> Analysis:
    text = analyse(request.requirement, request.files)
    return applied(text, request.assessment) if request.assessment else text


def _check_reviewer(agents: Mapping[Role, str], settings: Settings) -> None:
    developer, reviewer = (agents.get(role) or settings.agent_for(role) for role in (Role.developer, Role.reviewer))
    if settings.run.reviewer_differs and developer == reviewer:
        raise UserError(
            f'"{reviewer}" would review its own work, and [run] reviewer_differs does not allow that',
            hint="--role-agent reviewer=NAME, or [roles.reviewer] agent in iterdev.toml",
        )
