"""What shows whose code was under test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iterdev.host.environments import proof
from iterdev.host.environments.proof import Loaded, NotShown, Proven, judge, judge_paths, judge_probe
from iterdev.host.environments.python import hook


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package `calc` in src/, with a test."""
    for name in ("src/calc/__init__.py", "src/calc/core.py", "src/calc/unused.py", "tests/test_calc.py"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "tree"


def test_modules_from_the_workspace_prove_that_the_change_was_tested(tree: Path) -> None:
    loaded = [Loaded("calc", tree / "src/calc/__init__.py"), Loaded("calc.core", tree / "src/calc/core.py")]

    assert judge(tree, ["src/calc/core.py", "README.md"], loaded) == Proven()


@pytest.mark.parametrize("place", ["/home/u/proj/src/calc/core.py", "/v/lib/python3.11/site-packages/calc/core.py"])
def test_a_module_from_elsewhere_is_no_proof_and_is_named(tree: Path, place: str) -> None:
    loaded = [Loaded("calc.core", Path(place))]

    judged = judge(tree, ["src/calc/__init__.py"], loaded)

    assert isinstance(judged, NotShown)
    assert f'imported `calc.core` from "{place}", not from "src/calc/core.py"' in judged.reason


def test_a_copy_of_another_package_of_the_repository_is_no_proof_and_is_named(tree: Path, tmp_path: Path) -> None:
    changed = ["libs/shop/src/shop/cart.py"]
    for name in ("libs/shop/pyproject.toml", "libs/shop/src/shop/__init__.py", *changed):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    copy = tmp_path / "site" / "shop"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("")

    names = proof.recording(tree, tmp_path / "loaded", changed)[hook.NAMES].split(",")
    loaded = judge(tree, changed, [Loaded("shop.cart", copy / "cart.py")])
    probed = judge_probe(tree, changed, probe(tree, copy.parent, *proof.probed(tree, changed)))

    assert "shop" in names
    assert isinstance(loaded, NotShown)
    assert 'not from "libs/shop/src/shop/cart.py"' in loaded.reason
    assert isinstance(probed, NotShown)
    assert judge(tree, changed, [Loaded("shop.cart", tree / changed[0])]) == Proven()


def test_code_beside_the_folder_of_the_tests_has_to_come_from_the_workspace_too(tree: Path, tmp_path: Path) -> None:
    changed = ["libs/shop/src/shop/cart.py"]
    for name in ("libs/shop/pyproject.toml", "libs/shop/src/shop/__init__.py", *changed, "app/main.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    elsewhere = [Loaded("shop.cart", Path("/home/u/proj/libs/shop/src/shop/cart.py"))]

    assert "shop" in proof.recording(tree, tmp_path / "loaded", changed, "app")[hook.NAMES].split(",")
    assert isinstance(judge(tree, changed, elsewhere, "app"), NotShown)
    assert judge(tree, changed, [Loaded("main", tree / "app/main.py")], "app") == Proven()
    assert judge_probe(tree, changed, b'{"shop": []}', "app") == Proven()


@pytest.mark.parametrize("changed", ["src/calc/util/random.py", "examples/app/random.py"])
def test_a_folder_with_a_setup_file_in_a_package_or_among_examples_is_no_package_of_its_own(
    tree: Path, changed: str
) -> None:
    for name in ("src/calc/util/__init__.py", "src/calc/util/setup.py", "examples/app/pyproject.toml", changed):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    loaded = [Loaded("random", Path("/usr/lib/python3.11/random.py"))]

    assert isinstance(judge(tree, [changed], loaded), Proven)
    assert "random" not in proof.probed(tree, [changed])


def test_one_process_that_used_other_code_is_enough_to_doubt(tree: Path) -> None:
    loaded = [Loaded("calc", tree / "src/calc/__init__.py"), Loaded("calc", Path("/home/u/calc/__init__.py"))]

    assert isinstance(judge(tree, ["src/calc/__init__.py"], loaded), NotShown)


def test_a_changed_module_that_no_test_loaded_is_a_warning(tree: Path) -> None:
    judged = judge(tree, ["src/calc/unused.py"], [Loaded("calc", tree / "src/calc/__init__.py")])

    assert judged == Proven(('no test imported "src/calc/unused.py"',))


def test_packages_that_share_a_namespace_with_the_project_may_come_from_elsewhere(tree: Path) -> None:
    (tree / "src" / "calc" / "__init__.py").unlink()
    loaded = [Loaded("calc.core", tree / "src/calc/core.py"), Loaded("calc.other", Path("/site/calc/other.py"))]

    assert judge(tree, ["src/calc/core.py"], loaded) == Proven()


@pytest.mark.parametrize("changed", [["tests/test_calc.py"], ["README.md"], ["gone.py"], []])
def test_a_change_without_modules_of_the_project_needs_no_proof(tree: Path, changed: list[str]) -> None:
    assert judge(tree, changed, [Loaded("calc", Path("/elsewhere/calc.py"))]) == Proven()


def test_the_names_of_a_projects_modules_leave_out_tests_and_tools(tree: Path) -> None:
    (tree / "setup.py").write_text("")
    (tree / "single.py").write_text("")

    assert proof.modules(tree) == ("calc", "single")


def recorded(tree: Path, tmp_path: Path, code: str) -> tuple[str, tuple[Loaded, ...]]:
    """What a program prints, and what it left as a record, when the hook is loaded at its start."""
    file = tmp_path / "loaded"
    variables = {**os.environ, **proof.recording(tree, file), "PYTHONPATH": str(tree / "src")}
    start = f"import runpy; runpy.run_path({hook.__file__!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code], env=variables, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr, proof.read(file)


def test_an_interpreter_records_where_it_loaded_the_projects_modules_from(tree: Path, tmp_path: Path) -> None:
    _, loaded = recorded(tree, tmp_path, "import calc.core, json")

    assert loaded == (Loaded("calc", tree / "src/calc/__init__.py"), Loaded("calc.core", tree / "src/calc/core.py"))


def test_the_record_is_written_when_the_program_fails_too(tree: Path, tmp_path: Path) -> None:
    output, loaded = recorded(tree, tmp_path, "import calc\nraise SystemExit('failed')")

    assert output == "failed\n"
    assert [one.module for one in loaded] == ["calc"]


def test_a_record_that_cannot_be_written_does_not_disturb_the_program(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "loaded").mkdir()

    output, loaded = recorded(tree, tmp_path, "import calc\nprint('done')")

    assert (output, loaded) == ("done\n", ())


def probe(tree: Path, path: Path, *names: str) -> bytes:
    variables = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-c", proof.PROBE, *names]
    return subprocess.run(command, cwd=tree, env=variables, capture_output=True, check=True).stdout


def test_an_interpreter_is_asked_where_it_would_import_from(tree: Path, tmp_path: Path) -> None:
    changed = ["src/calc/core.py"]
    other = tmp_path / "other" / "calc"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('imported')")

    here = judge_probe(tree, changed, probe(tree, tree / "src", *proof.probed(tree, changed)))
    elsewhere = judge_probe(tree, changed, probe(tree, other.parent, *proof.probed(tree, changed)))
    nowhere = judge_probe(tree, changed, probe(tree, tmp_path, *proof.probed(tree, changed)))

    assert here == Proven()
    assert isinstance(elsewhere, NotShown)
    assert str(other) in elsewhere.reason
    assert nowhere == Proven(('the interpreter of the tests finds no module "calc"',))
    assert isinstance(judge_probe(tree, changed, b"Traceback"), NotShown)


@pytest.mark.parametrize(
    ("name", "text", "outside"),
    [
        ("Cargo.toml", '[dependencies]\nhelper = {path = "crates/helper"}\n', False),
        ("Cargo.toml", '[dependencies]\nhelper = {path = "../helper"}\n', True),
        ("Cargo.toml", '[patch.crates-io]\nhelper = {path = "/home/u/helper"}\n', True),
        ("Cargo.toml", '[lib]\npath = "src/lib.rs"\n', False),
        ("go.mod", "module x\nreplace y => ./y\n", False),
        ("go.mod", "module x\nreplace y => ../y\n", True),
        ("go.mod", "module x\nreplace y => example.org/y v1.0.0\n", False),
    ],
)
def test_sources_outside_of_the_workspace_are_noticed(tree: Path, name: str, text: str, *, outside: bool) -> None:
    (tree / name).write_text(text)

    assert isinstance(judge_paths(tree), NotShown) is outside
