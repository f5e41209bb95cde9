"""The environment of a change, with the real command: tests run against the change, without configuration."""

import os
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.environments.conftest import BACKEND, PYPROJECT, RUNNER, TEST, install_editable, new_environment
from tests.session_files import document

WRONG = "def add(a, b):\n    return a - b\n"


@pytest.fixture
def package(repo: Repo) -> Repo:
    """A package in src/, whose user has an environment with the checkout installed in editable mode."""
    configuration = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", configuration.replace('test = "true"', ""))
    repo.write("pyproject.toml", PYPROJECT.replace("{folder}", "src/"))
    repo.write("src/calc/__init__.py", "def add(a, b):\n    return a + b\n")
    repo.write("tests/test_calc.py", TEST)
    repo.write(".gitignore", ".venv\n")
    repo.commit("a package")
    install_editable(new_environment(repo.path / ".venv", *RUNNER, *BACKEND), repo.path)
    repo.env |= {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    return repo


def active(repo: Repo) -> dict[str, str]:
    """The variables of a shell in which the user's environment is active."""
    environment = repo.path / ".venv"
    return {"VIRTUAL_ENV": str(environment), "PATH": f"{environment}/bin{os.pathsep}{repo.env['PATH']}"}


@pytest.mark.parametrize("link", ["", 'link = [".venv"]', 'copy = [".venv"]'])
def test_a_change_that_breaks_the_code_fails_although_the_checkout_is_installed(package: Repo, link: str) -> None:
    configuration = (package.path / "iterdev.toml").read_text(encoding="utf-8")
    package.write("iterdev.toml", configuration.replace("[project]", f"[project]\n{link}"))
    package.commit("configured")
    package.behave(developer={"write": {"src/calc/__init__.py": WRONG}}, tester={"result": {"status": "failed"}})

    done = package.iterdev("run", "-y", "--pipeline", "patch", "Speed it up", **active(package))

    assert done.returncode == 1, done.stdout + done.stderr
    assert document(package.folder() / "verify" / "verify-001.json")["pass_rate"] == 0


def test_without_an_active_environment_the_tests_are_run_all_the_same(package: Repo) -> None:
    package.behave(developer={"write": {"src/calc/more.py": "x = 1\n"}})

    done = package.iterdev("run", "-y", "--pipeline", "patch", "Add more")

    assert done.returncode == 0, done.stdout + done.stderr
    assert document(package.folder() / "verify" / "verify-001.json")["pass_rate"] == 100


def test_an_environment_that_setup_makes_in_the_tree_is_no_part_of_the_change(repo: Repo) -> None:
    setup = 'setup = "python3 -m venv --without-pip .venv"'
    configuration = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    uses = 'test = "python -c \\"import sys; sys.exit(not sys.prefix.endswith(chr(46) + chr(118) + \'env\'))\\""'
    repo.write("iterdev.toml", configuration.replace('test = "true"', f"{setup}\n{uses}"))
    base = repo.commit("configured")

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    assert done.returncode == 0, done.stdout + done.stderr
    branch = f"iterdev/{repo.folder().name}"
    assert repo.git("diff", "--name-only", base, branch).splitlines() == ["DEV-001.txt"]


def test_doctor_says_what_the_environment_would_be_made_from(package: Repo) -> None:
    before = package.iterdev("doctor").stdout
    package.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    after = package.iterdev("doctor").stdout

    [line] = [line for line in before.splitlines() if "environment of Python" in line]
    assert f'a copy of your environment "{Path(package.path / ".venv").resolve()}" (not made yet)' in line
    assert "(in the cache, made in " in after
