"""The peer: Orkestra, which does the same job, in an environment of its own that is made when it is first wanted."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

import scratch

PACKAGE = "orkestra-runtime"
PYTHONS = ("python3.14", "python3.13", "python3.12")
DRIVER = Path(__file__).with_name("orkestra_driver.py")
FAKE = 'adapter = "fake"'
WRITE = 'echo done > "${PWD##*/}.txt"; '
ANSWER = 'echo \'{"type":"result","status":"ok","final_text":"done","structured":{"approve":true}}\''
CONFIG = """
version = 1
[project]
name = "bench"
[agents.developer]
{developer}
[agents.reviewer]
{reviewer}
[director]
agent = "developer"
[policy]
max_concurrency = {concurrency}
[verify]
commands = ["true"]
[probes]
mode = "off"
"""


class Orkestra(Struct, frozen=True):
    python: Path

    @property
    def version(self) -> str:
        code = f"from importlib.metadata import version; print(version('{PACKAGE}'))"
        return _said(str(self.python), "-c", code)

    def with_its_agent(self, root: Path, lives: int, concurrency: int) -> float:
        """Seconds for all lives with the scripted agent that comes with it."""
        return self._run(root, lives, CONFIG.format(developer=FAKE, reviewer=FAKE, concurrency=concurrency))

    def with_a_shell(self, root: Path, lives: int, concurrency: int) -> float:
        """Seconds for all lives with agents as cheap as ours, so that only the orchestrators differ."""
        developer, reviewer = _external(WRITE + ANSWER), _external(ANSWER)
        return self._run(root, lives, CONFIG.format(developer=developer, reviewer=reviewer, concurrency=concurrency))

    def _run(self, root: Path, lives: int, config: str) -> float:
        repo = scratch.make(root, **{".gitignore": ".orkestra/\n", "SPEC.md": "# Bench\n"})
        (repo.top / ".orkestra").mkdir()
        (repo.top / ".orkestra" / "config.toml").write_text(config)
        return float(repo.run(self.python, "-I", DRIVER, repo.top, str(lives)))


def _external(script: str) -> str:
    return f'adapter = "external"\ncommand = ["sh", "-c", {json.dumps(script)}]'


def installed(cache: Path) -> Orkestra | str:
    """Orkestra in a private environment; or why it cannot be had."""
    found = Orkestra(cache / "orkestra" / "bin" / "python")
    if not found.python.exists():
        python = next(_pythons(), None)
        if python is None:
            return "no Python 3.12 or newer was found"
        subprocess.run([python, "-m", "venv", "--clear", str(cache / "orkestra")], check=True)
    install = [str(found.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        return f"{PACKAGE} could not be installed"
    return found


def _pythons() -> Iterator[str]:
    """Interpreters that are new enough, wherever this machine keeps them."""
    candidates = [name for name in PYTHONS if shutil.which(name)]
    if shutil.which("pyenv"):
        prefixes = (_said("pyenv", "prefix", name.removeprefix("python")) for name in PYTHONS)
        candidates += [f"{prefix}/bin/python" for prefix in prefixes if prefix]
    if shutil.which("uv"):
        candidates.append(_said("uv", "python", "find", "--no-project", ">=3.12"))
    # A pyenv shim is there for versions that are not switched on, too; so each one has to show that it works.
    return (python for python in candidates if python and _said(python, "-c", "import venv; print('works')") == "works")


def _said(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
