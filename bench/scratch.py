"""Scratch repositories in which orchestrators work, and an environment without anything of the user's."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

WHO = "[user]\n\tname = Bench\n\temail = bench@example.invalid\n"


class Scratch(Struct, frozen=True):
    """A repository with one commit, and a home beside it."""

    top: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "ITERDEV_", "PYTHON"))
        }
        return kept | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "ITERDEV_HOME": str(self.home / "iterdev"),
            "TMPDIR": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def run(self, *argv: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
        """What a command says; one that fails ends the benchmark with its last words."""
        done = subprocess.run(
            argv, cwd=cwd or self.top, env=environment or self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, argv))} failed with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout

    def git(self, *args: str | Path, cwd: Path | None = None) -> str:
        return self.run("git", *args, cwd=cwd)


def make(root: Path, **files: str) -> Scratch:
    """A fresh repository whose only commit holds the files."""
    scratch = Scratch(root / "project", root / "home")
    for folder in (scratch.top, scratch.home):
        folder.mkdir(parents=True)
    (scratch.home / ".gitconfig").write_text(WHO)
    for name, text in files.items():
        (scratch.top / name).write_text(text)
    scratch.git("init", "-q", "-b", "main")
    scratch.git("add", "-A")
    scratch.git("commit", "-q", "--allow-empty", "-m", "start")
    return scratch
