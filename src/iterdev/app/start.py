"""Creates a session from a request."""

import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from iterdev.agents.registry import KNOWN_AGENTS, make_present
from iterdev.app import wisdom
from iterdev.app.remote.executor import check_server
from iterdev.core import ids, settings
from iterdev.core.errors import HostError, UserError
from iterdev.core.formatting import plain
from iterdev.core.request import Request, checked, named_agents, new_session, policy, session_facts
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import Entry, Event, IssueText
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.core.types import Engine, Role, SessionId
from iterdev.engine.repository import Repository
from iterdev.engine.run import check_agents, configured_sandbox
from iterdev.host import clock, github, text_files
from iterdev.host.git import checkout, refs, session_branch
from iterdev.host.git.checkout import checkouts
from iterdev.host.git.refs import repository_lock
from iterdev.host.processes.ancestry import nearest_monitor
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_log import create
from iterdev.teams.contract import Team
from iterdev.teams.table import DEFAULT_TEAM

PIPELINES = DEFAULT_TEAM.pipelines
MOST_REQUEST, LONGEST_CHARACTER = 100_000, 4
"""Characters of a request, and bytes of one of them."""
MOST_ISSUE = 20_000
"""Characters of an issue that agents are shown."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a new session can be asked for, and what is used if nothing is said."""

    pipelines: tuple[str, ...]
    suggested: str
    """The pipeline that the text speaks for."""
    why: str
    roles: Mapping[Role, str]
    """Each role with the agent that the configuration names for it."""
    agents: tuple[str, ...]
    concurrency: int
    budget_usd: float | None
    uncommitted: tuple[str, ...]
    """Changes of the checkout that agents do not see."""


def new_session_choices(repository: Repository, requirement: str) -> NewSession:
    """What can be chosen for a session with this requirement. Nothing is changed."""
    team, configured = repository.default_team, repository.settings
    suggested, why = team.suggested_pipeline(requirement) if requirement.strip() else ("", "")
    return NewSession(
        pipelines=team.pipelines,
        suggested=suggested,
        why=why,
        roles={role: configured.agent_for(role) for role in team.workers},
        agents=tuple(dict.fromkeys((*configured.agents, *KNOWN_AGENTS))),
        concurrency=configured.run.concurrency,
        budget_usd=configured.run.budget_usd,
        uncommitted=tuple(uncommitted(repository)),
    )


def role_agents(repository: Repository, pairs: Iterable[str], team: Team | None = None) -> dict[Role, str]:
    """The agents of single roles, each given as ROLE=NAME."""
    workers = (team or repository.default_team).workers
    chosen: dict[Role, str] = {}
    for pair in pairs:
        role, _, name = pair.partition("=")
        if role not in workers:
            raise UserError(f'There is no role "{role}"', hint=f"roles: {', '.join(workers)}")
        if not name:
            raise UserError(f'"{pair}" names no agent', hint=f"--role-agent {role}=NAME")
        chosen[role] = name
    return chosen


def read_request(path: Path) -> str:
    """The text of a request that is in a file."""
    return _bounded(_read(path, hint="check the path after --file; `-` is standard input"), f'"{path}"')


def read_request_from(stream: BinaryIO) -> str:
    body = stream.read(MOST_REQUEST * LONGEST_CHARACTER + 1)
    if len(body) > MOST_REQUEST * LONGEST_CHARACTER:
        raise _too_long("Standard input")
    try:
        return _bounded(body.decode("utf-8"), "Standard input")
    except UnicodeDecodeError as error:
        raise UserError(f"Standard input is not UTF-8 text: {error}", hint="iterdev run --file PATH") from error


def _bounded(text: str, name: str) -> str:
    if len(text) > MOST_REQUEST:
        raise _too_long(name)
    return text


def _too_long(name: str) -> UserError:
    hint = "shorten it, or name the files in it that agents should read"
    return UserError(f"{name} has more than {MOST_REQUEST} characters", hint=hint)


def _read(path: Path, *, hint: str) -> str:
    try:
        return text_files.read(path)
    except UnicodeDecodeError as error:
        raise UserError(f'"{path}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f'Cannot read "{path}": {error.strerror}', hint=hint) from error


def read_issue(repository: Repository, name: str) -> tuple[str, IssueText]:
    """The title of a GitHub issue and what is said in it; a long one is cut."""
    number = re.fullmatch(r"(?:GH-|#)?([1-9]\d{0,8})", name, re.IGNORECASE)
    if number is None:
        raise UserError(f'"{name}" is not an issue of GitHub', hint="--issue GH-12")
    try:
        issue = github.read_issue(repository.top, int(number[1]), os.environ)
    except HostError as error:
        otherwise = "save the text of the issue to a file, and use --file PATH"
        raise HostError(error.message, hint=f"{error.hint}; or {otherwise}") from error
    comments = (f"{one.author or 'unknown'} wrote:\n{one.body}" for one in issue.comments)
    whole = repository.redact("\n\n".join(filter(None, (issue.title, issue.body, *comments))))
    text = plain(whole.replace("\r\n", "\n"))
    if len(text) > MOST_ISSUE:
        text = f"{text[:MOST_ISSUE]}\n(cut: the issue is longer)"
    title = " ".join(plain(issue.title).split())
    return f"{title} (GH-{number[1]})", IssueText(f"GH-{number[1]}", text)


def uncommitted(repository: Repository) -> list[str]:
    """Changes of the user's checkout that agents do not see, because they are not committed."""
    return [name for name in checkout.uncommitted(repository.top) if name != settings.FILE]


def start(
    repository: Repository,
    request: Request,
    rows: tuple[TableRow, ...] = (),
    team: Team | None = None,
    *,
    budget_usd: float | None = None,
) -> SessionId:
    """Creates a session, with the rows of a table that a person made if there are any; no file of the user changes.

    `budget_usd` is the most money that it may spend, in place of what the configuration says.
    """
    team, configured = team or repository.default_team, repository.settings
    base, branch = refs.head(repository.top), refs.current_branch(repository.top)
    request = msgspec.structs.replace(checked(request), requirement=repository.redact(request.requirement))
    if rows:
        request = msgspec.structs.replace(request, pipeline=team.plan_cells(rows[0].edit.task).get("pipeline"))
    session_branch.check_name(repository.top)
    repository.instructions()
    repository.prepare()
    agents = named_agents(request, team.roles)
    limits = policy(configured, team.workers, team.time_limits, auto=request.auto, concurrency=request.concurrency)
    if budget_usd is not None:
        limits = msgspec.structs.replace(limits, budget_usd=_amount(budget_usd))
    of_team, edits = team.started(request, configured, agents), tuple(row.edit for row in rows)
    inherited = wisdom.inherited(repository, request.requirement)
    at, suffix = clock.now(), secrets.token_hex(4)

    def planned(name: SessionId) -> tuple[State, list[Event]]:
        session = session_facts(
            request, team=team.name, name=name, base=base, branch=branch, agents=agents, by_hand=bool(rows)
        )
        session = msgspec.structs.replace(session, monitor=nearest_monitor(os.getpid()), suffix=suffix)
        events = new_session(session, limits, of_team, edits)
        state = replay([Entry(number, at, event) for number, event in enumerate(events, 1)], team)
        return state, [*events, *team.table_edited(state, rows), *([inherited] if inherited else [])]

    first, _ = planned(_id(team, request, taken=()))
    if repository.runs_here:
        check_agents(repository, first, team, partial(make_present, configured=configured.agents, root=repository.top))
        configured_sandbox(repository)
    else:
        # Which agents the hosts have, the engine asks.
        check_server(repository)
    # Of several that start at once, each waits for the ones before it, so that every id is given once.
    with repository_lock(repository.top):
        name = _free_id(repository, team, request)
        state, events = planned(name)
        with _reserved(repository, name, base, repository.folder(state)):
            create(repository.journal, events, at=at)
    return name


def _amount(usd: float) -> float:
    if not 0 <= usd <= settings.MOST_OTHERWISE:
        raise UserError(f'The budget "{usd:g}" is not an amount of money', hint="--budget 5")
    return usd


@contextmanager
def _reserved(repository: Repository, name: SessionId, base: str, folder: Path) -> Iterator[None]:
    """Creates the branch, which no other session can then have, and the folder; both are removed after an error."""
    session_branch.create(repository.top, name, base)
    try:
        folder.mkdir(parents=True, mode=0o700)
        yield
    except BaseException:
        session_branch.discard(repository.top, name, base)
        with suppress(OSError):
            folder.rmdir()
        raise


def _free_id(repository: Repository, team: Team, request: Request) -> SessionId:
    """An id that is in no journal, session folder, branch or ref of the repository, whatever is left of the others."""
    patterns = [ids.folder(engine, SessionId("*")) for engine in Engine]
    tops = {repository.top, *checkouts(repository.top)}
    folders = (folder for top in tops for pattern in patterns for folder in top.glob(pattern))
    taken = {*repository.sessions(), *(folder.name for folder in folders), *session_branch.names(repository.top)}
    return _id(team, request, taken)


def _id(team: Team, request: Request, taken: Collection[str]) -> SessionId:
    prefix, words = team.session_prefix(request.engine), team.session_slug(request)
    return ids.session_id(prefix, words, request.engine, clock.now(), taken)


def read_table(repository: Repository, path: Path) -> tuple[TableRow, ...]:
    text = _read(path, hint="check the path after --tasks")
    rows = tasks_csv.parse(text, repository.default_team, path.name)
    if not rows:
        raise UserError(f'"{path}" has no tasks', hint="add a row under the header")
    return tuple(rows)
