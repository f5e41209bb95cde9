"""iterdev resolve."""

from functools import partial
from pathlib import Path

import click
import msgspec

from iterdev.app import callbacks, resume, start
from iterdev.app.issues import pull_requests
from iterdev.app.issues import resolve as resolving
from iterdev.app.sessions import Repository, to_continue
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.surfaces.cli import arguments, line
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_warning
from iterdev.surfaces.cli.output.text import opened_text
from iterdev.surfaces.cli.session_run import (
    Addition,
    choose_session,
    exclude_detached_role,
    request_text,
    show_detached,
    show_run,
    show_worker,
    start_warnings,
)

WHICH = "Which issues (such as ISS-20260308-120000 or GH-42)"
EXAMPLE = 'iterdev resolve "GH-42"; `iterdev issue list` shows the issues'


class WithFlagsInText(click.Command):
    """Flags may be in the quoted TEXT, even at its beginning, where click would take all of it for one option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # An option of another kind may have a value with spaces, such as `--file=PATH`.
        words = (arg.split() if arg.startswith(resolving.FLAGS) and " " in arg else [arg] for arg in args)
        return super().parse_args(ctx, [word for some in words for word in some])


@click.command(cls=WithFlagsInText, help="Run one session of the issue team on the issues that TEXT names")
@click.argument("text", nargs=-1)
@arguments.yes
@click.option("-c", "--concurrency", type=int, metavar="N", help="Run at most N agents at once  [default: 3]")
@click.option("--mode", type=click.Choice(resolving.PIPELINES), help="Choose the pipeline yourself")
@click.option("--exec", "method", metavar="NAME", help="The agent that builds, or auto  [default: gemini]")
@click.option("--all-pending", is_flag=True, help="Resolve every issue on which no work has begun")
@arguments.engine
@click.option("--agent", metavar="NAME", help="The agent for every role")
@click.option("--role-agent", multiple=True, metavar="ROLE=NAME", help="The agent for one role; repeatable")
@click.option("--role", metavar="NAME", help="Run one worker of this role, for one task; TEXT may be a session")
@click.option("--pr", is_flag=True, help="Open a pull request at the end, with the report as its text")
@click.option("--pr-per-issue", is_flag=True, help="Open one for each issue, each based on the one before")
@arguments.text_file
@click.option("--continue", "continue_", is_flag=True, help="Continue a session; TEXT may be its id")
@arguments.detach
@arguments.here
@line.option
@arguments.as_json
def resolve(
    *,
    text: tuple[str, ...],
    yes: bool,
    mode: str | None,
    method: str | None,
    all_pending: bool,
    role_agent: tuple[str, ...],
    role: str | None,
    pr: bool,
    pr_per_issue: bool,
    file: Path | None,
    continue_: bool,
    detach: bool,
    here: bool,
    as_json: bool,
    **options: object,
) -> ExitCode:
    repository = arguments.current_repository(here=here)
    words = resolving.read_words(request_text(text, file, "resolve"))
    exclude_detached_role(role, detach=detach)
    if role and (scope := resume.one_worker(repository, role)):
        return show_worker(repository, role, words.text, scope, as_json=as_json)
    at_end = partial(_pull_requests, per_issue=pr_per_issue) if pr or pr_per_issue else None
    if detach and at_end:
        raise UserError("--detach does not wait for the end, at which --pr opens a pull request", hint="iterdev pr")
    show = show_detached if detach else partial(show_run, at_end=at_end)
    if reported := callbacks.callback_in(repository, words.text):
        session = choose_session(reported.session)
        callbacks.record(repository, session, reported)
        return show(repository, session, as_json=as_json)
    if continue_:
        session = choose_session(to_continue(repository, words.text))
        return show(repository, session, auto=yes, as_json=as_json)
    ids = resolving.known_ids(repository, words)
    found = _issues(repository, ids, all_pending=all_pending or words.all_pending, auto=yes)
    options |= {"requirement": words.text, "auto": yes, "pipeline": mode or words.mode or None}
    options["role_agents"] = start.role_agents(repository, role_agent, resolving.ISSUES)
    request = msgspec.convert(options, start.Request)
    session = resolving.start_resolving(
        repository, request, found, method or words.method or None, separately=pr_per_issue
    )
    start_warnings(repository)
    return show(repository, session, as_json=as_json)


def _pull_requests(repository: Repository, session: SessionId, *, per_issue: bool) -> Addition:
    if not pull_requests.has_landed(repository, session):
        return Addition(text="No pull request: nothing has landed", fields={"pull_requests": []})
    opening = pull_requests.open_for_issues if per_issue else pull_requests.open_for_session
    opened = opening(repository, session)
    return Addition(text="\n".join(map(opened_text, opened)), fields={"pull_requests": opened})


def _issues(
    repository: Repository, ids: tuple[str, ...], *, all_pending: bool, auto: bool
) -> tuple[resolving.Issue, ...]:
    """The issues that are named; without any, or for ids that do not exist, the user is asked once, unless `auto`."""
    found = resolving.find_issues(repository, ids, all_pending=all_pending)
    if all_pending and not found.issues:
        hint = '`iterdev issue list` shows all issues, `iterdev issue create --title "..."` makes one'
        raise UserError("No issue is pending", hint=hint)
    asks = prompt.can_ask() and not auto
    if not found.issues and not asks:
        raise UserError(_problem(found), hint=EXAMPLE)
    if found.missing:
        print_warning(f"warning: {_problem(found)}")
    if found.issues and not (found.missing and asks):
        return found.issues
    question = WHICH if found.missing else f"No issue ids found. {WHICH}"
    default = " ".join(issue.id for issue in found.issues)
    answer = click.prompt(question, default=default, show_default=bool(default))
    ids = resolving.known_ids(repository, resolving.read_words(answer))
    again = resolving.find_issues(repository, ids, all_pending=False)
    if not again.issues:
        raise UserError(_problem(again), hint=EXAMPLE)
    return again.issues


def _problem(found: resolving.Found) -> str:
    if not found.missing:
        return "The request names no issue"
    why = f" in the tracker; {found.unreached}" if found.unreached else ""
    return f'There is no issue "{", ".join(found.missing)}"{why}'
