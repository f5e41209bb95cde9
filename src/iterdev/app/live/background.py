"""Starts an engine as a process of its own, which goes on when the command that started it has ended."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from iterdev.core.errors import HostError, UserError
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.processes import detached

INTERVAL = 0.05
"""Seconds between two looks at an engine in the background."""
WRONG, FAILURES = 2, frozenset({2, 3, 4})
"""Exit codes of an engine that could not do its part."""
SAID = "iterdev: "
"""What an error begins with in its output."""


class BackgroundEngine:
    def __init__(self, repository: Repository, session: SessionId, *options: str, log: str) -> None:
        """Starts `iterdev resume` with these options; what it prints is in the file `log` of the session folder."""
        self.log: Path = repository.folder(repository.state(session)) / log
        # -P: modules of the repository that it starts in must not be taken for those of iterdev.
        command = [sys.executable, "-P", "-m", "iterdev", "resume", session, *options]
        self._process = detached.start(command, cwd=repository.top, output=self.log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, reached: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Waits until something is reached, the engine has ended, or the time is over."""
        end = time.monotonic() + seconds
        while self._process.poll() is None and not reached() and time.monotonic() < end:
            time.sleep(INTERVAL)

    def require_success(self, what: str) -> None:
        """Raises the error of an engine that has ended with one."""
        code = self._process.poll()
        if code not in FAILURES:
            return
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = next((line.removeprefix(SAID) for line in reversed(lines) if line.startswith(SAID)), "")
        error = UserError if code == WRONG else HostError
        raise error(f"{what}: {said or (lines or ['nothing was said'])[-1]}", hint=f"see {self.log}")
