"""Whether an environment of the user has what a project declares."""

import json
from pathlib import Path

import pytest

from iterdev.host.environments.python.installed import (
    PythonEnvironment,
    copied_folders,
    missing,
    satisfies_python,
    virtual_environment,
)
from iterdev.host.environments.python.project import PythonProject
from iterdev.host.environments.python.requirement_groups import Group


@pytest.fixture
def environment(tmp_path: Path) -> PythonEnvironment:
    """With six 1.16 and requests 2.0, which needs urllib3, which is not there."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name, version, needs in (("six", "1.16", ""), ("requests", "2.0", "urllib3>=1")):
        folder = packages / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        needed = f"Requires-Dist: {needs}\n" if needs else ""
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
    return PythonEnvironment(prefix=tmp_path, version="3.11.7", packages=packages, kind="virtual")


@pytest.mark.parametrize(
    ("requirement", "lacking"),
    [
        ("six", []),
        ("Six>=1.10", []),
        ("six>=2", ["six>=2"]),
        ("attrs", ["attrs"]),
        ("attrs; python_version < '3.8'", []),
        ("requests", ["urllib3>=1"]),
        ("-e ./other", []),
        ("git+https://example.org/x", []),
    ],
)
def test_requirements_are_compared_with_what_is_installed(
    environment: PythonEnvironment, tmp_path: Path, requirement: str, lacking: list[str]
) -> None:
    project = PythonProject(runtime=(), groups=(Group(name="tests", requirements=(requirement,)),))

    assert missing(project, tmp_path, environment) == lacking


def test_a_package_of_the_repository_that_a_list_names_by_its_folder_has_to_be_installed(
    environment: PythonEnvironment,
) -> None:
    project = PythonProject(runtime=("six",), own_packages=("shop", "requests"))

    assert missing(project, environment.prefix, environment) == ["shop", "urllib3>=1"]


def test_packages_that_are_required_on_many_ways_are_looked_at_once(environment: PythonEnvironment) -> None:
    layers = 40
    for layer in range(layers):
        needs = [f"p{layer + 1}-{number}" for number in range(2)] if layer < layers - 1 else ["nowhere"]
        for number in range(2):
            folder = environment.packages / f"p{layer}_{number}-1.dist-info"
            folder.mkdir()
            text = f"Metadata-Version: 2.1\nName: p{layer}-{number}\nVersion: 1\n"
            (folder / "METADATA").write_text(text + "".join(f"Requires-Dist: {need}\n" for need in needs))

    assert missing(PythonProject(runtime=("p0-0",)), environment.prefix, environment) == ["nowhere"]


def test_an_extra_of_a_package_that_stands_for_other_extras_is_looked_into(environment: PythonEnvironment) -> None:
    folder = environment.packages / "tool-1.dist-info"
    folder.mkdir()
    needs = "Requires-Dist: tool[fast]; extra == 'all'\nRequires-Dist: nowhere; extra == 'fast'\n"
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tool\nVersion: 1\n{needs}")

    assert missing(PythonProject(runtime=("tool[all]",)), environment.prefix, environment) == [
        "nowhere; extra == 'fast'"
    ]


def test_the_fingerprint_changes_when_a_package_is_installed(environment: PythonEnvironment) -> None:
    before = environment.fingerprint()

    (environment.packages / "attrs-1.dist-info").mkdir()

    assert environment.fingerprint() != before


@pytest.mark.parametrize(
    ("version", "requires", "fits"),
    [("3.11.7", ">=3.9", True), ("3.8.1", ">=3.9", False), ("3.11.7", "", True), ("3.11.7", "nonsense", True)],
)
def test_an_interpreter_has_to_fit_the_project(version: str, requires: str, *, fits: bool) -> None:
    assert satisfies_python(version, requires) is fits


def test_a_folder_that_only_looks_like_an_environment_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /nowhere\nversion = 3.11.7\n")

    assert virtual_environment(tmp_path) is None


@pytest.mark.parametrize(("file", "linked"), [("fast/__init__.py", True), ("fast/_speed.so", False)])
def test_a_copy_of_a_package_of_the_tree_is_linked_to_its_folder_unless_it_is_compiled(
    tmp_path: Path, file: str, *, linked: bool
) -> None:
    folder, packages = tmp_path / "tree" / "libs" / "fast", tmp_path / "site-packages"
    metadata = packages / "fast-1.0.dist-info"
    for one in (folder, metadata):
        one.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fast\nVersion: 1.0\n")
    (metadata / "RECORD").write_text(f"{file},,\n")
    (metadata / "direct_url.json").write_text(json.dumps({"url": folder.as_uri(), "dir_info": {}}))
    environment = PythonEnvironment(prefix=tmp_path, version="3.11.2", packages=packages, kind="virtual")

    found = list(copied_folders(environment, tmp_path / "tree"))

    assert found == ([folder] if linked else [])
