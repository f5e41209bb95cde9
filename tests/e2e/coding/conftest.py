"""Scratch repositories of a user who has real coding agents on the PATH, all of which ask the scripted model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.clis import find_cli
from tests.conftest import make_repo

from iterdev.agents.scripted.script import Script, load
from iterdev.conformance.agent_setup import variables
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.core.results import Usage
from iterdev.core.session.events import AttemptEnded
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal

CLIS = ("claude", "codex", "gemini", "qwen")
HERE = Path(__file__).parent
PATIENCE = 300.0
"""Seconds for a run, on a machine that has other things to do."""
KEY = "a-key-of-nobody"

SETTINGS = """
[run]
agent = "{agent}"

[project]
test = "python3 -m unittest -q"

# A home of its own says that the key is the login, and whom not to tell of the run.
[agents.gemini]
home = "{home}/gemini"
model = "gemini-2.5-pro"

[agents.qwen]
home = "{home}/qwen"
"""


def script(name: str) -> Script:
    return load(HERE / f"{name}.toml", "model")


class Studio:
    """One scratch repository, and the coding agents of its user."""

    def __init__(self, root: Path, agent: str) -> None:
        self.repo = make_repo(root)
        programs = root / "bin"
        programs.mkdir()
        for name in CLIS:
            (programs / name).symlink_to(find_cli(name).resolve())
        self.repo.env["PATH"] = f"{programs}:{self.repo.env['PATH']}"
        self.configure(SETTINGS.format(agent=agent, home=root))

    def configure(self, text: str) -> None:
        self.repo.write("iterdev.toml", text)
        self.repo.commit("the agents")

    @contextmanager
    def asking(self, script: Script, key: str = KEY) -> Iterator[ModelServer]:
        """All agents ask the model that plays the script, with this key; an empty one is no login."""
        with serving(script) as model:
            for name in CLIS:
                known = variables(name, model.url, key)
                self.repo.env |= {variable: value for variable, value in known.items() if value}
            yield model

    @property
    def session(self) -> str:
        return self.repo.folder().name

    def landed(self, path: str) -> str:
        """A file as it is on the branch of the session."""
        return self.repo.git("show", f"iterdev/{self.session}:{path}")

    def authors(self) -> list[tuple[str, str]]:
        """Who made each commit of the session, and what it is called; the newest one first."""
        lines = self.repo.git("log", "--format=%an\t%s", f"main..iterdev/{self.session}").splitlines()
        return [(line.split("\t")[0], line.split("\t")[1]) for line in lines]

    def usage(self) -> dict[str, Usage]:
        """What each attempt has used, by its task."""
        journal = Journal(self.repo.path / ".workflow" / "iterdev.db")
        try:
            events = [entry.event for entry in journal.read(SessionId(self.session))]
        finally:
            journal.close()
        return {event.task: event.outcome.usage for event in events if isinstance(event, AttemptEnded)}


@pytest.fixture
def studio(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Studio:
    # Not in the folder of the test, whose long name is too much for the path of a socket.
    return Studio(tmp_path_factory.mktemp("s"), agent)
