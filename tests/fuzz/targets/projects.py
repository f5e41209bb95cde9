"""Files of projects, which say what their tests and packages are, and what tools of ecosystems answer."""

import json
from pathlib import Path

import anyio
import msgspec
from tests.fuzz.target import Target, files_target, text_target

from iterdev.core import conventions
from iterdev.core.results import Dependency
from iterdev.host import python_source, static_checks
from iterdev.host.environments import downloads, node, proof
from iterdev.host.environments.python import installed, project, versions
from iterdev.host.git import diffs, merge
from iterdev.host.github import RemoteIssue
from iterdev.host.packages import registry
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.test_suites.find import find
from iterdev.host.test_suites.invocations import configured, recognise

PYPROJECT = """\
[project]
name = "a"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["flask>=2,<3 ; python_version < '3.13'", "b[c]"]
[project.optional-dependencies]
test = ["pytest", "a[dev]"]
[dependency-groups]
dev = ["ruff", {include-group = "test"}]
[tool.poetry]
name = "a"
[tool.poetry.dependencies]
python = "^3.11"
x = { version = "^1.2", extras = ["y"], markers = "sys_platform == 'linux'" }
[tool.poetry.group.test.dependencies]
pytest = "~7.1 || ^8"
[tool.pytest.ini_options]
addopts = "-q --cov -n auto"
testpaths = ["tests"]
[tool.setuptools]
package-dir = {"" = "src"}
[tool.hatch.envs.test]
dependencies = ["coverage"]
[tool.uv.sources]
b = { workspace = true }
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"
"""
PYTHON_FILES = {
    "pyproject.toml": PYPROJECT,
    "setup.py": "from setuptools import setup\nN = ['x']\n"
    "setup(name='a', install_requires=N, extras_require={'test': ['pytest']})\n",
    "setup.cfg": "[metadata]\nname = a\n[options]\ninstall_requires =\n  x>=1\n"
    "[options.extras_require]\ntest = pytest\n[tool:pytest]\naddopts = -q\n",
    "requirements.txt": "-r requirements-dev.txt\nflask==2.0 --hash=sha256:aa \\\n# c\n-e .\n",
    "requirements-dev.txt": "pytest>=7 # for tests\n",
    "tox.ini": "[tox]\nenvlist = py311\n[testenv]\ndeps =\n"
    "  -r{toxinidir}/requirements-dev.txt\n  py311: x\nextras = test\ncommands = pytest {posargs}\n",
    "noxfile.py": "import nox\n@nox.session\ndef tests(session):\n"
    "    session.install('-r', 'requirements.txt', '.[test]')\n    session.run('pytest')\n",
    "Pipfile": "[packages]\nx = '*'\n[dev-packages]\npytest = '>=7'\n",
    "Pipfile.lock": '{"default": {"x": {"version": "==1.0"}}, "develop": {}}',
    "poetry.lock": '[[package]]\nname = "x"\nversion = "1.0"\n[package.source]\ntype = "git"\n',
    "tests/test_a.py": "import pytest, mock\n@pytest.mark.asyncio\ndef test_a(mocker):\n    pass\n",
    ".python-version": "3.11\n",
    "Makefile": "test: build\n\t@pytest -q $(ARGS)\n\nbuild:\n\tcc a.c\n",
}
NODE_FILES = {
    "package.json": '{"name": "a", "version": "1.0.0", '
    '"scripts": {"test": "cross-env CI=1 jest --coverage && eslint ."}, '
    '"devDependencies": {"jest": "^29"}, "workspaces": ["packages/*"], "packageManager": "pnpm@8.1.0", "jest": {}}',
    "packages/b/package.json": '{"name": "b", "dependencies": {"a": "workspace:*"}, '
    '"scripts": {"test": "node --test"}}',
    "pnpm-lock.yaml": "lockfileVersion: '6.0'\nsettings:\n  x: y\n",
    "package-lock.json": '{"lockfileVersion": 3, "packages": {}}',
    "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n",
    "deno.json": '{"tasks": {"test": "deno test -A"}}',
    "Makefile": ".PHONY: check\ncheck: all\n\t./run-tests.sh\n",
}
BUILT_FILES = {
    "Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\n[workspace]\nmembers = ["b"]\n'
    '[dependencies]\nb = { path = "../b" }\n',
    "Cargo.lock": '[[package]]\nname = "b"\nversion = "1.2.3"\n',
    "go.mod": "module a\n\ngo 1.21\n\nrequire b v1.2.3\nreplace b => ../b\n",
    "a_test.go": 'package a\nimport "testing"\nfunc TestA(t *testing.T) {}\n',
    "CMakeLists.txt": "project(a)\nenable_testing()\nadd_test(NAME a COMMAND a)\n",
    "meson.build": "project('a', 'c')\ntest('a', exe)\n",
    "configure.ac": "AC_INIT([a],[1])\n",
    "Makefile.am": "TESTS = a\n",
    "pom.xml": "<project><modelVersion>4.0.0</modelVersion></project>",
    "build.gradle": "plugins { id 'java' }\n",
    "Gemfile": "gem 'rspec'\n",
    "spec/a_spec.rb": "describe 'a' do\nend\n",
    "composer.json": '{"require-dev": {"phpunit/phpunit": "^9"}, "scripts": {"test": "phpunit"}}',
    "phpunit.xml": "<phpunit/>",
    "Package.swift": '// swift-tools-version:5.5\n.testTarget(name: "a")\n',
    "a.csproj": '<Project><PackageReference Include="xunit"/></Project>',
    "t/a.t": "use Test::More;\n",
}
INSTALLERS = """\
Collecting flask
  Downloading http://host/simple/flask/flask-2.0.1-py3-none-any.whl (94 kB)
  Downloading x-1.0.tar.gz (1.2 MB)
Prepared 3 packages in 10ms
 + a==1.0
 + b==2.0 (from file:///w)
npm http fetch GET 200 http://registry/@scope/name/-/name-1.0.0.tgz 12ms (cache miss)
Progress: resolved 10, reused 3, downloaded 7, added 10, done
"""
ANSWERS = (
    b"flask (2.0.1)\nAvailable versions: 2.0.1, 2.0.0\n",
    b'flask = "1.2.3"    # A crate\n',
    b'{"known": true, "fits": false, "version": "1.0.0"}',
    b'{"Require": [{"Path": "flask", "Version": "v1.2.3"}]}',
    b"aaaa\tHEAD\nbbbb\trefs/tags/v1.0.0\n",
    b"# c\nflask==2.0.1\n",
    b"v1.2.3\n",
)


def _python(folder: Path) -> None:
    found = project.read(folder)
    tuple(versions.pins(folder))
    if found:
        installed.satisfies_python("3.11.7", found.requires_python)
    find(folder, lambda _: True)
    proof.modules(folder)
    proof.judge(folder, ["a.py", "tests/test_a.py"], ())


def _node(folder: Path) -> None:
    node.read(folder)
    node.own_packages(folder)
    proof.judge_node(folder)
    find(folder, lambda _: True)


def _built(folder: Path) -> None:
    find(folder, lambda _: True)
    proof.judge_paths(folder)


class _Answering:
    """In place of the shell: whatever is run prints the input."""

    def __init__(self, data: bytes, folder: Path) -> None:
        self.tree, self.temp, self.env = folder, folder, {"HOME": str(folder), "PATH": "/usr/bin"}
        self._data = data

    def path_of(self, program: str) -> Path:
        return Path("/usr/lib/x/bin") / program

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    async def run(self, *_: str, **__: object) -> ProgramResult:
        return ProgramResult(code=0, timed_out=False, stdout=self._data, stderr=self._data)


def _packages(data: bytes, folder: Path) -> None:
    shell = _Answering(data, folder)
    (folder / "node_modules/flask").mkdir(parents=True)
    (folder / "node_modules/flask/package.json").write_bytes(data)
    (folder / "Cargo.lock").write_bytes(data)

    async def check() -> None:
        for source in registry.ECOSYSTEMS:
            if source != "maven":
                dependency = Dependency(name="flask", version_range=">=2,<3", source=source)
                await registry.check(dependency, shell)  # type: ignore[arg-type]
                await registry.update(dependency, "1.0", shell)  # type: ignore[arg-type]

    anyio.run(check)


def _dependency(text: str) -> None:
    """Names and ranges are the agents'."""

    async def check() -> None:
        for source in ("pip", "git", text[:10]):
            shell = _Answering(b"2.0.1\n", Path("/nonexistent"))
            dependency = Dependency(name=text, version_range=text, source=source)
            await registry.check(dependency, shell)  # type: ignore[arg-type]

    anyio.run(check)


def _checked(folder: Path) -> None:
    files = {
        name: static_checks.ChangedFile(
            before=b"{}" if name.endswith("json") else b"",
            after=(folder / name).read_bytes(),
            python_after=_python_file(folder / name) if name.endswith(".py") else None,
        )
        for name in ("a.py", "a.json", "a.toml")
    }
    static_checks.check(folder, files, ["b.py"], lambda _: set())


def _python_file(file: Path) -> static_checks.PythonFile:
    return msgspec.convert(python_source.read(file.read_bytes(), file.name), static_checks.PythonFile)


def _proof(folder: Path) -> None:
    proof.judge(folder, ["a/b.py"], proof.read(folder / "loaded"))
    proof.judge_probe(folder, ["a/b.py"], (folder / "probe").read_bytes())


def _git(text: str) -> None:
    """What git prints about a change whose names are the agent's."""
    for line in text.split("\0"):
        if line.count("\t") >= 2:
            diffs._file_change(line)
    merge.markers_in(text)


TARGETS: tuple[Target, ...] = (
    files_target("python projects", _python, PYTHON_FILES),
    files_target("node projects", _node, NODE_FILES),
    files_target("built projects", _built, BUILT_FILES),
    text_target(
        "test commands",
        lambda text: (recognise(text), configured(text)),
        "cd a && PYTHONPATH=. python3 -m pytest -q 'a b' -k \"x and y\"",
        "npx cross-env CI=1 jest --coverage -- x; go test ./... || make test",
        "poetry run -- uv run tox -e py311 $(echo x) `y` <<EOF\nz\nEOF\n",
    ),
    text_target(
        "installers", lambda text: [downloads.read(text, name) for name in ("pip", "uv", "npm", "pnpm")], INSTALLERS
    ),
    Target(name="package registries", run=_packages, examples=ANSWERS),
    text_target("declared packages", _dependency, "flask", ">=2,<3", "https://host/a.git", "^1.2.0"),
    files_target(
        "changed files",
        _checked,
        {
            "a.py": "import os\nfrom . import b\ntry:\n    import c\nexcept ImportError:\n    pass\n",
            "a.json": '{"a": [1,], // c\n}',
            "a.toml": "a = 1\n[b]\n",
        },
    ),
    files_target(
        "proof of imports",
        _proof,
        {"loaded": "a.b\t/w/a/b.py\nc\t/d.py\n", "probe": '{"a": ["/w/a/__init__.py"]}', "a/b.py": ""},
    ),
    text_target("git output", _git, "1\t2\ta.py\0-\t-\tb\tc\n.png\0a.py:12: leftover conflict marker\n"),
    text_target(
        "conventions",
        lambda text: conventions.files(text.split("\n"), text),
        "AGENTS.md\na/CLAUDE.md\nREADME.md\n# Contributing\n== contributing ==\n",
    ),
    Target(
        name="github issues",
        run=lambda data, _: msgspec.json.decode(data, type=RemoteIssue),
        examples=[
            json.dumps({"number": 1, "title": "a", "body": "b", "comments": [{"body": "c", "author": "d"}]}).encode()
        ],
        refusals=(msgspec.DecodeError, UnicodeError, RecursionError),
    ),
)
