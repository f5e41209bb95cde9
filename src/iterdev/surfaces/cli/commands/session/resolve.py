"""iterdev resolve."""

import click
import msgspec

from iterdev.app import start
from iterdev.app.issues import resolve as resolving
from iterdev.app.sessions import Repository, to_continue
from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments, line
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_warning
from iterdev.surfaces.cli.session_run import choose_session, show_detached, show_run

NO_IDS = "No issue ids found. Which issues (such as ISS-20260308-120000 or GH-42)"
EXAMPLE = 'iterdev resolve "GH-42"; `iterdev issue list` shows the issues'


@click.command(help="Run one session of the issue team on the issues that TEXT names")
@click.argument("text", nargs=-1)
@arguments.yes
@click.option("-c", "--concurrency", type=int, metavar="N", help="The most agents at once  [default: 3]")
@click.option("--mode", type=click.Choice(resolving.PIPELINES), help="Choose the pipeline yourself")
@click.option("--exec", "method", metavar="NAME", help="The agent that builds, or auto  [default: gemini]")
@click.option("--all-pending", is_flag=True, help="Take every issue that nobody has begun to work on")
@arguments.engine
@click.option("--agent", metavar="NAME", help="The agent for every role")
@click.option("--role-agent", multiple=True, metavar="ROLE=NAME", help="The agent for one role; repeatable")
@click.option("--continue", "continue_", is_flag=True, help="Go on with a session; TEXT may be its id")
@arguments.detach
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
    continue_: bool,
    detach: bool,
    as_json: bool,
    **options: object,
) -> ExitCode:
    repository = arguments.current_repository()
    show = show_detached if detach else show_run
    words = resolving.read_words(" ".join(text))
    if continue_:
        session = choose_session(to_continue(repository, words.text))
        return show(repository, session, auto=yes, as_json=as_json)
    wanted = all_pending or words.all_pending
    found = _issues(repository, words.ids, all_pending=wanted)
    options |= {"requirement": words.text, "auto": yes, "pipeline": mode or words.mode or None}
    options["role_agents"] = start.role_agents(repository, role_agent, resolving.ISSUES)
    request = msgspec.convert(options, start.Request)
    session = resolving.start_resolving(repository, request, found, method or words.method or None)
    return show(repository, session, as_json=as_json)


def _issues(repository: Repository, ids: tuple[str, ...], *, all_pending: bool) -> tuple[resolving.Issue, ...]:
    """The issues that are named; without any, or for ids that do not exist, the user is asked once."""
    found = resolving.find_issues(repository, ids, all_pending=all_pending)
    if all_pending and not found.issues:
        raise UserError("No issue is pending", hint='iterdev issue create --data \'{"title": "..."}\'')
    if found.missing:
        why = f" in the tracker ({found.unreached})" if found.unreached else ""
        print_warning(f"warning: there is no issue {', '.join(found.missing)}{why}")
    if (found.issues and not found.missing) or (found.issues and not prompt.can_ask()):
        return found.issues
    if not prompt.can_ask():
        raise UserError(_problem(found.missing), hint=EXAMPLE)
    answer = click.prompt(NO_IDS, default=" ".join(issue.id for issue in found.issues), show_default=bool(found.issues))
    again = resolving.find_issues(repository, resolving.read_words(answer).ids, all_pending=False)
    if not again.issues:
        raise UserError(_problem(again.missing), hint=EXAMPLE)
    return again.issues


def _problem(missing: tuple[str, ...]) -> str:
    return f'There is no issue "{", ".join(missing)}"' if missing else "The request names no issue"
