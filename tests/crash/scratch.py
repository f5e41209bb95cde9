"""The repository of a scenario: made once, copied before each stage, and restored for each kill."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from tests.crash.scenarios import SETTINGS, Scenario

from iterdev.core.session.events import Entry
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.core.types import Engine, SessionId
from iterdev.engine.repository import STATE
from iterdev.store.journal import NAME, Journal
from iterdev.teams.contract import Team


class SessionRecord(Struct, frozen=True):
    """A session and the entries that it was folded from."""

    state: State
    entries: Sequence[Entry]
    team: Team
    held: set[SessionId]
    """Sessions that an engine has not released."""


class Scratch:
    def __init__(self, root: Path, engine: Engine, scenario: Scenario) -> None:
        self.root, self.engine, self.scenario = root, engine, scenario
        self.home = root / "home"
        self.project = root / "project"
        self.told = root / "told"
        """What notifications said."""
        self._copies: dict[str, Path] = {}
        os.environ |= {"ITERDEV_HOME": str(self.home), "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        root.mkdir(parents=True, exist_ok=True)
        (root / "agent.sh").write_text(scenario.agent)
        self.project.mkdir()
        (self.project / "README.md").write_text("# Sample\n")
        (self.project / "iterdev.toml").write_text(
            SETTINGS.format(agent=root / "agent.sh", test=scenario.test) + scenario.settings
        )
        who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        for args in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "start"]):
            subprocess.run(["git", *args], cwd=self.project, check=True)

    def copy(self, stage: str) -> None:
        """Copies the repository before a stage; no process runs, and nothing else is on the disk."""
        self._copies[stage] = self.root / f"before {stage}"
        shutil.copytree(self.project, self._copies[stage], symlinks=True)

    @property
    def stages(self) -> list[str]:
        """Those before which there is a copy, in their order."""
        return list(self._copies)

    def restore(self, stage: str) -> None:
        for folder in (self.project, self.home):
            shutil.rmtree(folder, ignore_errors=True)
        self.told.unlink(missing_ok=True)
        shutil.copytree(self._copies[stage], self.project, symlinks=True)

    def session(self) -> SessionRecord | None:
        """The session as its journal has it, if there is one."""
        path = self.project / STATE / NAME
        if not path.exists():
            return None
        journal = Journal(path, self.scenario.teams)
        try:
            entries = [entry for session in journal.sessions() for entry in journal.read(session)]
            held = journal.held()
        finally:
            journal.close()
        if not entries:
            return None
        team = self.scenario.teams[entries[0].event.session.team]
        state = replay(entries, team)
        return SessionRecord(state, entries, team, held) if state else None
