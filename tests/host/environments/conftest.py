"""What the tests of environments share: a workspace, programs in it, and environments as a user makes them, offline."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo

from iterdev.core.errors import HostError
from iterdev.host.environments.environment import Environment, prepare
from iterdev.host.git import worktrees
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.workspaces.pool import Workspace

BASE = Path(os.path.realpath(sys.executable))
RUNNER = ("pytest", "iniconfig", "packaging", "pluggy", "pygments")
BACKEND = ("hatchling", "editables", "pathspec", "trove-classifiers", "pluggy", "packaging")
PYPROJECT = """
    [build-system]
    requires = ["hatchling"]
    build-backend = "hatchling.build"

    [project]
    name = "calc"
    version = "1.0"

    [dependency-groups]
    test = ["pytest"]

    [tool.hatch.build.targets.wheel]
    packages = ["{folder}calc"]
"""
TEST = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 1) == 3\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def run(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
    try:
        done = await anyio.run_process([*argv], cwd=cwd, env=env, check=False)
    except OSError as error:
        raise HostError(str(error)) from error
    return ProgramResult(code=done.returncode, timed_out=False, stdout=done.stdout, stderr=done.stderr)


class Bench:
    """A repository with workspaces, and the user's variables; nothing reaches a network."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self.folder = repo, folder
        self.cache = folder / "cache"
        tools = folder / "tools"
        tools.mkdir()
        (tools / "python3").symlink_to(BASE)
        offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "npm_config_offline": "true"}
        self.variables = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(repo.home), "LANG": "C.UTF-8", **offline}

    def write_package(self, folder: str = "src/") -> None:
        self.repo.write("pyproject.toml", PYPROJECT.replace("{folder}", folder))
        self.repo.write(f"{folder}calc/__init__.py", "def add(a, b):\n    return a + b\n")
        self.repo.write("tests/test_calc.py", TEST)

    def workspace(self, name: str = "one") -> Workspace:
        """A new one, at the newest commit."""
        workspace = Workspace(self.folder / name, self.folder / f"{name}-temp")
        workspace.slot.mkdir()
        worktrees.add(self.repo.path, workspace.tree, self.repo.git("rev-parse", "HEAD"))
        return workspace

    async def prepare(self, workspace: Workspace, *, trusted: bool = True, **variables: str) -> Environment:
        return await prepare(
            workspace,
            cache=self.cache,
            checkout=self.repo.path,
            trusted=trusted,
            run=run,
            variables=self.variables | variables,
        )

    def call(self, environment: Environment, workspace: Workspace, *argv: str, **more: str) -> str:
        """What a program in the workspace prints, whether it succeeds or not."""
        variables = {**self.variables, **environment.variables, "PYTHONDONTWRITEBYTECODE": "1", **more}
        program = shutil.which(argv[0], path=variables["PATH"])
        assert program
        done = subprocess.run(
            [program, *argv[1:]], cwd=workspace.tree, env=variables, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def imported_from(self, environment: Environment, workspace: Workspace, module: str = "calc") -> Path:
        """Where a program outside of the tree would get a module from."""
        code = f"import os; os.chdir('/'); import sys; sys.path.remove(''); import {module}; print({module}.__file__)"
        return Path(self.call(environment, workspace, "python", "-c", code).strip())


@pytest.fixture
def bench(project: Repo, tmp_path: Path) -> Bench:
    return Bench(project, tmp_path)


def new_environment(prefix: Path, *names: str) -> Path:
    """A virtual environment with packages of the one that runs the tests."""
    subprocess.run([BASE, "-m", "venv", "--without-pip", prefix], check=True)
    packages = next(prefix.glob("lib/python3*/site-packages"))
    for name in dict.fromkeys(names):
        for file in distribution(name).files or ():
            source, target = Path(str(file.locate())), packages / file
            if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    if "pytest" in names:
        script = prefix / "bin" / "pytest"
        script.write_text(f"#!{prefix}/bin/python\nimport sys\nfrom pytest import main\nsys.exit(main())\n")
        script.chmod(0o755)
    return prefix


def install_editable(prefix: Path, project: Path) -> None:
    """As a user does it: `pip install -e .`."""
    install(prefix, "-e", str(project))


def install(prefix: Path, *words: str) -> None:
    pip = [BASE, "-m", "pip", "--python", prefix / "bin" / "python", "install", "--quiet", "--no-deps"]
    options = ["--no-index", "--no-build-isolation", "--disable-pip-version-check", *words]
    subprocess.run([*pip, *options], check=True, capture_output=True)
