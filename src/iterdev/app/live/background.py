"""Engines in the background: how one is started that outlives the command, and what it does at questions."""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from iterdev.app.edits import table_edited
from iterdev.core.errors import HostError, UserError
from iterdev.core.types import SessionId
from iterdev.core.views.gates import EDIT, GateView
from iterdev.engine.repository import Repository
from iterdev.host.processes import detached
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_folder.find import TABLE

INTERVAL = 0.05
"""Seconds between two checks of an engine in the background."""
TABLE_INTERVAL = 1.0
"""Seconds between two checks of tasks.csv while a question is open."""
WRONG, FAILURES = 2, frozenset({2, 3, 4})
"""Exit codes of an engine that could not do its part."""
SAID = "iterdev: "
"""What an error begins with in its output."""


class UnattendedQuestions:
    """Questions of an engine in the background: other processes answer them, and people may edit tasks.csv first."""

    def __init__(self, repository: Repository, session: SessionId) -> None:
        self._repository, self._session = repository, session
        self._checked: tuple[int, int] | None = None
        """Time and size of the table that was checked last."""

    async def ask(self, _: GateView) -> str | None:
        """Waits for as long as the configuration says; a table that was edited meanwhile is to be read at once."""
        with anyio.move_on_after(self._repository.settings.limits.gate):
            while True:
                if self._has_valid_edit():
                    return EDIT
                await anyio.sleep(TABLE_INTERVAL)
        return None

    def _has_valid_edit(self) -> bool:
        """Each content is checked once; one that is not valid may be half written."""
        state = self._repository.state(self._session)
        path = self._repository.folder(state) / TABLE
        try:
            stat = path.stat()
            checked, self._checked = self._checked, (stat.st_mtime_ns, stat.st_size)
            if checked == self._checked or not table_edited(self._repository, state):
                return False
            tasks_csv.parse(path.read_text(encoding="utf-8"), self._repository.team(state), TABLE)
        except (OSError, UnicodeDecodeError, UserError):
            return False
        return True


def interrupt(repository: Repository, session: SessionId) -> bool:
    """Has the engine of a session stop as Ctrl-C does, with everything kept; False if none runs."""
    process = repository.engine_process(repository.state(session).session)
    if process is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGINT)
    return True


class BackgroundEngine:
    def __init__(self, repository: Repository, session: SessionId, *options: str, log: str) -> None:
        """Starts `iterdev resume` with these options; what it prints is in the file `log` of the session folder."""
        self.log: Path = repository.folder(repository.state(session)) / log
        # -P: modules of the repository that it starts in must not be taken for those of iterdev.
        here = ["--here"] if repository.stays_here else []
        command = [sys.executable, "-P", "-m", "iterdev", "resume", session, *options, *here]
        self._process = detached.start(command, cwd=repository.top, output=self.log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait_until(self, reached: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Waits until something is reached, the engine has ended, or the time is over."""
        end = time.monotonic() + seconds
        while not self.has_ended and not reached() and time.monotonic() < end:
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
