"""The node_modules of a workspace: who makes them, whose packages they lead to, and that git does not see them."""

import json
from pathlib import Path

import pytest
from tests.host.conftest import without_power_over_files
from tests.host.environments.conftest import Bench

from iterdev.host.environments.node import read
from iterdev.host.environments.proof import NotShown, Proven, judge_node
from iterdev.host.git import worktrees
from iterdev.host.workspaces import untracked_files

pytestmark = pytest.mark.anyio
YARN = Path(__file__).parents[3] / ".test-runners/node_modules/@yarnpkg/cli-dist/bin/yarn.js"


def write_workspaces(bench: Bench) -> str:
    """A repository with a package `calc`, and a package `app` that depends on it."""
    bench.repo.write("package.json", json.dumps({"name": "top", "private": True, "workspaces": ["packages/*"]}))
    calc = {"name": "calc", "version": "1.0.0", "main": "index.js"}
    bench.repo.write("packages/calc/package.json", json.dumps(calc))
    bench.repo.write("packages/calc/index.js", "module.exports = 'of the base'\n")
    app = {"name": "app", "version": "1.0.0", "dependencies": {"calc": "^1.0.0"}}
    bench.repo.write("packages/app/package.json", json.dumps(app))
    return bench.repo.commit()


async def test_the_packages_of_a_repository_are_linked_inside_of_the_workspace(bench: Bench) -> None:
    base = write_workspaces(bench)
    one, two = bench.workspace("one"), bench.workspace("two")
    await bench.prepare(one)
    (two.tree / "packages" / "calc" / "index.js").write_text("module.exports = 'of the change'\n")

    environment = await bench.prepare(two)

    assert "from the cache" in environment.described[0]
    assert "of the change" in bench.call(environment, two, "node", "-p", "require('calc')")
    assert "of the base" in bench.call(environment, one, "node", "-p", "require('calc')")
    assert judge_node(two.tree) == Proven()
    assert worktrees.is_untouched(one.tree, base)


async def test_linked_node_modules_that_lead_to_the_packages_of_the_checkout_are_replaced(bench: Bench) -> None:
    write_workspaces(bench)
    modules = bench.repo.path / "node_modules"
    modules.mkdir()
    (modules / "calc").symlink_to("../packages/calc")
    (modules / "absolute").symlink_to(bench.repo.path / "packages" / "calc")
    workspace = bench.workspace()
    untracked_files.bring(bench.repo.path, workspace.tree, copies=[], links=["node_modules"])
    before = judge_node(workspace.tree)

    # Without a package manager, as without a network, the user's packages are copied.
    environment = await bench.prepare(workspace, PATH=str(bench.folder / "tools"))

    assert isinstance(before, NotShown)
    assert "calc" in before.reason
    assert "a copy of your node_modules" in environment.described[0]
    assert judge_node(workspace.tree) == Proven()
    assert (workspace.tree / "node_modules" / "absolute").resolve() == workspace.tree / "packages" / "calc"
    assert modules.is_dir()


def write_dependencies(bench: Bench, *names: str) -> None:
    for name in names:
        bench.repo.write(f"inner/{name}/package.json", json.dumps({"name": name, "version": "1.0.0"}))
    wanted = {name: f"file:./inner/{name}" for name in names}
    bench.repo.write("package.json", json.dumps({"name": "top", "dependencies": wanted}))
    bench.repo.write(".gitignore", "node_modules\n")
    bench.repo.commit()


async def test_a_dependency_that_a_change_adds_is_installed_in_its_workspace_only(bench: Bench) -> None:
    write_dependencies(bench, "one")
    workspace = bench.workspace()
    await bench.prepare(workspace)
    write_dependencies(bench, "one", "two")
    worktrees.reset(bench.repo.path, workspace.tree, bench.repo.git("rev-parse", "HEAD"))

    changed = await bench.prepare(workspace, trusted=False)
    again = await bench.prepare(workspace, trusted=False)

    assert changed.problems == ()
    assert changed.new == changed.described
    assert (workspace.tree / "node_modules" / "two" / "package.json").exists()
    assert again.new == ()
    assert "before in this workspace" in again.described[0]
    assert len(list(bench.cache.glob("node-*"))) == 1


async def test_the_packages_of_the_base_stay_if_those_of_the_change_cannot_be_installed(bench: Bench) -> None:
    write_dependencies(bench, "one")
    workspace = bench.workspace()
    await bench.prepare(workspace)
    bench.repo.write(
        "package.json", json.dumps({"name": "top", "dependencies": {"one": "file:./inner/one", "no": "1"}})
    )
    worktrees.reset(bench.repo.path, workspace.tree, bench.repo.commit())

    changed = await bench.prepare(workspace, trusted=False)

    assert len(changed.problems) == 1
    assert (workspace.tree / "node_modules" / "one" / "package.json").exists()


async def test_packages_are_put_back_into_the_workspace_only_whatever_a_program_in_it_does_meanwhile(
    bench: Bench, tmp_path: Path
) -> None:
    write_workspaces(bench)
    workspace, users = bench.workspace(), tmp_path / "users" / "calc"
    modules = workspace.tree / "packages" / "calc" / "node_modules"
    for folder in (modules, users / "node_modules"):
        (folder / "one").mkdir(parents=True)
    workspace.environments.mkdir(parents=True)
    (workspace.environments / "node.key").write_text("of an earlier state")
    npm = bench.folder / "tools" / "npm"
    npm.write_text(f"#!/bin/sh\nmv packages/calc packages/moved\nln -s '{users}' packages/calc\nexit 1\n")
    npm.chmod(0o755)

    environment = await bench.prepare(workspace, trusted=False)

    assert len(environment.problems) == 1
    assert [path.name for path in users.rglob("*")] == ["node_modules", "one"]
    assert [path.name for path in workspace.environments.glob("*/*")] == ["one"]


async def test_what_cannot_be_installed_is_told_with_the_command(bench: Bench) -> None:
    bench.repo.write("package.json", json.dumps({"name": "x", "devDependencies": {"mocha": "*"}}))
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace(), PATH=str(bench.folder / "tools"))

    [problem] = environment.problems
    assert "install" in problem
    assert "`setup` under [project]" in problem


async def test_a_project_without_dependencies_needs_no_package_manager(bench: Bench) -> None:
    bench.repo.write("package.json", json.dumps({"name": "x", "scripts": {"test": "node --test"}}))
    bench.repo.commit()

    environment = await bench.prepare(bench.workspace(), PATH=str(bench.folder / "tools"))

    assert environment.problems == ()


def write_yarn(bench: Bench, metadata: int) -> None:
    """A repository of Yarn 4 that is used without node_modules, as a Yarn with that form of lock files leaves it."""
    write_workspaces(bench)
    app = {"name": "app", "version": "1.0.0", "dependencies": {"calc": "workspace:^"}}
    bench.repo.write("packages/app/package.json", json.dumps(app))
    bench.repo.write(".yarnrc.yml", "enableTelemetry: false\n")
    locked = (
        ("app@workspace:packages/app", '\n  dependencies:\n    calc: "workspace:^"'),
        ("calc@workspace:^, calc@workspace:packages/calc", ""),
        ("top@workspace:.", ""),
    )
    entries = "\n".join(
        f'"{names}":\n  version: 0.0.0-use.local\n  resolution: "{names.rpartition(", ")[2]}"{more}\n'
        "  languageName: unknown\n  linkType: soft\n"
        for names, more in locked
    )
    head = '# This file is generated by running "yarn install" inside your project.\n'
    note = "# Manual changes might be lost - proceed with caution!\n"
    bench.repo.write("yarn.lock", f"{head}{note}\n__metadata:\n  version: {metadata}\n  cacheKey: 10c0\n\n{entries}")
    bench.repo.commit()
    script = f'#!/bin/sh\nwhile [ "$1" != yarn ]; do shift; done; shift\nexec node "{YARN}" "$@"\n'
    program = bench.folder / "tools" / "npx"
    program.write_text(script)
    program.chmod(0o755)


@pytest.mark.parametrize("metadata", [pytest.param(8, id="its own"), pytest.param(6, id="of another Yarn")])
async def test_a_project_of_yarn_4_gets_node_modules_whatever_the_form_of_its_lock_file(
    bench: Bench, metadata: int
) -> None:
    write_yarn(bench, metadata)
    workspace = bench.workspace()

    environment = await bench.prepare(workspace)

    assert environment.problems == ()
    assert environment.variables["YARN_NODE_LINKER"] == "node-modules"
    assert "of the base" in bench.call(environment, workspace, "node", "-p", "require('calc')")
    assert worktrees.is_untouched(workspace.tree, bench.repo.git("rev-parse", "HEAD"))


@pytest.mark.parametrize(
    ("files", "package", "command"),
    [
        (["package-lock.json"], {}, "npm ci"),
        ([], {}, "npm install --no-package-lock"),
        (["pnpm-lock.yaml"], {}, "pnpm install --frozen-lockfile"),
        (["yarn.lock"], {}, "yarn install --non-interactive --frozen-lockfile"),
        (["yarn.lock", ".yarnrc.yml"], {}, "yarn install --immutable"),
        (["yarn.lock"], {"packageManager": "yarn@4.1.0"}, "yarn install --immutable"),
        (["bun.lock"], {}, "bun install --frozen-lockfile"),
        ([], {"packageManager": "pnpm@9.0.0"}, "pnpm install --no-lockfile"),
    ],
)
def test_the_package_manager_is_the_one_of_the_lock_file(
    tmp_path: Path, files: list[str], package: dict[str, object], command: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    (tmp_path / "package.json").write_text(json.dumps({"name": "x", "dependencies": {"ms": "2"}} | package))

    project = read(tmp_path)

    assert project
    assert " ".join(project.command) == command


def test_a_folder_that_cannot_be_read_has_no_packages(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "dependencies": {"ms": "2"}}')
    (tmp_path / "database").mkdir()

    found = without_power_over_files(
        "import sys, pathlib\n"
        "from iterdev.host.environments import node\n"
        "tree = pathlib.Path(sys.argv[1])\n"
        "(tree / 'database').chmod(0)\n"
        "print(node.read(tree).depends)",
        str(tmp_path),
    )

    assert found == "True\n"


@pytest.mark.parametrize(
    ("name", "text", "changes"),
    [
        ("package-lock.json", "{}", True),
        ("packages/a/package.json", '{"name": "a", "dependencies": {"ms": "3"}}', True),
        ("package.json", '{"name": "x", "version": "9", "scripts": {"test": "mocha"}}', False),
        ("index.js", "1", False),
    ],
)
def test_the_digest_changes_with_what_decides_the_packages(
    tmp_path: Path, name: str, text: str, *, changes: bool
) -> None:
    (tmp_path / "packages" / "a").mkdir(parents=True)
    (tmp_path / "package.json").write_text('{"name": "x"}')
    before = read(tmp_path)

    (tmp_path / name).write_text(text)
    after = read(tmp_path)

    assert before
    assert after
    assert (before.digest != after.digest) is changes
