"""iterdev run."""

from pathlib import Path

import click
import msgspec

from iterdev.app import callbacks, resume, start
from iterdev.app.analyze import analyze as ask_analyzer
from iterdev.app.sessions import Repository, to_continue, to_resume
from iterdev.surfaces.cli import arguments, event_loop, line
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_warning
from iterdev.surfaces.cli.session_run import (
    choose_session,
    exclude_detached_role,
    request_text,
    show_detached,
    show_run,
    show_worker,
    start_warnings,
)


@click.command(help="Run one session of the development team on TEXT")
@click.argument("text", nargs=-1)
@arguments.yes
@click.option("-c", "--concurrency", type=int, metavar="N", help="Run at most N agents at once  [default: 3]")
@click.option("--budget", type=float, metavar="USD", help="Spend at most this much  [default: as configured]")
@click.option("--pipeline", type=click.Choice(start.PIPELINES), help="Choose the pipeline yourself")
@click.option("--files", type=int, metavar="N", help="About how many files the change will touch")
@arguments.engine
@click.option("--agent", metavar="NAME", help="The agent for every role")
@click.option("--role-agent", multiple=True, metavar="ROLE=NAME", help="The agent for one role; repeatable")
@click.option("--role", metavar="NAME", help="Run one worker of this role, for one task; TEXT may be a session")
@click.option("--team", "team_name", metavar="NAME", default="iterdev", help="The name of the team  [default: iterdev]")
@click.option("--analyze", is_flag=True, help="Ask an agent which pipeline fits, instead of judging by the text")
@click.option("--tasks", type=click.Path(path_type=Path), metavar="FILE.csv", help="Run a task table that you wrote")
@arguments.text_file
@click.option("--issue", metavar="GH-N", help="Work on a GitHub issue; TEXT may say what to do about it")
@click.option("--continue", "continue_", is_flag=True, help="Continue a session; TEXT may be its id")
@click.option(
    "--resume", "resume_", is_flag=True, help="Like --continue, but asks you to choose among several sessions"
)
@arguments.detach
@arguments.here
@line.option
@arguments.as_json
def run(
    *,
    text: tuple[str, ...],
    yes: bool,
    role_agent: tuple[str, ...],
    role: str | None,
    analyze: bool,
    tasks: Path | None,
    file: Path | None,
    issue: str | None,
    continue_: bool,
    resume_: bool,
    detach: bool,
    budget: float | None,
    here: bool,
    as_json: bool,
    **options: object,
) -> ExitCode:
    repository = arguments.current_repository(here=here)
    words = request_text(text, file, "run")
    show = show_detached if detach else show_run
    exclude_detached_role(role, detach=detach)
    if role and (scope := resume.one_worker(repository, role)):
        return show_worker(repository, role, words, scope, as_json=as_json)
    if reported := callbacks.callback_in(repository, words):
        session = choose_session(reported.session)
        callbacks.record(repository, session, reported)
        return show(repository, session, as_json=as_json)
    if resume_:
        session = choose_session(to_resume(repository, words))
        return show(repository, session, auto=yes, resumes=True, as_json=as_json)
    if continue_:
        session = choose_session(to_continue(repository, words))
        return show(repository, session, auto=yes, as_json=as_json)
    rows = start.read_table(repository, tasks) if tasks else ()
    title, about = start.read_issue(repository, issue) if issue else ("", None)
    requirement = words or title or (f"Run the tasks of {tasks.name}" if tasks else "")
    options |= {"requirement": requirement, "auto": yes, "issue": about}
    options["role_agents"] = start.role_agents(repository, role_agent)
    request = msgspec.convert(options, start.Request)
    if analyze:
        request = _analyzed(repository, request)
    session = start.start(repository, request, rows, budget_usd=budget)
    start_warnings(repository)
    return show(repository, session, as_json=as_json)


def _analyzed(repository: Repository, request: start.Request) -> start.Request:
    """An analyzer that fails is no reason not to start: then the text decides, as it does without one."""
    analyzed = event_loop.run(ask_analyzer, repository, request)
    if isinstance(analyzed, str):
        print_warning(f"The analyzer gave no usable answer, so the text decides: {analyzed}")
        return request
    return analyzed
