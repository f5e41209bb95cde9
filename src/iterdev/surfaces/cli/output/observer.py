"""What shows a run: a live picture in a terminal, plain lines anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

from iterdev.agents.contract import AgentEvent
from iterdev.core.types import SessionId
from iterdev.engine.run import Audience, nobody
from iterdev.surfaces.cli.output.plain import Lines, complain, tell
from iterdev.surfaces.cli.output.prompt import ask, can_ask, is_terminal


@contextmanager
def opened(session: SessionId, *, quiet: bool) -> Iterator[Audience]:
    """The audience of one run."""
    if quiet:
        yield Audience(ask=nobody, say=complain)
    elif is_terminal():
        # rich takes 60 ms to load; plain output does without it.
        from iterdev.surfaces.cli.output.live import Live

        with Live() as live:
            yield Audience(show=live.show, hear=live.hear, ask=live.ask, say=live.say)
    else:
        tell(f"session {session}")
        lines = Lines()
        yield Audience(show=lines.show, hear=_unheard, ask=ask if can_ask() else nobody, say=complain)


def _unheard(_task: str, _event: AgentEvent) -> None:
    """Plain output tells of tasks, not of every line that agents write."""
