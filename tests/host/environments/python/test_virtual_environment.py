"""The virtual environment of a workspace: whose code it imports, and what it is made from."""

import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.host.environments.conftest import (
    BACKEND,
    PYPROJECT,
    RUNNER,
    Bench,
    install,
    install_editable,
    new_environment,
)

from iterdev.host.git import worktrees
from iterdev.host.workspaces import untracked_files

pytestmark = pytest.mark.anyio

BROKEN = "def add(a, b):\n    return a - b\n"


@pytest.mark.parametrize("folder", ["src/", ""])
async def test_the_users_environment_is_copied_and_imports_the_code_of_the_workspace(bench: Bench, folder: str) -> None:
    bench.write_package(folder)
    bench.repo.commit()
    user = new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    install_editable(user, bench.repo.path)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace, VIRTUAL_ENV=str(user))
    (workspace.tree / folder / "calc" / "__init__.py").write_text(BROKEN)
    output = bench.call(environment, workspace, "pytest", "-q")

    assert environment.problems == ()
    assert bench.imported_from(environment, workspace).is_relative_to(workspace.tree)
    assert "1 failed" in output
    assert "your environment" in environment.described[0]


async def test_without_an_active_environment_the_one_in_the_checkout_is_used(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    install_editable(new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND), bench.repo.path)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert "1 passed" in bench.call(environment, workspace, "python", "-m", "pytest", "-q")


@pytest.mark.parametrize("key", ["links", "copies"])
async def test_an_environment_that_was_brought_from_the_checkout_is_replaced(bench: Bench, key: str) -> None:
    bench.write_package()
    bench.repo.commit()
    install_editable(new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND), bench.repo.path)
    workspace = bench.workspace()
    brought: dict[str, list[str]] = {"links": [], "copies": []} | {key: [".venv"]}
    untracked_files.bring(bench.repo.path, workspace.tree, **brought)

    await bench.prepare(workspace)
    (workspace.tree / "src" / "calc" / "__init__.py").write_text(BROKEN)

    python = str(workspace.tree / ".venv" / "bin" / "python")
    assert "1 failed" in bench.call(await bench.prepare(workspace), workspace, python, "-m", "pytest", "-q")
    assert (bench.repo.path / ".venv" / "pyvenv.cfg").exists()


async def test_a_copy_of_the_project_among_the_users_packages_is_not_what_is_imported(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    user = new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    packages = next(user.glob("lib/python3*/site-packages"))
    shutil.copytree(bench.repo.path / "src" / "calc", packages / "calc")
    metadata = packages / "calc-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: calc\nVersion: 1.0\n")
    (metadata / "RECORD").write_text("calc/__init__.py,,\ncalc-1.0.dist-info/METADATA,,\ncalc-1.0.dist-info/RECORD,,\n")
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert bench.imported_from(environment, workspace).is_relative_to(workspace.tree)
    assert (packages / "calc" / "__init__.py").exists()


async def test_a_package_of_the_repository_that_was_installed_as_a_copy_is_imported_from_the_workspace(
    bench: Bench,
) -> None:
    bench.write_package("libs/calc/src/")
    (bench.repo.path / "pyproject.toml").unlink()
    bench.repo.write("libs/calc/pyproject.toml", PYPROJECT.replace("{folder}", "src/"))
    bench.repo.write("requirements.txt", "./libs/calc\npytest\n")
    bench.repo.commit()
    user = new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    install(user, str(bench.repo.path / "libs" / "calc"))
    one, two = bench.workspace("one"), bench.workspace("two")

    for workspace in (one, two):
        environment = await bench.prepare(workspace)
        (workspace.tree / "libs" / "calc" / "src" / "calc" / "__init__.py").write_text(BROKEN)

        assert environment.problems == ()
        assert bench.imported_from(environment, workspace).is_relative_to(workspace.tree)
        assert "1 failed" in bench.call(environment, workspace, "pytest", "-q")


async def test_a_second_workspace_gets_a_copy_from_the_cache_that_imports_its_own_code(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    install_editable(new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND), bench.repo.path)
    one, two = bench.workspace("one"), bench.workspace("two")
    await bench.prepare(one)

    environment = await bench.prepare(two)

    assert "from the cache" in environment.described[0]
    assert bench.imported_from(environment, two).is_relative_to(two.tree)
    assert "1 passed" in bench.call(environment, two, "pytest", "-q")


async def test_an_agent_that_edits_a_package_in_place_changes_neither_the_users_nor_the_cache(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    user = new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    install_editable(user, bench.repo.path)
    workspace = bench.workspace()
    await bench.prepare(workspace)
    edited = next(workspace.private.glob("environments/python/lib/python3*/site-packages/pytest/__init__.py"))
    before = edited.read_text()

    with edited.open("a") as file:
        file.write("raise SystemExit(0)\n")

    assert next(user.glob("lib/python3*/site-packages/pytest/__init__.py")).read_text() == before
    assert (
        next(bench.cache.glob("*/content/python/lib/python3*/site-packages/pytest/__init__.py")).read_text() == before
    )
    await bench.prepare(workspace)
    assert edited.read_text() == before


async def test_what_an_agent_declared_stays_in_its_workspace(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    install_editable(new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND), bench.repo.path)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace, trusted=False)

    assert not list(bench.cache.glob("python-*"))
    assert "1 passed" in bench.call(environment, workspace, "pytest", "-q")
    assert "made before in this workspace" in (await bench.prepare(workspace, trusted=False)).described[0]


async def test_nothing_of_it_is_a_change_in_the_eyes_of_git(bench: Bench) -> None:
    _write_generating_package(bench)
    bench.repo.write("tracked.txt", "old\n")
    base = bench.repo.commit()
    new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert environment.problems == ()
    assert (workspace.tree / "tracked.txt").read_text() == "old\n"
    assert (workspace.tree / "src" / "calc" / "_version.py").exists()
    assert worktrees.is_untouched(workspace.tree, base)


async def test_requirements_are_installed_when_no_environment_of_the_user_has_them(
    bench: Bench, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with ZipFile(wheels / "helper-1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("helper.py", "NUMBER = 3\n")
        wheel.writestr("helper-1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: helper\nVersion: 1.2\n")
        wheel.writestr("helper-1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("helper-1.2.dist-info/RECORD", "")
    bench.repo.write("requirements.txt", "helper>=1\n")
    bench.repo.commit()
    workspace = bench.workspace()

    environment = await bench.prepare(workspace, PIP_FIND_LINKS=str(wheels))

    assert environment.problems == ()
    assert "made from requirements.txt" in environment.described[0]
    assert "by pip in " in environment.described[0]
    assert environment.described[0].endswith(": 1 package, none downloaded: helper@1.2")
    assert "3" in bench.call(environment, workspace, "python", "-c", "import helper; print(helper.NUMBER)")


async def test_what_cannot_be_installed_is_told_with_the_command_and_its_error(bench: Bench) -> None:
    bench.repo.write("requirements.txt", "no-such-package-anywhere==1\n")
    bench.repo.commit()
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    [problem] = environment.problems
    assert "pip install" in problem
    assert "no-such-package-anywhere" in problem
    assert "`setup` under [project]" in problem
    assert list(bench.cache.glob("python-*")) == [] or environment.variables


async def test_a_project_whose_build_fails_is_imported_from_its_sources(bench: Bench) -> None:
    bench.write_package()
    text = bench.repo.path.joinpath("pyproject.toml").read_text().replace("hatchling.build", "no_such_backend")
    bench.repo.write("pyproject.toml", text)
    bench.repo.commit()
    new_environment(bench.repo.path / ".venv", *RUNNER)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert "from its sources" in environment.problems[0]
    assert bench.imported_from(environment, workspace).is_relative_to(workspace.tree)
    version = "from importlib.metadata import version; print(version('calc'))"
    assert "1.0" in bench.call(environment, workspace, "python", "-c", version)


async def test_a_file_that_the_build_generated_is_in_every_workspace(bench: Bench) -> None:
    _write_generating_package(bench)
    bench.repo.commit()
    new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    await bench.prepare(bench.workspace("one"))
    two = bench.workspace("two")

    environment = await bench.prepare(two)

    assert "from the cache" in environment.described[0]
    assert (two.tree / "src" / "calc" / "_version.py").read_text() == "version = '7'\n"


async def test_a_project_that_compiles_into_its_tree_is_built_in_every_workspace(bench: Bench) -> None:
    _write_generating_package(bench, result="_native.so")
    text = bench.repo.path.joinpath("pyproject.toml").read_text()
    bench.repo.write("pyproject.toml", text.replace('requires = ["hatchling"]', 'requires = ["hatchling", "cython"]'))
    bench.repo.write("src/calc/native.c", "one\n")
    bench.repo.commit()
    new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND)
    await bench.prepare(bench.workspace("one"))
    two = bench.workspace("two")
    await bench.prepare(two)
    compiled = two.tree / "src" / "calc" / "_native.so"
    compiled.write_text("stale")

    await bench.prepare(two)
    unchanged = compiled.read_text()
    (two.tree / "src" / "calc" / "native.c").write_text("two\n")
    await bench.prepare(two)

    assert unchanged == "stale"
    assert compiled.read_text() == "version = '7'\n"


async def test_a_project_without_declarations_uses_the_python_that_is_there(bench: Bench) -> None:
    bench.repo.write("calc.py", "def add(a, b):\n    return a + b\n")
    bench.repo.write("test_calc.py", "import unittest\n")
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace())

    assert environment.variables == {}
    assert environment.problems == ()


async def test_a_repository_of_another_kind_costs_nothing(bench: Bench) -> None:
    bench.repo.write("main.go", "package main\n")
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace())

    assert environment.described == ()
    assert not bench.cache.exists()


def _write_generating_package(bench: Bench, result: str = "_version.py") -> None:
    """A project whose build writes a file beside its modules, and into a tracked one."""
    bench.write_package()
    with bench.repo.path.joinpath("pyproject.toml").open("a") as file:
        file.write('[tool.hatch.build.hooks.custom]\npath = "build_hook.py"\n')
    bench.repo.write(
        "build_hook.py",
        f"""
        from pathlib import Path
        from hatchling.builders.hooks.plugin.interface import BuildHookInterface

        class Hook(BuildHookInterface):
            def initialize(self, version, build_data):
                Path("src/calc/{result}").write_text("version = '7'\\n")
                Path("tracked.txt").write_text("new\\n")
        """,
    )
