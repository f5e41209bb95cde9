"""The place where a story is played: made once, remembered at every quiet moment, and restored for each kill."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from tests.crash.stories import SETTINGS, Story

from iterdev.core.session.events import Entry
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.core.types import Engine
from iterdev.engine.repository import STATE
from iterdev.store.journal import NAME, Journal
from iterdev.teams.contract import Team


class SessionRecord(Struct, frozen=True):
    """Where the session stands, and the entries that say so."""

    state: State
    entries: Sequence[Entry]
    team: Team


class Scratch:
    def __init__(self, root: Path, engine: Engine, story: Story) -> None:
        self.root, self.engine, self.story = root, engine, story
        self.home = root / "home"
        self.project = root / "project"
        self._moments: dict[str, Path] = {}
        os.environ |= {"ITERDEV_HOME": str(self.home), "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        root.mkdir(parents=True, exist_ok=True)
        (root / "agent.sh").write_text(story.agent)
        self.project.mkdir()
        (self.project / "README.md").write_text("# Sample\n")
        (self.project / "iterdev.toml").write_text(SETTINGS.format(agent=root / "agent.sh"))
        who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        for args in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-q", "-m", "start"]):
            subprocess.run(["git", *args], cwd=self.project, check=True)

    def remember(self, chapter: str) -> None:
        """Keeps what lies on the disk before a chapter begins; no process is at work."""
        self._moments[chapter] = self.root / f"before {chapter}"
        shutil.copytree(self.project, self._moments[chapter], symlinks=True)

    @property
    def chapters(self) -> list[str]:
        """Those that are remembered, in their order."""
        return list(self._moments)

    def restore(self, chapter: str) -> None:
        for folder in (self.project, self.home):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._moments[chapter], self.project, symlinks=True)

    def session(self) -> SessionRecord | None:
        """The session as its journal has it, if there is one."""
        path = self.project / STATE / NAME
        if not path.exists():
            return None
        journal = Journal(path, self.story.teams)
        try:
            entries = [entry for session in journal.sessions() for entry in journal.read(session)]
        finally:
            journal.close()
        if not entries:
            return None
        team = self.story.teams[entries[0].event.session.team]
        state = replay(entries, team)
        return SessionRecord(state, entries, team) if state else None
