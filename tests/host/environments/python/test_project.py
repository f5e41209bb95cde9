"""What is read from the files in which Python projects declare their dependencies."""

# ruff: noqa: E501 - a case of a table is a line

from pathlib import Path
from textwrap import dedent

import pytest

from iterdev.host.environments.python.project import PythonProject, read, source_roots
from iterdev.host.environments.python.requirement_groups import requirements
from iterdev.host.environments.python.versions import pins

BUILD = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "calc"\nversion = "1"\n'
TESTS = {"tests/test_a.py": "def test_a(): pass\n"}


def project(folder: Path, files: dict[str, str]) -> PythonProject:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    found = read(folder)
    assert found
    return found


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": BUILD + '[project.optional-dependencies]\ntest = ["pytest>=8"]\ndocs = ["x"]'}, ["pytest>=8"]),
        ({"pyproject.toml": BUILD + '[project.optional-dependencies]\ndev = ["calc[tests]", "mock"]\ntests = ["pytest"]'}, ["pytest", "mock", "pytest"]),
        ({"pyproject.toml": BUILD + '[dependency-groups]\ndev = [{include-group = "more"}]\nmore = ["pytest", "six"]'}, ["pytest", "six"]),
        ({"pyproject.toml": BUILD + '[dependency-groups]\ndev = ["pytest", "sphinx", "mypy==1.0", "pre-commit"]'}, ["pytest"]),
        ({"pyproject.toml": '[tool.poetry]\nname = "c"\n[tool.poetry.group.test.dependencies]\npytest = "^8.1"\n'}, ["pytest>=8.1,<9"]),
        ({"pyproject.toml": '[tool.poetry]\nname = "c"\n[tool.poetry.dev-dependencies]\npytest = {version = "~7.2", extras = ["x"]}\n'}, ["pytest[x]>=7.2,<7.3"]),
        ({"pyproject.toml": BUILD + '[tool.pdm.dev-dependencies]\ntest = ["pytest"]'}, ["pytest"]),
        ({"pyproject.toml": BUILD + '[tool.hatch.envs.test]\ndependencies = ["pytest", "{root:uri}/x"]'}, ["pytest"]),
        ({"setup.py": 'from setuptools import setup\nT = ["pytest", "six"]\nsetup(name="c", extras_require={"testing": T})'}, ["pytest", "six"]),
        ({"setup.cfg": "[metadata]\nname = c\n[options]\n[options.extras_require]\ntests =\n    pytest\n    six>1\n"}, ["pytest", "six>1"]),
        ({"pyproject.toml": BUILD, "requirements-dev.txt": "-r more.txt\nsix # why\n", "more.txt": "pytest\n"}, ["pytest", "six"]),
        ({"pyproject.toml": BUILD, "requirements/tests.txt": "pytest\n", "requirements/dev.txt": "wheel\n"}, ["pytest"]),
        ({"pyproject.toml": BUILD, "test-requirements.txt": "pytest==8.0 \\\n    --hash=sha256:0\n"}, ["pytest==8.0"]),
        ({"pyproject.toml": BUILD, "tox.ini": "[testenv]\ndeps =\n  pytest\n  py39: six\n  -r{toxinidir}/x.txt\n", "x.txt": "attrs\n"}, ["pytest", "six", "attrs"]),
        ({"pyproject.toml": BUILD + '[tool.tox.env_run_base]\ndeps = ["pytest", "six"]'}, ["pytest", "six"]),
        ({"pyproject.toml": BUILD, "noxfile.py": 'def tests(session):\n    session.install("pytest", "six")\n    session.install("-e", ".")\n'}, ["pytest", "six"]),
        ({"pyproject.toml": BUILD + '[project.optional-dependencies]\nfast = ["six"]', "tox.ini": "[testenv]\nextras = fast\ndeps = pytest\n"}, ["six", "pytest"]),
        ({"pyproject.toml": BUILD + '[tool.pytest.ini_options]\naddopts = "--cov=calc -n auto"'}, ["pytest", "pytest-cov", "pytest-xdist"]),
        ({"pyproject.toml": BUILD, "tests/test_b.py": "import hypothesis, requests\nfrom unittest import mock\n"}, ["hypothesis", "pytest"]),
        ({"requirements.txt": "flask\n"}, ["flask", "pytest"]),
        ({}, ["pytest"]),
    ],
)  # fmt: skip
def test_the_requirements_of_the_tests_are_found(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    found = project(tmp_path, TESTS | files)

    assert list(requirements(found.groups, tmp_path)) == expected


@pytest.mark.parametrize(
    ("files", "runtime"),
    [
        ({"pyproject.toml": BUILD + 'dependencies = ["six"]'}, ("six",)),
        ({"setup.py": 'import setuptools\nsetuptools.setup(name="c", install_requires=["six>=1"])'}, ("six>=1",)),
        ({"setup.cfg": "[metadata]\nname = c\n[options]\ninstall_requires =\n  six\n  attrs\n"}, ("six", "attrs")),
        ({"pyproject.toml": '[tool.poetry]\nname = "c"\n[tool.poetry.dependencies]\npython = "^3.9"\nsix = "*"'}, ("six",)),
        ({"pyproject.toml": BUILD + 'dynamic = ["dependencies"]\n[tool.setuptools.dynamic]\ndependencies = {file = "r.txt"}', "r.txt": "six\n"}, ("six",)),
    ],
)  # fmt: skip
def test_the_dependencies_of_the_project_are_found(
    tmp_path: Path, files: dict[str, str], runtime: tuple[str, ...]
) -> None:
    assert project(tmp_path, files).runtime == runtime


@pytest.mark.parametrize(
    ("files", "installable"),
    [
        ({"pyproject.toml": BUILD}, True),
        ({"setup.py": "from setuptools import setup\nsetup()"}, True),
        ({"pyproject.toml": '[project]\nname = "app"\nversion = "1"'}, False),
        ({"pyproject.toml": '[project]\nname = "calc"\nversion = "1"', "calc/__init__.py": ""}, True),
        ({"pyproject.toml": '[build-system]\nrequires = []\n[tool.poetry]\nname = "c"\npackage-mode = false'}, False),
        ({"requirements.txt": "six"}, False),
    ],
)
def test_a_project_that_can_be_installed_is_told_from_an_application(
    tmp_path: Path, files: dict[str, str], *, installable: bool
) -> None:
    assert project(tmp_path, files).installable is installable


@pytest.mark.parametrize("text", ["[", "\0", "name = \ud800".encode("utf-8", "replace").decode(), "= = ="])
def test_a_file_that_cannot_be_read_declares_nothing(tmp_path: Path, text: str) -> None:
    files = dict.fromkeys(("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "uv.lock"), text)

    found = project(tmp_path, TESTS | files)

    assert found.runtime == ()
    assert list(pins(tmp_path)) == []


def test_a_folder_without_python_is_no_project(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main\n")

    assert read(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("uv.lock", "version = 1\n", True),
        ("requirements-dev.txt", "pytest\nsix\n", True),
        ("pyproject.toml", BUILD.replace('"1"', '"2"'), True),
        ("pyproject.toml", BUILD + "[tool.ruff]\nline-length = 100\n", False),
        ("tests/test_a.py", "def test_b(): pass\n", False),
        ("src/calc/__init__.py", "x = 1\n", False),
    ],
)  # fmt: skip
def test_the_digest_changes_with_what_decides_the_environment(
    tmp_path: Path, name: str, text: str, *, changes: bool
) -> None:
    files = TESTS | {"pyproject.toml": BUILD, "requirements-dev.txt": "pytest\n"}
    before = project(tmp_path, files)

    after = project(tmp_path, {name: text})

    assert (after.digest != before.digest) is changes


LISTED = {
    "requirements-dev.txt": "-r base.txt\n-c pins.txt\npytest\n",
    "base.txt": "-e ./libs/shop\n",
    "pins.txt": "attrs==1\n",
    "libs/shop/pyproject.toml": BUILD,
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pins.txt", "attrs==2\n"),
        ("base.txt", "-e ./libs/shop\n-e ./libs/other\n"),
        ("libs/shop/pyproject.toml", BUILD + 'dependencies = ["attrs"]\n'),
    ],
)
def test_what_lists_of_requirements_name_decides_the_environment_too(tmp_path: Path, name: str, text: str) -> None:
    before = project(tmp_path, TESTS | LISTED)

    after = project(tmp_path, {name: text})

    assert before.own_packages == ("calc",)
    assert after.digest != before.digest


def test_a_package_that_poetry_installs_from_its_path_decides_the_environment_too(tmp_path: Path) -> None:
    poetry = '[tool.poetry]\nname = "calc"\n[tool.poetry.dependencies]\nshop = {path = "libs/shop"}\n'
    before = project(tmp_path, TESTS | {"pyproject.toml": poetry, "libs/shop/pyproject.toml": BUILD})

    after = project(tmp_path, {"libs/shop/pyproject.toml": BUILD + 'dependencies = ["attrs"]\n'})

    assert after.digest != before.digest


def test_lock_files_pin_what_they_lock_in_one_version(tmp_path: Path) -> None:
    (tmp_path / "poetry.lock").write_text('[[package]]\nname = "Six_x"\nversion = "1.2"\n')
    (tmp_path / "Pipfile.lock").write_text('{"develop": {"attrs": {"version": "==3"}}}')
    twice = '[[package]]\nname = "a"\nversion = "1"\n[[package]]\nname = "a"\nversion = "2"\n'
    own = '[[package]]\nname = "calc"\nversion = "1"\nsource = {editable = "."}\n'
    (tmp_path / "uv.lock").write_text(twice + own)

    assert list(pins(tmp_path)) == ["attrs==3", "six-x==1.2"]


@pytest.mark.parametrize(
    ("files", "roots"),
    [
        ({"src/calc/__init__.py": ""}, ["src", "."]),
        ({"calc/__init__.py": ""}, ["."]),
        ({"pyproject.toml": '[tool.setuptools.package-dir]\n"" = "code"', "code/calc.py": ""}, ["code", "."]),
        ({"setup.cfg": "[options]\npackage_dir =\n  =code\n", "code/calc.py": ""}, ["code", "."]),
    ],
)
def test_the_folders_from_which_the_project_is_imported_are_found(
    tmp_path: Path, files: dict[str, str], roots: list[str]
) -> None:
    project(tmp_path, TESTS | files)

    assert [str(root.relative_to(tmp_path)) for root in source_roots(tmp_path)] == roots


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hatch.toml", '[envs.test]\ndependencies = ["pytest"]\n'),
        ("Pipfile", '[dev-packages]\npytest = "*"\n'),
        ("tox.ini", "[testenv]\ndeps = pytest\n"),
        ("tox.toml", '[env_run_base]\ndeps = ["pytest"]\n'),
        ("noxfile.py", 'def tests(session):\n    session.install("pytest")\n'),
        ("setup.cfg", "[options]\ninstall_requires = pytest\n"),
        ("setup.py", 'from setuptools import setup\nsetup(install_requires=["pytest"])\n'),
        ("requirements.txt", "pytest\n"),
        ("test_requirements.txt", "pytest\n"),
        ("requirements/base.txt", "pytest\n"),
        ("reqs/test.txt", "pytest\n"),
        ("requirements-dev/dev.txt", "pytest\n"),
        ("etc/test_requirements.txt", "pytest\n"),
        ("testing/test_a.py", "import pytest\n"),
        ("conftest.py", "import pytest\n"),
    ],
)
def test_one_file_is_enough_to_be_a_project(tmp_path: Path, name: str, text: str) -> None:
    assert project(tmp_path, {name: text}).declares


def test_a_repository_without_such_a_file_is_no_python_project(tmp_path: Path) -> None:
    for name in ("Cargo.toml", "notes.txt", "src/main.rs"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")

    assert read(tmp_path) is None
