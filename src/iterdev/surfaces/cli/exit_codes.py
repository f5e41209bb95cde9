"""How a command ends."""

from enum import IntEnum


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
