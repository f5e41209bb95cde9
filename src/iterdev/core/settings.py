"""The configuration: every key with its default and its meaning, and the reading of a document into it."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.types import CompletionAction, ConflictStrategy, NotificationKind, Role, Severity

FILE = "iterdev.toml"

MOST_PORTS = 31
"""The ports of one workspace and the one that locks them make a block of 32."""

BUDGETS = tuple(f"{span}budget_{unit}" for span in ("", "task_", "day_") for unit in ("usd", "tokens"))
LEAST = {"concurrency": 1, "rounds": 0, "sprints": 0, "ports": 0, "lease": 5, "slots": 1, **dict.fromkeys(BUDGETS, 0)}
"""The smallest sensible values; every other number is a limit in seconds."""

MOST = {"ports": MOST_PORTS}
MOST_OTHERWISE = 1_000_000_000_000
"""No number needs to be larger, and every program that reads the session folder can read it."""


class Run(Struct, frozen=True, kw_only=True):
    agent: str = "claude"
    """The agent for every role that does not name one."""
    concurrency: int = 3
    """The maximum number of agents that run at once."""
    budget_usd: float | None = None
    """The most money that one session may spend; checked before every request to an agent."""
    budget_tokens: int | None = None
    """The most tokens that one session may use; checked before every request to an agent."""
    task_budget_usd: float | None = None
    """The most money that one task may cost, over all its attempts."""
    task_budget_tokens: int | None = None
    """The most tokens that one task may use, over all its attempts."""
    day_budget_usd: float | None = None
    """The most money that all sessions of the repository may spend from midnight to midnight."""
    day_budget_tokens: int | None = None
    """The most tokens that all sessions of the repository may use from midnight to midnight."""
    shell: bool = True
    """Whether agents may run commands; a role can override it."""
    network: bool = False
    """Whether agents' tools may use the network; a role can override it."""
    sandbox: bool = False
    """Whether agents, `setup`, tests and git in worktrees run in iterdev's own sandbox, which needs bubblewrap."""
    reviewer_differs: bool = False
    """The reviewer must be another agent than the developer."""
    conflicts: ConflictStrategy = ConflictStrategy.auto_merge
    """When two developers changed the same file, a developer is asked to merge the changes: only if git cannot
    (`auto_merge`), or always (`manual`). With `abort`, work that git cannot merge is set aside, and done again on
    top of what landed first."""


class RoleSettings(Struct, frozen=True, kw_only=True):
    agent: str | None = None
    """The agent of this role."""
    file: str | None = None
    """A text file in the repository with instructions for this role; they are part of all its prompts."""
    shell: bool | None = None
    """Whether this role may run commands."""
    network: bool | None = None
    """Whether this role's tools may use the network."""


class Project(Struct, frozen=True, kw_only=True):
    setup: str | None = None
    """A shell command that prepares a new worktree, run once in each; iterdev then creates no environment itself.
    Files that it leaves in the worktree are not part of a change."""
    test: str | None = None
    """The shell command that runs the tests; found automatically when absent."""
    copy: tuple[str, ...] = ()
    """Files of the checkout that git does not track and every worktree needs, such as `.env`."""
    link: tuple[str, ...] = ()
    """Like `copy`, but as symbolic links: what all worktrees can share with the checkout, such as `node_modules`."""
    ports: int = 10
    """Number of ports reserved for each worktree, at most 31: `ITERDEV_PORT` is the first one, `ITERDEV_PORTS` their
    number."""
    ready: str | None = None
    """A shell command that is repeated after `setup` until it succeeds; no agent starts before that."""


class TimeLimits(Struct, frozen=True, kw_only=True):
    """The limits in seconds whose defaults differ from team to team."""

    wave: float = 900
    interactive: float = 120
    finish: float = 60


class Limits(Struct, frozen=True, kw_only=True):
    wave: float | None = None
    """Seconds that one wave may take; by default 900, and 1200 when issues are resolved."""
    attempt: float = 900
    """Seconds that one attempt of an agent may take."""
    test: float = 600
    """Seconds that one run of the tests may take."""
    setup: float = 600
    """Seconds that the setup command may take."""
    ready: float = 60
    """Seconds until the ready command must have succeeded."""
    rounds: int = 3
    """Fix rounds per sprint before convergence is forced."""
    interactive: float | None = None
    """Seconds before an interactive agent is asked to finish; by default 120, and 600 for an audit of solutions."""
    finish: float | None = None
    """Seconds that it then has to finish; by default 60, and 120 for an audit of solutions."""
    gate: float | None = None
    """Seconds that an engine in the background waits at a question before it ends; without limit when absent."""


class DebtSettings(Struct, frozen=True, kw_only=True):
    severity: Severity | None = None
    """Ask before the next sprint if debt of at least this severity is overdue; never when absent."""
    sprints: int = 2
    """Debt is overdue when it is older than this number of sprints."""


class OnRejection(StrEnum):
    """What happens when the solution of an issue is rejected for the last time."""

    proceed = "proceed"
    ask = "ask"


class IssueSettings(Struct, frozen=True, kw_only=True):
    on_rejection: OnRejection = OnRejection.proceed
    """What happens when solutions are still rejected after the last revision: they are built with a warning
    (`proceed`), or you are asked (`ask`)."""


class SessionSettings(Struct, frozen=True, kw_only=True):
    completion_action: CompletionAction = CompletionAction.interactive
    """What is done with a finished session; `interactive` asks in a terminal, and otherwise leaves it as it is."""


FROM_ENVIRONMENT = "env:"
"""Begins a value that is in a variable of the environment."""
ENCRYPTED = ("https://", *(f"http://{host}{end}" for host in ("localhost", "127.0.0.1", "[::1]") for end in ":/"))
"""How an address begins whose traffic nobody else can read: encrypted, or on this machine."""


class NotifySettings(Struct, frozen=True, kw_only=True):
    on: tuple[NotificationKind, ...] = (
        *(NotificationKind.question, NotificationKind.failed, NotificationKind.ready),
        *(NotificationKind.stalled, NotificationKind.budget),
    )
    """What you are notified of: `question`, `budget` (a question because a budget is used up), `failed`, `ready`,
    `stalled`, `conflict`, `agent` (one cannot be used), `denied`, `paused` (a provider)."""
    desktop: bool = False
    """Send a desktop notification, with `notify-send` or `osascript`."""
    terminal: bool = False
    """Send a terminal notification (OSC 9) and ring the bell, while a run is shown in a terminal."""
    command: tuple[str, ...] = ()
    """Your own program, with its arguments; it gets the message as JSON on its standard input."""
    env: tuple[str, ...] = ()
    """Names of further variables of your environment that this program may see."""
    webhook: str | None = None
    """An address to which the message is posted as JSON, or `env:NAME` for the variable that has it. With
    `ITERDEV_WEBHOOK_SECRET` in the environment, messages are signed."""
    slack: str | None = None
    """`env:NAME`: the variable that has the address of a Slack incoming webhook."""

    @property
    def is_used(self) -> bool:
        return bool(self.desktop or self.terminal or self.command or self.webhook or self.slack)


class RemoteEngine(StrEnum):
    """What carries attempts to other machines."""

    temporal = "temporal"


DEFAULT_KEY = "~/.config/iterdev/remote.key"


class RemoteSettings(Struct, frozen=True, kw_only=True):
    engine: RemoteEngine | None = None
    """`temporal`: attempts run on hosts, which are other machines that offer agents. On this machine when absent."""
    git: str = "origin"
    """The git remote, by its name or address, through which this machine and the hosts exchange commits."""
    profile: str = "default"
    """The profile of Temporal's own configuration file, which has the address, namespace and credentials."""
    lease: float = 120
    """Seconds without a heartbeat after which a host has lost its attempts; at least 5."""
    key: str = DEFAULT_KEY
    """The file with the key that seals what this machine and the hosts send each other; `iterdev key new` writes it."""


class AgentSettings(Struct, frozen=True, kw_only=True):
    command: tuple[str, ...] = ()
    """Any program that follows the agent contract."""
    script: str | None = None
    """A script for the built-in scripted agent."""
    acp: tuple[str, ...] = ()
    """Any program that speaks the Agent Client Protocol, with its arguments."""
    uses: str | None = None
    """The known agent that this one is based on, with a name and settings of its own."""
    model: str | None = None
    """The model, by the agent's name for it; the agent's default when absent."""
    args: tuple[str, ...] = ()
    """Further arguments of the agent's program."""
    home: str | None = None
    """A folder for the agent's own configuration and login, instead of yours."""
    env: tuple[str, ...] = ()
    """Names of further variables of your environment that this agent may see."""
    fallback: str | None = None
    """The agent that takes over when this one cannot be used, or while its provider is paused."""


class Settings(Struct, frozen=True, kw_only=True):
    run: Run = Run()
    roles: Mapping[str, RoleSettings] = {}
    project: Project = Project()
    limits: Limits = Limits()
    debt: DebtSettings = DebtSettings()
    issue: IssueSettings = IssueSettings()
    session: SessionSettings = SessionSettings()
    notify: NotifySettings = NotifySettings()
    remote: RemoteSettings = RemoteSettings()
    agents: Mapping[str, AgentSettings] = {}

    def time_limits(self, defaults: TimeLimits) -> TimeLimits:
        """What is configured, and else the defaults of a team."""
        named = {name: getattr(self.limits, name) for name in TimeLimits.__struct_fields__}
        return replace(defaults, **{name: value for name, value in named.items() if value is not None})

    @property
    def fallbacks(self) -> dict[str, str]:
        """Which agent takes over from which."""
        return {name: table.fallback for name, table in self.agents.items() if table.fallback}

    def agent_for(self, role: Role) -> str:
        return self.roles.get(role, RoleSettings()).agent or self.run.agent

    def allows_shell(self, role: Role) -> bool:
        named = self.roles.get(role, RoleSettings()).shell
        return self.run.shell if named is None else named

    def allows_network(self, role: Role) -> bool:
        named = self.roles.get(role, RoleSettings()).network
        return self.run.network if named is None else named


def read(document: Mapping[str, object], roles: Collection[str], agents: Collection[str]) -> Settings:
    """The settings of a parsed document; every problem is named, not only the first.

    `agents` are those that need no table; a table with one of their names only adjusts it.
    """
    problems = problems_of(document, Settings, roles=roles, agents=agents)
    settings = Settings() if problems else msgspec.convert(document, Settings)
    if problems := problems or _fallback_cycles(settings):
        raise UserError(f"{FILE}: {'; '.join(problems)}", hint=f"edit {FILE} at the top of the repository")
    return settings


def problems_of(
    document: Mapping[str, object], kind: type[Struct], *, roles: Collection[str], agents: Collection[str]
) -> list[str]:
    """Everything that keeps a parsed document from being read into settings of the kind."""
    tables = tuple(_tables(document, kind))
    return [*_unknown_keys(tables, roles), *_invalid_values(tables, agents)]


def _fallback_cycles(settings: Settings) -> list[str]:
    for name in settings.fallbacks:
        chain = fallback_chain(name, settings.fallbacks)
        if settings.fallbacks.get(chain[-1]) == name:
            return [f"[agents.{name}] fallback goes round in a circle: {' -> '.join([*chain, name])}"]
    return []


def fallback_chain(agent: str, fallbacks: Mapping[str, str]) -> list[str]:
    """The agent, and those that take over from it, in their order."""
    agents = [agent]
    while (following := fallbacks.get(agents[-1])) and following not in agents:
        agents.append(following)
    return agents


_Table = tuple[str, object, type[Struct]]
"""A table's name as it stands in brackets, the table, and the settings that it is read into."""


def _tables(document: Mapping[str, object], whole: type[Struct]) -> Iterator[_Table]:
    """The document itself, which has no name, and every table in it."""
    yield "", document, whole
    for name, kind in get_type_hints(whole).items():
        tables, named = document.get(name, {}), _named_tables(kind)
        if named and isinstance(tables, Mapping):
            yield from ((f"{name}.{key}", table, named) for key, table in tables.items())
        elif name in document and (table := named or _table(kind)):
            yield name, tables, table


def _table(kind: object) -> type[Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, Struct) else None


def _named_tables(kind: object) -> type[Struct] | None:
    """What each of the tables is read into, where there are any number of them, each with a name."""
    return _table(get_args(kind)[1]) if get_origin(kind) is Mapping else None


def _invalid_values(tables: Iterable[_Table], agents: Collection[str]) -> Iterator[str]:
    """Field by field, since decoding a whole table stops at its first problem."""
    for where, table, kind in tables:
        if not isinstance(table, Mapping):
            yield f'[{where}] is "{table}", expected a table'
            continue
        place = f"[{where}] " if where else ""
        for key, hint in get_type_hints(kind).items():
            if key in table and not (_table(hint) or _named_tables(hint)):
                yield from (f"{place}{key}{problem}" for problem in _invalid(key, table[key], hint))
        if kind is NotifySettings:
            yield from (f"{place}{problem}" for problem in _invalid_addresses(table))
        if issubclass(kind, AgentSettings):
            yield from (f"{place}{problem}" for problem in _invalid_agent(where.partition(".")[2], table, agents))


def _invalid_addresses(table: Mapping[str, object]) -> Iterator[str]:
    """An address that holds a secret does not belong into a file that is committed; it is not repeated here."""
    slack, webhook = table.get("slack"), table.get("webhook")
    if isinstance(slack, str) and not slack.startswith(FROM_ENVIRONMENT):
        yield "slack has to name a variable of the environment, such as `env:SLACK_WEBHOOK`"
    if isinstance(webhook, str) and not webhook.startswith((FROM_ENVIRONMENT, *ENCRYPTED)):
        yield "webhook has to be an address with https://, or `env:NAME`"
    elif isinstance(webhook, str) and "@" in webhook.partition("://")[2].partition("/")[0]:
        yield "webhook has a password; put the address into a variable and write `env:NAME`"


def _invalid_agent(name: str, table: Mapping[str, object], agents: Collection[str]) -> Iterator[str]:
    ways = [way for way in ("command", "script", "acp", "uses") if table.get(way)]
    if len(ways) > 1 or (not ways and name not in agents):
        yield "needs exactly one of `command`, `script`, `acp` and `uses`"
    known = table.get("uses")
    if isinstance(known, str) and known and known not in agents:
        yield f'uses "{known}", which is no known agent{_nearest(known, agents)}'
    if ways in (["command"], ["script"]):
        useless = [key for key in ("model", "args", "home") if table.get(key)]
        yield from (f"`{key}` has no meaning beside `{ways[0]}`" for key in useless)


def _invalid(key: str, value: object, hint: object) -> Iterator[str]:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        yield f"{place.rstrip('`')}: {text}"
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if isinstance(value, float) and not math.isfinite(value):
        # The journal's numbers are those of JSON, which has no endless ones.
        yield f" is {value}, and must be finite"
    elif key in LEAST and value < LEAST[key]:
        yield f" is {value}, and at least {LEAST[key]} is needed"
    elif key not in LEAST and value <= 0:
        yield f" is {value}, and must be more than 0"
    elif value > (most := MOST.get(key, MOST_OTHERWISE)):
        yield f" is {value}, and at most {most} is possible"


def _unknown_keys(tables: Iterable[_Table], roles: Collection[str]) -> Iterator[str]:
    for where, table, kind in tables:
        section, _, name = where.partition(".")
        if section == "roles" and name and name not in roles:
            yield f'unknown role "{name}"{_nearest(name, roles)}'
        for key in table if isinstance(table, Mapping) else ():
            if key not in kind.__struct_fields__:
                place = f"[{where}] " if where else ""
                yield f'{place}unknown key "{key}"{_nearest(str(key), kind.__struct_fields__)}'


def _nearest(word: str, known: Collection[str]) -> str:
    return did_you_mean(word, known) or f" (known: {', '.join(known)})"
