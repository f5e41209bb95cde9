"""The environment of a workspace as a whole: its key, its record, and the tools that need only a place."""

from pathlib import Path

import pytest
from tests.host.environments.conftest import BACKEND, RUNNER, Bench, install_editable, new_environment

from iterdev.host.environments.environment import current, key, made_by_setup, plans
from iterdev.host.git import worktrees
from iterdev.host.workspaces import untracked_files

pytestmark = pytest.mark.anyio


def tool(bench: Bench, name: str, script: str) -> None:
    path = bench.folder / "tools" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_key_changes_with_the_dependencies_and_not_with_the_code(bench: Bench) -> None:
    bench.write_package()
    tree, variables = bench.repo.path, bench.variables
    before = key(tree, variables)

    bench.repo.write("src/calc/__init__.py", "x = 1\n")
    with_code = key(tree, variables)
    bench.repo.write("requirements-test.txt", "pytest\n")
    bench.repo.write("package.json", '{"dependencies": {"ms": "2"}}')

    assert with_code == before
    assert key(tree, variables) != before


async def test_the_plan_says_what_would_be_used_and_whether_it_is_cached(bench: Bench) -> None:
    bench.write_package()
    bench.repo.commit()
    install_editable(new_environment(bench.repo.path / ".venv", *RUNNER, *BACKEND), bench.repo.path)
    tree, variables = bench.repo.path, bench.variables

    [before] = plans(tree, cache=bench.cache, checkout=tree, variables=variables)
    await bench.prepare(bench.workspace())
    [after] = plans(tree, cache=bench.cache, checkout=tree, variables=variables)

    assert "your environment" in before.described
    assert (before.cached, after.cached) == (False, True)


async def test_the_environment_of_a_workspace_is_remembered(bench: Bench) -> None:
    bench.repo.write("Cargo.toml", '[package]\nname = "x"\n')
    bench.repo.commit()
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert current(workspace) == environment
    target = Path(environment.variables["CARGO_TARGET_DIR"])
    assert target.is_relative_to(workspace.private)


async def test_a_target_folder_that_git_ignores_stays_where_cargo_puts_it(bench: Bench) -> None:
    bench.repo.write("Cargo.toml", '[package]\nname = "x"\n')
    bench.repo.write(".gitignore", "/target\n")
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace())

    assert environment.variables == {}


async def test_gems_are_installed_beside_the_tree_and_only_once(bench: Bench) -> None:
    bench.repo.write("Gemfile", "gem 'rspec'\n")
    base = bench.repo.commit()
    tool(bench, "bundle", '[ $1 = install ] && mkdir -p "$BUNDLE_PATH" && echo x >> "$BUNDLE_PATH/calls"')
    workspace = bench.workspace()

    await bench.prepare(workspace)
    environment = await bench.prepare(workspace)

    assert (Path(environment.variables["BUNDLE_PATH"]) / "calls").read_text() == "x\n"
    assert worktrees.is_untouched(workspace.tree, base)


async def test_gems_that_the_machine_has_are_not_installed_again(bench: Bench) -> None:
    bench.repo.write("Gemfile", "gem 'rspec'\n")
    bench.repo.commit()
    tool(bench, "bundle", "[ $1 = check ]")

    environment = await bench.prepare(bench.workspace())

    assert (environment.variables, environment.problems, environment.new) == ({}, (), ())
    assert "installed on this machine" in environment.described[0]


async def test_packages_of_composer_are_in_the_tree_and_no_change(bench: Bench) -> None:
    bench.repo.write("composer.json", "{}")
    base = bench.repo.commit()
    tool(bench, "composer", "mkdir vendor; echo > vendor/autoload.php")
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert environment.problems == ()
    assert (workspace.tree / "vendor" / "autoload.php").exists()
    assert worktrees.is_untouched(workspace.tree, base)


async def test_where_composer_cannot_install_the_users_packages_are_copied(bench: Bench) -> None:
    bench.repo.write("composer.json", "{}")
    bench.repo.write(".gitignore", "vendor\n")
    bench.repo.commit()
    bench.repo.write("vendor/autoload.php", f"<?php require '{bench.repo.path}/src/calc.php';")
    tool(bench, "composer", "echo 'Could not reach host' >&2; exit 1")
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert "`setup` under [project]" in environment.problems[0]
    assert "a copy of your vendor" in environment.described[0]
    assert f"{workspace.tree}/src/calc.php" in (workspace.tree / "vendor/autoload.php").read_text()


async def test_without_a_network_the_classes_of_a_php_project_can_be_loaded(bench: Bench) -> None:
    bench.repo.write("composer.json", "{}")
    bench.repo.commit()
    offline = 'test "$1" = dump-autoload || { echo "Could not reach host" >&2; exit 1; }'
    tool(bench, "composer", f"{offline}; mkdir vendor; echo > vendor/autoload.php")
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert (workspace.tree / "vendor" / "autoload.php").exists()
    assert "Could not reach host" in environment.problems[0]


async def test_a_tool_that_is_not_installed_is_named(bench: Bench) -> None:
    bench.repo.write("Gemfile", "gem 'rspec'\n")
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace(), PATH=str(bench.folder / "tools"))

    assert "`bundle` is not installed" in environment.problems[0]


def test_an_environment_that_setup_made_is_used_and_is_no_change(bench: Bench) -> None:
    base = bench.repo.git("rev-parse", "HEAD")
    workspace = bench.workspace()

    with untracked_files.ignoring_new_files(workspace.tree):
        new_environment(workspace.tree / ".venv")
    environment = made_by_setup(workspace, bench.variables)

    assert environment.variables["PATH"].startswith(f"{workspace.tree}/.venv/bin:")
    assert worktrees.is_untouched(workspace.tree, base)


def test_setup_that_makes_no_environment_leaves_the_variables_as_they_are(bench: Bench) -> None:
    assert made_by_setup(bench.workspace(), bench.variables).variables == {}
