"""How a command ends."""

from enum import IntEnum
from typing import assert_never

from iterdev.core.types import Ending


class ExitCode(IntEnum):
    finished = 0
    unfinished = 1
    """Some task failed or was skipped, or the request was refused."""
    wrong = 2
    """The request or the configuration is wrong."""
    defect = 3
    """A defect of iterdev."""
    unable = 4
    """The host is not able: git, disk, a missing agent."""
    waiting = 5
    """Paused until a question is answered."""
    interrupted = 130


def of_ending(ending: Ending, *, succeeded: bool) -> ExitCode:
    """How a command ends that runs or follows a session; `succeeded` is about one that is over."""
    match ending:
        case Ending.over:
            return ExitCode.finished if succeeded else ExitCode.unfinished
        case Ending.stepped:
            return ExitCode.finished
        case Ending.waiting:
            return ExitCode.waiting
        case Ending.interrupted:
            return ExitCode.interrupted
        case _:
            assert_never(ending)
