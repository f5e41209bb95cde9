"""run, resume and retry: the commands that let an engine work."""

import json
from pathlib import Path

import anyio
import click
import msgspec

from iterdev.app import start
from iterdev.core.collaboration import messages
from iterdev.core.errors import UserError
from iterdev.core.request import Request, checked
from iterdev.core.session import capability_gaps, events, worker_callbacks
from iterdev.core.session.announcements import COORDINATOR
from iterdev.core.session.state import State
from iterdev.core.types import LOST, WORKERS, Engine, Pipeline, Role, SessionId, Status
from iterdev.engine.loop import Ending
from iterdev.engine.repository import Repository
from iterdev.engine.run import drive, held
from iterdev.engine.run_scope import OneRole, OneStep, Pace, ToTheEnd
from iterdev.execution import analyzer
from iterdev.host import clock
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_log import SessionLog
from iterdev.surfaces.cli.commands import archive
from iterdev.surfaces.cli.output.observer import opened
from iterdev.surfaces.cli.output.prompt import can_ask
from iterdev.surfaces.cli.output.text import as_document, summary
from iterdev.teams.development import sprints

EXIT = {Ending.waiting: 5, Ending.interrupted: 130, Ending.stepped: 0}


def run(
    *,
    text: tuple[str, ...],
    yes: bool,
    concurrency: int | None,
    pipeline: str | None,
    files: int | None,
    engine: str,
    agent: str | None,
    role_agent: tuple[str, ...],
    role: str | None,
    team: str,
    analyze: bool,
    tasks: Path | None,
    continue_: bool,
    resume_: bool,
    as_json: bool,
) -> int:
    repository = Repository(Path.cwd())
    words = " ".join(text)
    if role and role != COORDINATOR:
        return work(repository, role, words, as_json=as_json)
    if (told := _told(repository, words)) is not None:
        return _call_back(repository, *told, as_json=as_json)
    if (lacking := capability_gaps.told(words)) is not None:
        return _adapt(repository, lacking, as_json=as_json)
    if resume_:
        return resume(session=words or None, yes=yes, step=False, as_json=as_json)
    if continue_:
        session = _to_continue(repository, words)
        return go_on(repository, session, yes=yes, as_json=as_json)
    rows = read_table(tasks) if tasks else ()
    request = Request(
        requirement=words or (f"Run the tasks of {tasks.name}" if tasks else ""),
        auto=yes,
        concurrency=concurrency,
        pipeline=Pipeline(pipeline) if pipeline else None,
        files=files,
        engine=Engine(engine),
        agent=agent,
        role_agents=_role_agents(role_agent),
        team_name=team,
    )
    request = checked(request)
    if analyze:
        request = _assessed(repository, request)
    session = start.begin(repository, request, rows)
    return go_on(repository, session, as_json=as_json)


def resume(*, session: str | None, yes: bool, step: bool, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    found = repository.find(session) if session else _to_resume(repository)
    _begin_next_sprint(repository, found)
    return go_on(repository, found, yes=yes, pace=OneStep() if step else ToTheEnd(), as_json=as_json)


def _begin_next_sprint(repository: Repository, session: SessionId) -> None:
    """To resume a session that rests between two sprints is to say that the next one may start.

    A question that advises to stop, as one about overdue debt does, has to be answered by itself.
    """
    state = repository.state(session)
    gate = state.gates.get(sprints.gate_of(state.sprint))
    if gate and gate.choices[0] == sprints.GO_ON:
        answered = events.GateAnswered(gate.id, sprints.GO_ON)
        repository.journal.append(session, [answered], at=clock.now(), after=state.seq)


def work(repository: Repository, role: str, name: str, *, as_json: bool) -> int:
    """One worker: the next task of its role in a session, and for the developer those after it."""
    pace = OneRole(worker_callbacks.known_role(role))
    session = repository.find(name) if name else _to_resume(repository)
    code = go_on(repository, session, pace=pace, as_json=as_json)
    if not pace.taken and not as_json:
        click.echo(f"Nothing is ready for the {role}; see what waits: iterdev status {session}")
    return code


def _assessed(repository: Repository, request: Request) -> Request:
    """An analyzer that fails is no reason not to begin: then the text decides, as it does without one."""
    agent = request.role_agents.get(Role.architect) or request.agent
    found = anyio.run(analyzer.assessed, repository, request.requirement, agent)
    if isinstance(found, str):
        click.echo(f"The analyzer gave no usable answer, so the text decides: {found}", err=True)
        return request
    return msgspec.structs.replace(request, assessment=found)


def _adapt(repository: Repository, lacking: str, *, as_json: bool) -> int:
    """Somebody says what the team lacks; the engine asks what to do about it."""
    session = _to_resume(repository)
    if repository.engine_alive(repository.state(session)):
        raise held(repository, session)
    log = SessionLog(repository.journal, session, now=clock.now)
    log.record(messages.composed(COORDINATOR, kind=capability_gaps.GAP, summary=repository.redact(lacking)))
    return go_on(repository, session, as_json=as_json)


def _told(repository: Repository, words: str) -> tuple[SessionId, worker_callbacks.Callback] | None:
    """What a worker says to a session, known by its tag or by the task that it begins with; else it is a request."""
    if told := worker_callbacks.callback(words):
        is_request = not words.lstrip().startswith("[") and not repository.unfinished()
        return None if is_request else (_to_resume(repository), told)
    if not (task := worker_callbacks.begins_with_task(words)):
        return None
    having = [session for session in repository.unfinished() if task in repository.state(session).tasks]
    if not having:
        return None
    session = _chosen(having, "") if len(having) > 1 and can_ask() else having[-1]
    return session, worker_callbacks.Callback(None, words)


def _call_back(repository: Repository, session: SessionId, told: worker_callbacks.Callback, *, as_json: bool) -> int:
    """A worker that was started elsewhere says that it is done; then whatever became ready is started."""
    if repository.engine_alive(repository.state(session)):
        # An engine hears its own workers; an agent of it does not speak for others.
        raise held(repository, session)
    log = SessionLog(repository.journal, session, now=clock.now)
    log.transact(lambda state, _: [worker_callbacks.completed(state, told)])
    return go_on(repository, session, as_json=as_json)


def retry(*, session: str | None, yes: bool, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    found = repository.find(session) if session else repository.newest()
    state = repository.state(found)
    again = [task.id for task, progress in state.rows() if progress.status in LOST]
    if not again:
        raise UserError(f'No task of "{found}" failed or was skipped', hint=f"iterdev status {found}")
    repository.journal.append(found, [events.TasksReset(tuple(again))], at=clock.now(), after=state.seq)
    return go_on(repository, found, yes=yes, as_json=as_json)


def go_on(
    repository: Repository,
    session: SessionId,
    *,
    yes: bool = False,
    pace: Pace | None = None,
    as_json: bool = False,
) -> int:
    """Drives a session, shows it, and says how it ended."""
    state = repository.state(session)
    if state.is_finished and all(progress.status.is_final for progress in state.progress.values()):
        return _conclude(repository, session, as_json=as_json)
    if yes and (state.gates or not state.policy.auto):
        policy = msgspec.structs.replace(state.policy, auto=True)
        answers = [events.GateAnswered(gate.id, gate.choices[0]) for gate in state.gates.values()]
        repository.journal.append(session, [events.PolicyChanged(policy), *answers], at=clock.now(), after=state.seq)
    with opened(session, quiet=as_json) as audience:
        ending = anyio.run(lambda: drive(repository, session, audience, pace=pace))
    if ending is Ending.over:
        return _conclude(repository, session, as_json=as_json)
    return _tell(repository, session, ending, as_json=as_json)


def _conclude(repository: Repository, session: SessionId, *, as_json: bool) -> int:
    """Says how a session ended, after or before its completion, depending on whether that takes a question."""
    archive.by_itself(repository, repository.state(session))
    code = _tell(repository, session, Ending.over, as_json=as_json)
    if not as_json and archive.asked(repository, repository.state(session)):
        return retry(session=session, yes=False, as_json=as_json)
    return code


def _tell(repository: Repository, session: SessionId, ending: Ending, *, as_json: bool) -> int:
    state = repository.state(session)
    code = EXIT.get(ending, exit_code(state))
    if as_json:
        click.echo(json.dumps(as_document(state, engine_alive=False) | {"exit_code": code}, ensure_ascii=False))
    else:
        click.echo(summary(state, ending))
    return code


def exit_code(state: State) -> int:
    """0 only if every task is completed; a rejected plan did nothing."""
    everything = all(progress.status is Status.completed for progress in state.progress.values())
    ended_early = state.why and not state.completion.kept
    return 0 if everything and state.is_finished and not ended_early else 1


def _to_continue(repository: Repository, name: str) -> SessionId:
    """The session of that name, or the newest that is not finished; if there is none, the user chooses."""
    sessions = repository.sessions()
    if name and (name in sessions or not can_ask()):
        return repository.find(name)
    unfinished = [] if name else repository.unfinished()
    if unfinished:
        return unfinished[-1]
    if not sessions:
        raise UserError(f'There is no session in "{repository.top}" yet', hint='iterdev run "Add a greeting"')
    return _chosen(sessions, "No session is unfinished")


def _to_resume(repository: Repository) -> SessionId:
    unfinished = repository.unfinished()
    if len(unfinished) > 1 and can_ask():
        return _chosen(unfinished, "")
    return _to_continue(repository, "")


def _chosen(sessions: list[SessionId], otherwise: str) -> SessionId:
    if not can_ask():
        raise UserError(otherwise, hint=f"iterdev status {sessions[-1]}; all sessions: {', '.join(sessions)}")
    return SessionId(click.prompt("Which session?", type=click.Choice(sessions), default=sessions[-1]))


def _role_agents(pairs: tuple[str, ...]) -> dict[Role, str]:
    chosen: dict[Role, str] = {}
    for pair in pairs:
        role, _, name = pair.partition("=")
        if role not in WORKERS:
            raise UserError(f'There is no role "{role}"', hint=f"roles: {', '.join(WORKERS)}")
        if not name:
            raise UserError(f'"{pair}" names no agent', hint=f"--role-agent {role}=NAME")
        chosen[Role(role)] = name
    return chosen


def read_table(path: Path) -> tuple[events.RowEdit, ...]:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f'"{path}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f'Cannot read "{path}": {error.strerror}', hint="check the path after --tasks") from error
    rows = tasks_csv.parse(text, path.name)
    if not rows:
        raise UserError(f'"{path}" has no tasks', hint="add a row under the header")
    return tuple(rows)
