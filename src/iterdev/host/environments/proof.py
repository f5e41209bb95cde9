"""Shows that the code under test was the code of the workspace, and not the user's checkout or an installed copy.

For Python, the interpreters of the tests record where the project's modules were loaded from (`python/hook.py`). Where
the environment is not ours, an interpreter is asked where it would load them from. For Node, the links in
`node_modules` are looked at. Cargo, Go, Maven and Gradle compile the sources of the folder they are called in; only a
path to a folder elsewhere, in their own settings, can lead outside.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host import toml_text, untrusted_files
from iterdev.host.environments import node
from iterdev.host.environments.python import hook
from iterdev.host.environments.python.project import DECLARE_PACKAGES, source_roots

NOT_THE_PROJECT = frozenset(
    {"conftest", "setup", "noxfile", "docs", "doc", "examples", "tests", "test", "testing", "build", "dist"}
)
LARGEST_RECORD = 64 * 1024 * 1024
"""Bytes of what the interpreters of a test run recorded."""
CARGO_TARGETS = frozenset({"lib", "bin", "example", "test", "bench"})
PROBE = (
    "import importlib.util, json, sys\n"
    "sys.path.insert(0, '')\n"
    "found = {}\n"
    "for name in sys.argv[1:]:\n"
    "    try:\n"
    "        spec = importlib.util.find_spec(name)\n"
    "    except Exception:\n"
    "        spec = None\n"
    "    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []\n"
    "    found[name] = [place for place in places if place]\n"
    "print(json.dumps(found))\n"
)
"""Prints where the interpreter that runs the tests would find each module; imports none of them."""


class Proven(Struct, frozen=True):
    """The tests used the workspace's code."""

    warnings: tuple[str, ...] = ()


class NotShown(Struct, frozen=True):
    """The tests used other code, or nothing shows which."""

    reason: str


Judgement = Proven | NotShown
Roots = Mapping[str, tuple[Path, ...]]
"""By changed file: the folders from which the modules of its package are imported."""


class Loaded(Struct, frozen=True):
    """A module, and the file that it was loaded from."""

    module: str
    file: Path


def recording(tree: Path, file: Path, changed: Sequence[str] = (), folder: str = "") -> dict[str, str]:
    """The variables with which the interpreters of a test run in a folder append to the file what they loaded."""
    names = dict.fromkeys((*modules(tree / folder), *probed(tree, changed, folder)))
    return {hook.FILE: str(file), hook.NAMES: ",".join(names)}


def modules(tree: Path) -> tuple[str, ...]:
    """The names of the top-level packages and modules of a Python project."""
    found: set[str] = set()
    for root in source_roots(tree):
        found |= {path.stem for path in root.glob("*.py")}
        found |= {path.parent.name for path in root.glob("*/*.py")}
        # Namespace packages have no Python file of their own.
        found |= {path.parents[1].name for path in root.glob("*/*/__init__.py")}
    names = {name for name in found if name.isidentifier() and name not in NOT_THE_PROJECT}
    return tuple(sorted(names - {root.name for root in source_roots(tree) if root != tree}))


def read(file: Path) -> tuple[Loaded, ...]:
    """What was recorded; the same module may have been loaded from several places."""
    content = untrusted_files.read_or_empty(file, root=file.parent, most=LARGEST_RECORD)
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    parts = (line.split("\t") for line in dict.fromkeys(lines))
    return tuple(Loaded(part[0], Path(part[1])) for part in parts if len(part) == 2)


def judge(tree: Path, changed: Sequence[str], loaded: Iterable[Loaded], folder: str = "") -> Judgement:
    """Whether the Python files among the changed ones were under test, as far as the tests of a folder loaded them."""
    top = tree.resolve()
    roots = _package_roots(top, changed, folder)
    own = _own_modules(top, roots)
    names = {name.partition(".")[0] for name in own.values()}
    seen: set[Path] = set()
    for one in loaded:
        if one.file.is_relative_to(top):
            seen.add(one.file)
        elif one.module.partition(".")[0] in names and (theirs := _in_tree(one.module, roots)):
            where = f'"{one.file}", not from "{theirs.relative_to(top)}" of the change'
            return NotShown(f"the tests imported `{one.module}` from {where}")
    unseen = [file for file in own if top / file not in seen and Path(file).is_relative_to(folder)]
    warning = f"no test imported {_listed(unseen)}"
    return Proven((warning,) if unseen else ())


def judge_probe(tree: Path, changed: Sequence[str], found: bytes, folder: str = "") -> Judgement:
    """The same from the output of `PROBE`, which was given `probed(tree, changed, folder)`."""
    top = tree.resolve()
    roots = _package_roots(top, changed, folder)
    try:
        places = msgspec.json.decode(found, type=dict[str, list[str]])
    except (ValueError, RecursionError):
        return NotShown("the interpreter of the tests did not say where it imports the changed modules from")
    for name, files in places.items():
        outside = [file for file in files if _is_outside(file, top)]
        if outside and _in_tree(name, roots):
            return NotShown(f'the tests would import `{name}` from "{outside[0]}", not from the change')
    own = [file for file in changed if Path(file).is_relative_to(folder)]
    missing = [name for name in probed(tree, own, folder) if not places.get(name)]
    return Proven((f"the interpreter of the tests finds no module {_listed(missing)}",) if missing else ())


def _is_outside(file: str, top: Path) -> bool:
    return Path(file).is_absolute() and "\0" not in file and not Path(os.path.realpath(file)).is_relative_to(top)


def probed(tree: Path, changed: Sequence[str], folder: str = "") -> tuple[str, ...]:
    """The top-level modules to ask for."""
    own = _own_modules(tree.resolve(), _package_roots(tree.resolve(), changed, folder))
    return tuple(sorted({name.partition(".")[0] for name in own.values()}))


def _own_modules(top: Path, roots: Roots) -> dict[str, str]:
    """The changed files that are modules of the project, and not its tests or tools, with their names."""
    named = {file: _module_name(top / file, of_file) for file, of_file in roots.items() if (top / file).is_file()}
    return {
        file: name
        for file, name in named.items()
        if name and name.partition(".")[0] not in NOT_THE_PROJECT and not _is_test(file)
    }


def _package_roots(top: Path, changed: Sequence[str], folder: str) -> Roots:
    """For each changed Python file the folders from which its package is imported: a repository may have several.

    What is in no package belongs to the folder of the tests, or to the top. The entry of no file is that folder itself.
    """
    known: dict[Path, tuple[Path, ...]] = {}
    found = {"": source_roots(top / folder)}
    for file in (file for file in changed if file.endswith(".py") and not _is_beside(file, folder)):
        folders = [top / parent for parent in Path(file).parents]
        package = next((one for one in folders if one == top / folder or _declares_package(one)), top)
        if package not in known:
            known[package] = source_roots(package)
        found[file] = known[package]
    return found


def _is_beside(file: str, folder: str) -> bool:
    """Whether a file is in a folder of tests, examples or the like, seen from where the tests run."""
    path = Path(file)
    own = path.relative_to(folder) if path.is_relative_to(folder) else path
    return own.parts[0] in NOT_THE_PROJECT


def _declares_package(folder: Path) -> bool:
    """Packages that are built with their parent, such as with `numpy.distutils`, have a `setup.py` too."""
    return not (folder / "__init__.py").exists() and any((folder / name).is_file() for name in DECLARE_PACKAGES)


def _is_test(file: str) -> bool:
    path = Path(file)
    return bool({"tests", "test"} & set(path.parts)) or bool(re.fullmatch(r"test_.*|.*_test|conftest", path.stem))


def _module_name(path: Path, roots: Sequence[Path]) -> str:
    for root in roots:
        if path.is_relative_to(root):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            return name if all(part.isidentifier() for part in name.split(".")) else ""
    return ""


def _in_tree(module: str, roots: Roots) -> Path | None:
    """The file of the workspace that a module of this name should have been loaded from."""
    parts = module.split(".")
    all_roots = dict.fromkeys(root for of_file in dict.fromkeys(roots.values()) for root in of_file)
    for root in all_roots if all(map(str.isidentifier, parts)) else ():
        place = root.joinpath(*parts)
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if os.path.isfile(path):  # noqa: PTH113 - a name of any length
                return path
    return None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def judge_node(tree: Path) -> Judgement:
    """Whether `node_modules` leads to the packages of this repository inside of the workspace."""
    top = tree.resolve()
    for name, path in node.own_packages(tree).items():
        for modules_folder in node.places_of_modules(tree):
            place = modules_folder / name
            if os.path.lexists(place) and (real := Path(os.path.realpath(place))) != path.resolve():
                where = "a copy" if real.is_relative_to(top) else "outside of the workspace"
                return NotShown(f'the tests import `{name}` from "{real}", {where}, not from the change')
    return Proven()


def judge_paths(tree: Path) -> Judgement:
    """Whether settings of Cargo and Go name folders outside of the workspace as sources."""
    top = tree.resolve()
    for file, path in (*_cargo_paths(tree), *_go_paths(tree)):
        if _is_outside(str(file.parent / path), top):
            return NotShown(f'"{file.relative_to(tree)}" takes code from "{path}", which is outside of the workspace')
    return Proven()


def _cargo_paths(tree: Path) -> Iterator[tuple[Path, str]]:
    for file in (tree / "Cargo.toml", *tree.glob("*/Cargo.toml"), *tree.glob("*/*/Cargo.toml")):
        try:
            document = toml_text.parse(untrusted_files.read_text(file))
        except ValueError:
            continue
        yield from ((file, path) for path in _path_values(document))


def _path_values(value: object) -> Iterator[str]:
    """The paths of dependencies, wherever they are declared; those of the package's own targets are left out."""
    if isinstance(value, Mapping):
        if isinstance(path := value.get("path"), str):
            yield path
        for name, inner in value.items():
            if name not in CARGO_TARGETS:
                yield from _path_values(inner)


def _go_paths(tree: Path) -> Iterator[tuple[Path, str]]:
    for file in (tree / "go.mod", tree / "go.work", *tree.glob("*/go.mod")):
        text = untrusted_files.read_text(file)
        yield from ((file, path) for path in re.findall(r"=>\s*(\.\.?/\S*|/\S+)", text))
