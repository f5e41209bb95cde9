"""iterdev follow."""

from collections.abc import Callable

import click

from iterdev.app.live import watch
from iterdev.app.live.watch import Followed
from iterdev.core.types import Ending
from iterdev.core.views.event_lines import EventLine
from iterdev.core.views.gates import gate_document
from iterdev.surfaces.cli import arguments, exit_codes
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import GrowingDocument, print_text, print_warning

QUESTION = "question"


@click.command(help="Print a line for each notable event of a session, as it happens")
@arguments.session
@click.option("--until", type=click.Choice([QUESTION]), help="Exit with code 5 as soon as a question is open")
@arguments.as_json
def follow(*, session: arguments.SelectedSession, until: str | None, as_json: bool) -> ExitCode:
    return follow_as_document(session, until) if as_json else follow_lines(session, until)


def follow_lines(session: arguments.SelectedSession, until: str | None = None) -> ExitCode:
    """Prints the lines, and how following ended."""
    ended = _follow(session, until, lambda line: print_text(f"{line.when} {line.text}"))
    view = ended.view
    if ended.ending is Ending.over and view.outcome.reasons:
        print_text(f"Not successful: {'; '.join(view.outcome.reasons)}")
    if ended.ending is Ending.interrupted:
        print_warning(f"No engine is running. Continue with: iterdev resume {view.id}")
    return _code(ended)


def _follow(session: arguments.SelectedSession, until: str | None, show: Callable[[EventLine], None]) -> Followed:
    for line in watch.follow(*session, until_question=until == QUESTION):
        if isinstance(line, Followed):
            return line
        show(line)
    raise AssertionError("following ends with how it ended")


def _code(ended: Followed) -> ExitCode:
    return exit_codes.of_ending(ended.ending, succeeded=ended.view.outcome.succeeded)


def follow_as_document(session: arguments.SelectedSession, until: str | None = None) -> ExitCode:
    document = GrowingDocument("events", session=session.id)
    try:
        ended = _follow(session, until, document.add)
    except KeyboardInterrupt:
        document.close(ending=None, exit_code=ExitCode.interrupted)
        raise
    gates = list(map(gate_document, ended.view.gates))
    document.close(ending=ended.ending, phase=ended.view.phase, gates=gates, exit_code=_code(ended))
    return _code(ended)
