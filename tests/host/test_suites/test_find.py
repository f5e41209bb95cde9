"""Finding the test suites of a repository."""

import os
from pathlib import Path

import pytest
from tests.host.test_suites.suite_projects import WITH_PYTEST, WITHOUT_PYTEST, find, write

from iterdev.host.test_suites.find import in_order
from iterdev.host.test_suites.invocations import configured
from iterdev.host.test_suites.projects import files as project_files
from iterdev.host.test_suites.suite import Kind, Suite

PLAIN = "def test_a():\n    assert True\n"
CASES = "import unittest\nclass C(unittest.TestCase):\n    def test_a(self):\n        pass\n"
PACKAGE = '{"name": "p", "scripts": {"test": "%s"}}'
SCRIPTS = '{"scripts": {%s}}'
PYTEST = ("python3 -m pytest", "pytest", "")
DISCOVER = "python3 -m unittest discover"
BUILD = '"${ITERDEV_BUILD:-build}"'

Found = tuple[str, Kind, str]


def found(root: Path) -> list[Found]:
    return [(suite.command, suite.kind, suite.folder) for suite in find(root)]


@pytest.mark.parametrize(
    ("files", "suites"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"README": "test:"}, [], id="nothing of use"),
        pytest.param({**WITH_PYTEST, "pytest.ini": ""}, [PYTEST], id="pytest.ini"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "[tool.pytest.ini_options]\n"}, [PYTEST], id="pyproject"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "[tool.pytest.ini_options\n"}, [], id="broken pyproject"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": f"a = {'[' * 9000}"}, [], id="deep pyproject"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": f"a = {'9' * 9000}\n"}, [], id="pyproject with a long number"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "tool = 3\n"}, [], id="strange pyproject"),
        pytest.param({**WITH_PYTEST, "setup.cfg": "[tool:pytest]\n"}, [PYTEST], id="setup.cfg"),
        pytest.param({**WITH_PYTEST, "tox.ini": "[tox]\n[pytest]\n"}, [PYTEST], id="tox.ini"),
        pytest.param({**WITH_PYTEST, "tox.ini": "[tox]\n"}, [], id="tox.ini without pytest"),
        pytest.param({**WITH_PYTEST, "tests/conftest.py": ""}, [PYTEST], id="conftest"),
        pytest.param({**WITH_PYTEST, "test_a.py": PLAIN}, [PYTEST], id="a plain test at the top"),
        pytest.param({**WITH_PYTEST, "shop/till_test.py": PLAIN}, [PYTEST], id="a plain test beside the code"),
        pytest.param({**WITHOUT_PYTEST, "tests/test_a.py": PLAIN}, [PYTEST], id="pytest is missing"),
        pytest.param(
            {**WITHOUT_PYTEST, "pytest.ini": "", "test_a.py": CASES},
            [(f"{DISCOVER} -s .", "unittest", "")],
            id="pytest is missing, unittest will do",
        ),
        pytest.param(
            {**WITH_PYTEST, "tests/test_a.py": CASES}, [(f"{DISCOVER} -s tests", "unittest", "")], id="unittest"
        ),
        pytest.param(
            {**WITH_PYTEST, "test/test_a.py": CASES, "test/__init__.py": ""},
            [(f"{DISCOVER} -s test -t .", "unittest", "")],
            id="unittest in a package",
        ),
        pytest.param(
            {
                **WITH_PYTEST,
                "src/zoo/cat/__init__.py": "",
                "src/zoo/cat/tests/__init__.py": "",
                "src/zoo/cat/tests/test_a.py": CASES,
                "src/zoo/cat/paws/__init__.py": "",
                "src/zoo/cat/paws/test_b.py": CASES,
            },
            [(f"{DISCOVER} -s src/zoo/cat -t src/zoo", "unittest", "")],
            id="unittest beside the code, in a namespace",
        ),
        pytest.param(
            {**WITH_PYTEST, "shop/till_test.py": CASES},
            [(f"{DISCOVER} -s shop -p '*_test.py'", "unittest", "")],
            id="unittest with another pattern",
        ),
        pytest.param(
            {**WITH_PYTEST, "manage.py": "import django", "polls/tests.py": CASES},
            [("python3 manage.py test", "unittest", "")],
            id="Django",
        ),
        pytest.param(
            {**WITH_PYTEST, "web/manage.py": "import django", "web/polls/tests.py": CASES},
            [("python3 manage.py test", "unittest", "web")],
            id="Django below the top",
        ),
        pytest.param(
            {
                **WITH_PYTEST,
                "tests/__init__.py": "",
                "tests/settings.py": "INSTALLED_APPS = ['polls']\n",
                "tests/tests.py": f"import django.test\n{CASES}",
            },
            [("DJANGO_SETTINGS_MODULE=tests.settings python3 -m django test", "unittest", "")],
            id="a Django app without a project",
        ),
        pytest.param(
            {**WITH_PYTEST, "runtests.py": "", "tests/test_a.py": CASES},
            [("python3 runtests.py", "unittest", "")],
            id="a script that runs tests",
        ),
    ],
)
def test_the_suites_of_a_python_project_are_found(tmp_path: Path, files: dict[str, str], suites: list[Found]) -> None:
    assert found(write(tmp_path, files)) == suites


@pytest.mark.parametrize(
    ("files", "command", "folder"),
    [
        pytest.param(
            {"tox.ini": "[testenv]\ncommands =\n    coverage run -m pytest {posargs:tests}\n    coverage report\n"},
            "python3 -m pytest tests",
            "",
            id="tox, behind coverage",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv]\ncommands = {envpython} -m pytest {posargs:\\\n"
                "    --verbose \\\n    --junit-xml=.tox/results.{envname}.xml \\\n    --durations=10 \\\n    } tests\n"
            },
            "python3 -m pytest tests",
            "",
            id="tox, with a variable among the default options",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv]\nsetenv =\n    MODE = x y\n    py: A = b\n"
                "commands = pytest -x -n auto --cov=a -m 'not slow' {posargs}\n"
            },
            "MODE='x y' python3 -m pytest -m 'not slow'",
            "",
            id="tox, with a variable and options",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv]\ncommands = pytest --cov calc --cov tests --cov-report xml --cov-branch \\\n"
                "    --cov-fail-under 90 --cov --durations 10 tests/test_a.py {posargs}\n"
            },
            "python3 -m pytest tests/test_a.py",
            "",
            id="tox, with values of options that are left out",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv]\ncommands =\n    pytest README.rst docs/a.md\n"
                "    pytest --doctest-modules {envsitepackagesdir}/calc\n"
                "    pytest --tb=short -v --cov {envsitepackagesdir}/calc\n",
                "README.rst": "",
                "docs/a.md": "",
            },
            "python3 -m pytest",
            "",
            id="tox, after the examples of documents",
        ),
        pytest.param(
            {"tox.ini": "[testenv]\ncommands = pytest --cov shop --cov tests --durations 9 --cov-context test tests\n"},
            "python3 -m pytest tests",
            "",
            id="tox, with options whose values are other words",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv]\ncommands = pytest -v -rs --basetemp {envtmpdir} -o cache_dir={toxworkdir}/c \\\n"
                "    --rootdir {toxinidir} {[testenv:lint]options} tests\n"
            },
            "python3 -m pytest --rootdir . tests",
            "",
            id="tox, with values that only tox knows",
        ),
        pytest.param(
            {"tox.ini": "[testenv]\nchangedir = tests\ncommands = {envpython} -m unittest {posargs}\n"},
            "python3 -m unittest",
            "tests",
            id="tox, in another folder",
        ),
        pytest.param(
            {
                "tox.ini": "[testenv:docs]\ncommands = pytest docs\n"
                "[testenv:py311]\ncommands = python -m unittest tests\n"
            },
            "python3 -m unittest tests",
            "",
            id="tox, one environment of several",
        ),
        pytest.param(
            {
                "tox.toml": "[env_run_base]\n"
                "commands = [['python', '-m', 'unittest', {replace='posargs', default=['-q']}]]\n"
            },
            "python3 -m unittest -q",
            "",
            id="tox.toml",
        ),
        pytest.param(
            {
                "tox.toml": "[env_run_base]\n"
                "commands = [['pytest', '-m', 'not slow', '--basetemp', '{env_tmp_dir}', 'tests']]\n"
            },
            "python3 -m pytest -m 'not slow' tests",
            "",
            id="tox.toml, with a word of several",
        ),
        pytest.param(
            {"pyproject.toml": "[tool.tox]\nlegacy_tox_ini = '''\n[testenv]\ncommands = python -m unittest -b\n'''\n"},
            "python3 -m unittest -b",
            "",
            id="tox in pyproject",
        ),
        pytest.param(
            {
                "noxfile.py": "import nox\n@nox.session\ndef lint(session):\n    session.run('pytest', 'lint')\n"
                "@nox.session(python=['3.11'])\ndef tests(session):\n    session.install('.')\n"
                "    session.run('python', '-m', 'unittest', '-b', *session.posargs)\n"
            },
            "python3 -m unittest -b",
            "",
            id="nox",
        ),
        pytest.param(
            {
                "noxfile.py": "@nox.session\ndef tests(session):\n"
                "    session.run('pytest', '--basetemp', session.create_tmp(), 'tests')\n"
            },
            "python3 -m pytest tests",
            "",
            id="nox, with a value that only nox knows",
        ),
        pytest.param(
            {"noxfile.py": "@nox.session\ndef tests(session):\n    session.run('pytest', '-k', '\\d')\n"},
            r"python3 -m pytest -k '\d'",
            "",
            id="nox with code that Python warns of",
        ),
        pytest.param(
            {"pyproject.toml": "[tool.hatch.envs.default.scripts]\ntest = 'pytest {args:tests}'\n"},
            "python3 -m pytest tests",
            "",
            id="hatch",
        ),
        pytest.param(
            {"pyproject.toml": "[tool.pdm.scripts]\ntest = {cmd = 'python -m unittest -b'}\n"},
            "python3 -m unittest -b",
            "",
            id="pdm",
        ),
        pytest.param(
            {"tox.ini": "[testenv]\ncommands = {unknown}/run {posargs}\n"},
            f"{DISCOVER} -s tests",
            "",
            id="not readable",
        ),
        pytest.param({"noxfile.py": "def ("}, f"{DISCOVER} -s tests", "", id="broken noxfile"),
        pytest.param({"tox.ini": "x"}, f"{DISCOVER} -s tests", "", id="broken tox.ini"),
        pytest.param(
            {"tox.ini": "[testenv]\ncommands = zope-testrunner --test-path=src\n"},
            f"{DISCOVER} -s tests",
            "",
            id="a runner that is not there",
        ),
    ],
)
def test_declared_commands_of_a_python_project_are_used(
    tmp_path: Path, files: dict[str, str], command: str, folder: str
) -> None:
    root = write(tmp_path, {**WITH_PYTEST, "tests/test_a.py": CASES, **files})

    assert [(suite.command, suite.folder) for suite in find(root)] == [(command, folder)]


def test_every_pytest_command_of_the_first_environment_is_a_suite(tmp_path: Path) -> None:
    settings = "[testenv]\ncommands =\n    pytest more\n    pytest tests\n[testenv:py39]\ncommands = pytest old\n"
    root = write(tmp_path, {**WITH_PYTEST, "more/test_b.py": CASES, "tests/test_a.py": CASES, "tox.ini": settings})

    assert [suite.command for suite in find(root)] == ["python3 -m pytest more", "python3 -m pytest tests"]


@pytest.mark.parametrize(
    ("scripts", "suites"),
    [
        pytest.param('"test": "mocha"', [("mocha", "mocha", "")], id="mocha"),
        pytest.param(
            '"test": "npm run lint && cross-env NODE_ENV=test nyc --reporter lcov mocha -R dot", "lint": "eslint ."',
            [("NODE_ENV=test mocha -R dot", "mocha", "")],
            id="mocha behind a linter and a coverage tool",
        ),
        pytest.param('"test": "xo && tsd && ava"', [("ava", "ava", "")], id="ava behind linters"),
        pytest.param(
            '"test": "npm run unit", "unit": "nyc tape \'test/**/*.js\' | tap-spec", "pretest": "npm run lint"',
            [("tape 'test/**/*.js'", "tap", "")],
            id="tape, printed by another program",
        ),
        pytest.param('"test": "tsc && node --test t/"', [("tsc && node --test t/", "node", "")], id="built before"),
        pytest.param(
            '"pretest": "npm run build", "build": "rollup -c", "test": "uvu -r esm tests"',
            [("rollup -c && uvu -r esm tests", "uvu", "")],
            id="built by another script",
        ),
        pytest.param('"test": "vitest"', [("vitest", "vitest", "")], id="vitest"),
        pytest.param('"test": "cross-env A=b jest --ci"', [("A=b jest --ci", "jest", "")], id="jest"),
        pytest.param(
            '"test": "cross-env A=b nyc dotenv -e .env.test -- xvfb-run -a c8 --all cross-env C=d mocha"',
            [("A=b C=d dotenv -e .env.test -- xvfb-run -a mocha", "mocha", "")],
            id="wrappers that the tests need",
        ),
        pytest.param('"test": "jest && eslint ."', [("jest", "jest", "")], id="a linter is the last"),
        pytest.param(
            '"test": "run-s test:*", "test:unit": "jasmine", "test:dts": "tsc --noEmit", "test:cjs": "node test/a.js"',
            [("jasmine", "jasmine", ""), ("node test/a.js", "tap", "")],
            id="run-s",
        ),
        pytest.param(
            '"test": "npm run unit -- --grep x && playwright test", "unit": "mocha"',
            [("mocha --grep x", "mocha", "")],
            id="what needs a browser is left out",
        ),
        pytest.param('"test": "playwright test"', [], id="only what needs a browser"),
        pytest.param(
            '"test": "cypress run", "test:unit": "vitest run"', [("vitest run", "vitest", "")], id="another script"
        ),
        pytest.param('"test": "karma start"', [], id="karma"),
        pytest.param('"test": "eslint ."', [], id="only a linter"),
        pytest.param('"test": "lerna run test"', [], id="only a delegation"),
        pytest.param('"test": "node scripts/run.js"', [("npm test", "npm", "")], id="a script of the project"),
        pytest.param('"test": "(cd a; mocha) || true"', [("npm test", "npm", "")], id="more of the shell"),
        pytest.param('"test": "npm run test"', [("npm test", "npm", "")], id="a script that runs itself"),
        pytest.param('"test": "echo \'no test specified\' && exit 1"', [], id="npm's placeholder"),
    ],
)
def test_the_runner_behind_a_script_is_found(tmp_path: Path, scripts: str, suites: list[Found]) -> None:
    assert found(write(tmp_path, {"package.json": SCRIPTS % scripts})) == suites


@pytest.mark.parametrize(
    ("files", "suites"),
    [
        pytest.param(
            {"package.json": '{"devDependencies": {"vitest": "3"}}'}, [("vitest run", "vitest", "")], id="vitest"
        ),
        pytest.param({"package.json": '{"devDependencies": {"jest": "30"}}'}, [("jest", "jest", "")], id="jest"),
        pytest.param({"package.json": "{"}, [], id="broken package.json"),
        pytest.param({"package.json": '{"scripts": []}'}, [], id="strange package.json"),
        pytest.param({"package.json": '{"a":' * 5000}, [], id="deep package.json"),
        pytest.param({"go.mod": "module x\n", "a_test.go": ""}, [("go test ./...", "go", "")], id="go"),
        pytest.param({"go.mod": "module x\n", "a.go": ""}, [], id="go without tests"),
        pytest.param(
            {"go.work": "", "a/go.mod": "", "a/a_test.go": "", "b/go.mod": "", "b/c/b_test.go": ""},
            [("go test ./...", "go", "a"), ("go test ./...", "go", "b")],
            id="go modules",
        ),
        pytest.param({"Cargo.toml": "[package]"}, [("cargo test --no-fail-fast", "cargo", "")], id="cargo"),
        pytest.param(
            {
                "Cargo.toml": "[workspace]\nexclude = ['c']\n",
                "a/Cargo.toml": "",
                "b/a/Cargo.toml": "",
                "c/Cargo.toml": "",
            },
            [("cargo test --workspace --no-fail-fast", "cargo", ""), ("cargo test --no-fail-fast", "cargo", "c")],
            id="cargo workspace",
        ),
        pytest.param({"pom.xml": "", "core/pom.xml": ""}, [("mvn test", "maven", "")], id="maven"),
        pytest.param(
            {"package.json": '{"scripts": {"test": "bun test --bail"}}', "a.test.ts": ""},
            [("bun test --bail", "bun", "")],
            id="bun",
        ),
        pytest.param(
            {"deno.json": '{"tasks": {"test": "deno test -A src"}}', "src/deno.json": "{}", "src/a_test.ts": ""},
            [("deno test -A src", "deno", "")],
            id="task of Deno",
        ),
        pytest.param(
            {"deno.jsonc": "// settings", "a.test.tsx": ""}, [("deno test --allow-all", "deno", "")], id="deno"
        ),
        pytest.param({"deno.json": "{}", "latest.ts": ""}, [], id="deno without tests"),
        pytest.param(
            {"build.gradle": "", "gradlew": "", "app/build.gradle": ""},
            [("./gradlew cleanTest test", "gradle", "")],
            id="gradle",
        ),
        pytest.param(
            {
                "CMakeLists.txt": "project(x)\noption(X_BUILD_TESTS 'a' OFF)\n",
                "tests/CMakeLists.txt": "add_test(a b)\n",
            },
            [
                (
                    (
                        f"cmake -S . -B {BUILD} -DBUILD_TESTING=ON -DX_BUILD_TESTS=ON && cmake --build {BUILD}"
                        f" && ctest --test-dir {BUILD}"
                    ),
                    "ctest",
                    "",
                )
            ],
            id="ctest",
        ),
        pytest.param({"CMakeLists.txt": "project(x)\n"}, [], id="cmake without tests"),
        pytest.param(
            {"meson.build": "project('x')\ntest('a', b)\n", "meson_options.txt": "option('tests', type: 'boolean')"},
            [(f"meson setup {BUILD} -Dtests=true && meson test -C {BUILD}", "meson", "")],
            id="meson",
        ),
        pytest.param(
            {"configure.ac": "", "Makefile.am": "TESTS = a\n"},
            [
                (
                    f"cp -R . {BUILD} && cd {BUILD} && autoreconf -fi && ./configure && make -k check",
                    "autotools",
                    "",
                )
            ],
            id="autotools",
        ),
        pytest.param({".rspec": "", "spec/a_spec.rb": ""}, [("rspec", "rspec", "")], id="rspec"),
        pytest.param(
            {"Gemfile": "", "spec/a_spec.rb": "", "environment/bin/bundle": "#!/bin/sh\n"},
            [("bundle exec rspec", "rspec", "")],
            id="rspec of a bundle",
        ),
        pytest.param(
            {"Rakefile": "Rake::TestTask.new", "test/a_test.rb": ""}, [("rake test", "minitest", "")], id="rake"
        ),
        pytest.param({"phpunit.xml.dist": ""}, [("phpunit", "phpunit", "")], id="phpunit"),
        pytest.param({"Makefile.PL": "", "t/a.t": ""}, [("prove -lr t", "prove", "")], id="Perl"),
        pytest.param({"cpanfile": "", "t/unit/a.t": ""}, [("prove -lr t", "prove", "")], id="Perl, in folders"),
        pytest.param({"Package.swift": ""}, [("swift test", "swift", "")], id="swift"),
        pytest.param(
            {"A.sln": "", "a/a.csproj": "Microsoft.NET.Test.Sdk"}, [("dotnet test", "dotnet", "")], id="dotnet"
        ),
        pytest.param({"win32/a.sln": "", "win32/a.vcxproj": ""}, [], id="a solution without .NET"),
        pytest.param({"Makefile": "all:\n\ntest : all\n\ttrue\n"}, [("make test", "make", "")], id="make"),
        pytest.param({"Makefile": "check:\n\t@prove -l t/a.t\n"}, [("prove -l t/a.t", "prove", "")], id="behind make"),
        pytest.param(
            {"Makefile": "test:\n\tPERL5LIB=$$PWD/lib prove t/a.t\n"},
            [("PERL5LIB=$PWD/lib prove t/a.t", "prove", "")],
            id="behind make, with a variable of the shell",
        ),
        pytest.param(
            {"Makefile": "test:\n\tprove $@.t\n"}, [("make test", "make", "")], id="make with a variable of its own"
        ),
        pytest.param({"Makefile": "test := 3\nlatest:\n"}, [], id="make without a target"),
    ],
)
def test_suites_of_other_projects_are_found(tmp_path: Path, files: dict[str, str], suites: list[Found]) -> None:
    assert found(write(tmp_path, files)) == suites


def test_a_makefile_is_the_last_resort(tmp_path: Path) -> None:
    root = write(tmp_path, {**WITH_PYTEST, "test_a.py": PLAIN, "Makefile": "test:\n\ttrue\n"})

    assert found(root) == [PYTEST]


def test_no_test_of_a_monorepo_belongs_to_two_suites(tmp_path: Path) -> None:
    files = {
        **WITH_PYTEST,
        "tests/test_all.py": PLAIN,
        "services/api/pyproject.toml": "[project]\nname = 'api'\n",
        "services/api/tests/test_a.py": PLAIN,
        "services/web/package.json": PACKAGE % "mocha",
        "package.json": SCRIPTS % '"test": "npm test --workspaces"',
    }

    suites = found(write(tmp_path, files))

    assert suites == [
        ("python3 -m pytest --ignore=services/api", "pytest", ""),
        ("python3 -m pytest", "pytest", "services/api"),
        ("mocha", "mocha", "services/web"),
    ]


def test_test_paths_of_the_top_cover_the_projects_that_they_name(tmp_path: Path) -> None:
    files = {
        **WITH_PYTEST,
        "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['a/tests']\n",
        "a/pyproject.toml": "[project]\nname = 'a'\n",
        "a/tests/test_a.py": PLAIN,
        "b/pyproject.toml": "[project]\nname = 'b'\n",
        "b/tests/test_b.py": PLAIN,
    }

    assert [suite.folder for suite in find(write(tmp_path, files))] == ["", "b"]


@pytest.mark.parametrize("script", ["jest", "mocha 'packages/*/test'"])
def test_a_runner_at_the_top_covers_the_packages_below(tmp_path: Path, script: str) -> None:
    files = {"package.json": PACKAGE % script, "packages/a/package.json": PACKAGE % "jest"}

    assert [suite.folder for suite in find(write(tmp_path, files))] == [""]


@pytest.mark.parametrize(
    "folder",
    [
        "node_modules/a",
        "vendor/a",
        "third_party",
        ".venv",
        "build",
        "dist",
        "target",
        "tests/fixtures",
        "testdata",
        "docs",
    ],
)
def test_what_is_fetched_made_or_data_is_no_suite(tmp_path: Path, folder: str) -> None:
    assert found(write(tmp_path, {f"{folder}/package.json": PACKAGE % "mocha"})) == []


def test_the_search_has_limits(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 30)
    files = {f"packages/{number}/package.json": PACKAGE % "mocha" for number in range(40)}
    root = write(tmp_path, {**files, f"{deep}/package.json": PACKAGE % "mocha"})
    (root / "loop").symlink_to(root)

    suites = find(root)

    assert len(suites) == 30
    assert all(suite.folder.startswith("packages/") for suite in suites)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:

    os.mkfifo(tmp_path / "package.json")

    assert project_files.read_text(tmp_path / "package.json") == ""
    assert found(tmp_path) == []


def test_what_a_change_concerns_comes_first() -> None:
    top, api, web, docs = (
        Suite(command="a", kind="pytest"),
        Suite(command="b", kind="pytest", folder="api"),
        Suite(command="c", kind="mocha", folder="web"),
        Suite(command="d", kind="mocha"),
    )

    assert in_order((top, api, web, docs), ["web/a.js"]) == (web, top, api, docs)
    assert in_order((top, api, web, docs), ["web/a.py"]) == (top, api, web, docs)
    assert in_order((top, api, web, docs), ["api/a.py", "b.js"]) == (api, docs, top, web)
    assert in_order((top, api, web, docs), []) == (top, api, web, docs)
    # A submodule that was moved to another commit.
    assert in_order((top, api, web, docs), ["web"]) == (web, top, api, docs)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("pytest -q", "pytest"),
        ("python -m pytest tests -k 'a or b'", "pytest"),
        (".venv/bin/pytest", "pytest"),
        ("PYTHONPATH=src uv run pytest -q", "pytest"),
        ("ruff check . && pytest -q", "pytest"),
        ("coverage run --branch -m pytest -q", "pytest"),
        ("python -m coverage run -m unittest", "unittest"),
        ("pytest -q && ruff check .", "custom"),
        ("pytest -q | tee log", "custom"),
        ("pytest -q; true", "custom"),
        ("(cd api && python -m unittest)", "custom"),
        ("bash -c 'cd api && pytest'", "custom"),
        ("pytest-watch", "custom"),
        ("python -I -m pytest", "custom"),
        ("echo 'pytest", "custom"),
        ("pytest $(ls)", "custom"),
        ("python3 -m unittest discover -s tests", "unittest"),
        ("python manage.py test polls", "unittest"),
        ("python3 manage.py migrate", "custom"),
        ("node --test tests/", "node"),
        ("node --import tsx --test", "node"),
        ("npx vitest run", "vitest"),
        ("yarn jest", "jest"),
        ("pnpm exec mocha", "mocha"),
        ("npx c8 -r html mocha", "mocha"),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", "jest"),
        ("npm test", "npm"),
        ("yarn test", "npm"),
        ("npm run test -- --coverage", "npm"),
        ("pnpm run -s test:unit", "npm"),
        ("bun run test", "npm"),
        ("bun test", "bun"),
        ("npm run lint", "custom"),
        ("npm test --workspaces", "custom"),
        ("go test -race ./...", "go"),
        ("cargo +nightly test", "cargo"),
        ("cargo nextest run", "nextest"),
        ("cargo build", "custom"),
        ("./gradlew test", "gradle"),
        ("mvn -q verify", "maven"),
        ("bundle exec rspec", "rspec"),
        ("bundle exec rake test", "minitest"),
        ("vendor/bin/phpunit --testdox", "phpunit"),
        ("prove -lr t", "prove"),
        ("ctest --test-dir build", "ctest"),
        ("make test", "make"),
        ("makepkg", "custom"),
        ("./run-tests.sh", "custom"),
        ("a" * 100_000, "custom"),
    ],
)
def test_a_runner_that_is_called_plainly_is_recognised(command: str, kind: Kind) -> None:
    assert configured(command) == Suite(command=command, kind=kind)
