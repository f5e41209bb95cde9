"""The place where a story is played: made once, remembered at every quiet moment, and restored for each kill."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.crash.stories import SETTINGS, Story

from iterdev.core.session.state import State
from iterdev.core.types import Engine
from iterdev.engine.repository import Repository


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
        """Keeps what lies on the disk before a chapter begins."""
        self._moments[chapter] = self.root / f"before {chapter}"
        shutil.copytree(self.project, self._moments[chapter], symlinks=True)

    def restore(self, chapter: str) -> None:
        for folder in (self.project, self.home):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._moments[chapter], self.project, symlinks=True)

    def repository(self) -> Repository:
        return Repository(self.project, self.story.teams)

    def state(self) -> State | None:
        """Where the session stands, if there is one."""
        repository = self.repository()
        try:
            return repository.state(repository.newest()) if repository.sessions() else None
        finally:
            repository.close()
