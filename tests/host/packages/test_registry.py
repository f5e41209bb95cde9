"""Packages of every ecosystem, looked up and judged by its own tools."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import anyio
import pytest

from iterdev.core.collaboration.external_packages import PackageCheck
from iterdev.core.results import Dependency
from iterdev.host.packages import registry
from iterdev.host.packages.shell import Shell
from iterdev.host.processes.spawn import Supervisor

CARGO = """\
#!/bin/sh
# Plays cargo, which is not installed everywhere: takes any requirement but one, as it says it for two local crates.
if [ "$1" = search ]; then
    printf 'serde-json = "9.0.0"    # A crate of a similar name\\n%s = "2.0.1"    # A framework\\n' "${5:-none}"
    echo '... and 1024 crates more (use --limit N to see more)'
    exit
fi
grep -q '"serde" = .*version = "^1.0"' Cargo.toml && grep -q '^version = "2' ../crate/Cargo.toml && exit 101
grep -q '^version = "2' ../crate/Cargo.toml && exit 0
[ "$1" = metadata ] && grep -q '^name = "serde"' ../crate/Cargo.toml || exit 1
grep -q '^version = "1.0.200"' ../crate/Cargo.toml || exit 1
grep -q '"serde" = .*version = ">=2"' Cargo.toml && exit 101
exit 0
"""
GO = """\
#!/bin/sh
# Plays go: has no module at hand to list, shows go.mod, and answers one query from the proxy it is given.
case "$*" in
    "mod edit -json") echo '{"Require": [{"Path": "example.com/Lib", "Version": "v1.3.2"}]}' ;;
    *"example.com/Lib@>=v1.3.0") cat "${GOPROXY#file://}/example.com/!lib/@v/list" ;;
    *@*) echo 'go: no matching versions for query' >&2; exit 1 ;;
    *) echo "go: module lookup disabled by GOPROXY=$GOPROXY" >&2; exit 1 ;;
esac
"""
JAVA = """\
#!/bin/sh
# Plays a JDK with Maven's classes: one range fits, one is none.
[ "$1" = -cp ] && grep -q VersionRange "$3" || exit 9
case "$4" in
    "[1.0,2.0)") echo 1.5 ;;
    "[1") echo 'org.apache.maven.artifact.versioning.InvalidVersionSpecificationException: Unbounded' >&2; exit 1 ;;
esac
"""


class Project:
    """A project's folder, with a PATH on which programs can be put."""

    def __init__(self, root: Path) -> None:
        self.tree, self.home, self.bin, self.temp = (root / name for name in ("tree", "home", "bin", "tmp"))
        for folder in (self.tree, self.home, self.bin, self.temp):
            folder.mkdir()
        self.path = [str(self.bin), *os.environ["PATH"].split(os.pathsep)]
        self.env: dict[str, str] = {}

    def write(self, name: str, text: str) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def install(self, name: str, text: str) -> None:
        program = self.bin / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def look(self, source: str, name: str, version_range: str) -> PackageCheck:
        dependency = Dependency(name=name, version_range=version_range, source=source)
        return anyio.run(self._ask, lambda shell: registry.check(dependency, shell))

    def news(self, source: str, name: str, version_range: str, actual: str) -> str:
        dependency = Dependency(name=name, version_range=version_range, source=source)
        return anyio.run(self._ask, lambda shell: registry.update(dependency, actual, shell))

    async def _ask(self, question: object) -> object:
        env = {"PATH": os.pathsep.join(self.path), "HOME": str(self.home), **self.env}
        async with Supervisor() as supervisor:
            return await question(Shell(tree=self.tree, temp=self.temp, env=env, spawn=supervisor.spawn))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def found(checked: PackageCheck) -> tuple[str, str | None]:
    return checked.status.value, checked.actual_version


def with_python(project: Project) -> None:
    """An environment of the project's own, with one package in it and no pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.tree / ".venv"], check=True)
    (packages,) = (project.tree / ".venv").glob("lib/python*/site-packages")
    (packages / "lib-2.5rc1.dist-info").mkdir()
    (packages / "lib-2.5rc1.dist-info" / "METADATA").write_text("Name: lib\nVersion: 2.5rc1\n", encoding="utf-8")


@pytest.mark.requirement("R133")
def test_a_python_package_is_looked_up_in_the_projects_own_environment(project: Project) -> None:
    with_python(project)

    assert found(project.look("pip", "lib", ">=2,<3")) == ("ok", "2.5rc1")
    assert found(project.look("pypi", "lib", "*")) == ("ok", "2.5rc1")
    assert found(project.look("pip", "lib[more,most]", ">=2")) == ("ok", "2.5rc1")
    assert found(project.look("pip", "lib", "~=3.0")) == ("mismatch", "2.5rc1")
    assert project.look("pip", "lib", "<2").reason == "expected <2, got 2.5rc1"
    assert "not a version specifier" in project.look("pip", "lib", "^2").reason
    assert found(project.look("pip", "other", "")) == ("missing", None)
    assert project.news("pip", "lib", ">=2", "2.5rc1") == ""


@pytest.mark.requirement("R133")
def test_a_node_package_is_judged_by_npms_own_semver(project: Project) -> None:
    project.write("node_modules/@a/lib/package.json", '{"version": "1.5.0"}')

    assert found(project.look("npm", "@a/lib", "^1.2.0 || 3.x")) == ("ok", "1.5.0")
    assert found(project.look("npm", "@a/lib", "")) == ("ok", "1.5.0")
    assert found(project.look("npm", "@a/lib", "~1.4")) == ("mismatch", "1.5.0")
    assert "not a range of npm" in project.look("npm", "@a/lib", "newest!").reason
    assert project.look("npm", "other", "1").reason == "it is not in node_modules"


@pytest.mark.requirement("R133")
def test_a_crate_stands_in_the_lock_file_and_cargo_judges_it(project: Project) -> None:
    project.install("cargo", CARGO)
    project.write("Cargo.lock", '[[package]]\nname = "serde"\nversion = "1.0.200"\n')

    assert found(project.look("cargo", "serde", "^1.0")) == ("ok", "1.0.200")
    assert found(project.look("crates.io", "serde", ">=2")) == ("mismatch", "1.0.200")
    assert project.look("cargo", "rand", "1").reason == "it is not in Cargo.lock"
    assert list(project.temp.iterdir()) == []


@pytest.mark.requirement("R133")
def test_a_go_module_stands_in_go_mod_and_a_bare_version_is_the_least_one(project: Project) -> None:
    project.install("go", GO)

    assert found(project.look("go", "example.com/Lib", "v1.3.0")) == ("ok", "v1.3.2")
    assert found(project.look("go", "example.com/Lib", "v1.4.0")) == ("mismatch", "v1.3.2")
    assert found(project.look("go", "example.com/other", "v1")) == ("missing", None)
    assert list(project.temp.iterdir()) == []


@pytest.mark.requirement("R133")
def test_an_artifact_is_looked_up_in_the_local_repository_and_judged_by_maven(project: Project) -> None:
    project.install("java", JAVA)
    project.install("../maven/bin/mvn", "#!/bin/sh\n")
    (project.bin / "mvn").symlink_to("../maven/bin/mvn")
    local = project.home / ".m2" / "repository" / "org" / "example" / "lib" / "1.5"
    local.mkdir(parents=True)
    (local / "lib-1.5.pom").touch()

    assert found(project.look("maven", "org.example:lib", "[1.0,2.0)")) == ("ok", "1.5")
    assert found(project.look("maven", "org.example:lib", "")) == ("ok", "1.5")
    assert found(project.look("maven", "org.example:lib", "[2.0,)")) == ("mismatch", "1.5")
    assert "not a range of Maven" in project.look("maven", "org.example:lib", "[1").reason
    assert found(project.look("maven", "org.example:other", "")) == ("missing", None)


def with_repository(project: Project) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
    top = project.home / "lib.git"
    git = ["git", "-C", str(top)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(top)], check=True)
    subprocess.run([*git, *who, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    for tag in ("v1.2", "v1.10", "v2.0"):
        subprocess.run([*git, "tag", tag], check=True)
    return str(top)


@pytest.mark.requirement("R133")
def test_a_git_repository_has_tags_branches_and_commits(project: Project) -> None:
    address = with_repository(project)
    commit = subprocess.run(
        ["git", "-C", address, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()

    assert found(project.look("git", address, "v1.*")) == ("ok", "v1.10")
    assert found(project.look("git", address, "main")) == ("ok", "main")
    assert found(project.look("git", address, commit)) == ("ok", commit)
    assert found(project.look("git", address, "")) == ("ok", commit)
    assert found(project.look("git", address, "v3")) == ("mismatch", "v2.0")
    gone = project.look("git", f"{address}-gone", "v1")
    assert (gone.status.value, gone.reason.startswith("fatal: ")) == ("missing", True)
    assert project.look("git", "--upload-pack=touch", "v1").reason == "it is not the name of a package"


def index_of(project: Project, **releases: list[str]) -> str:
    """A package index in a folder: a page for each package, with a link to each release."""
    for name, versions in releases.items():
        page = project.home / "index" / name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text("".join(f'<a href="{name}-{one}.tar.gz">{name}-{one}.tar.gz</a>\n' for one in versions))
    return (project.home / "index").as_uri()


UV = """\
#!/bin/sh
# Plays uv, which is not installed everywhere: resolves the one package that the file names.
case "$*" in "pip compile"*"--python $PWD/.venv/bin/python "*) ;; *) exit 9 ;; esac
for file; do :; done
echo "$(cat "$file")==2.1"
"""


@pytest.mark.requirement("R142")
@pytest.mark.parametrize("interpreter", ["project's own", "on the path"])
def test_a_newer_release_of_a_python_package_is_found_in_the_index(project: Project, interpreter: str) -> None:
    project.env = {
        "PIP_INDEX_URL": index_of(project, lib=["1.9", "1.10", "2.1", "3.0b1"]),
        "PIP_CONFIG_FILE": os.devnull,
    }
    project.path.insert(0, str(Path(sys.executable).parent))
    if interpreter == "project's own":
        (project.tree / ".venv").symlink_to(sys.prefix)

    assert project.news("pip", "lib", ">=1,<2", "1.10") == "2.1"
    assert project.news("pip", "lib", ">=1", "1.10") == ""
    assert project.news("pip", "lib", "<2.1", "2.1") == ""
    assert project.news("pip", "lib", "^1", "1.10") == ""
    assert project.news("pip", "other", "<1", "0.9") == ""


@pytest.mark.requirement("R142")
def test_where_there_is_no_pip_uv_finds_a_newer_release(project: Project) -> None:
    with_python(project)
    project.install("uv", UV)
    project.install("python3", "#!/bin/sh\nexit 1\n")

    assert project.news("pip", "lib", "<2", "1.10") == "2.1"
    assert project.news("pip", "lib[more]", "<2", "1.10") == "2.1"
    assert project.news("pip", "lib", ">=2", "2.0") == ""
    assert list(project.temp.iterdir()) == []


@pytest.mark.requirement("R142")
def test_a_newer_release_of_a_node_package_is_found_in_the_registry(project: Project) -> None:
    project.write("node_modules/lib/package.json", '{"version": "1.5.0"}')
    with registry_of(lib=["1.5.0", "2.0.0"]) as address:
        project.env = {"npm_config_registry": address, "npm_config_cache": str(project.home / "cache")}
        beyond, allowed = (project.news("npm", "lib", asked, "1.5.0") for asked in ("^1.2.0", ">=1"))

    assert (beyond, allowed) == ("2.0.0", "")


@contextmanager
def registry_of(**releases: list[str]) -> Iterator[str]:
    """A registry of npm, with nothing in it but the versions of some packages."""

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            versions = releases.get(self.path.strip("/").partition("?")[0], [])
            body = {"dist-tags": {"latest": versions[-1]}, "versions": {one: {"version": one} for one in versions}}
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(json.dumps({"name": self.path.strip("/"), **body}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.requirement("R142")
def test_a_newer_release_of_a_crate_is_found_among_crates_of_similar_names(project: Project) -> None:
    project.install("cargo", CARGO)

    assert project.news("cargo", "serde", "^1.0", "1.0.200") == "2.0.1"
    assert project.news("cargo", "serde", ">=1", "1.0.200") == ""


@pytest.mark.requirement("R142")
def test_only_a_release_that_the_range_leaves_out_is_news(project: Project) -> None:
    address = with_repository(project)

    assert project.news("git", address, "v1.*", "v1.10") == "v2.0"
    assert project.news("git", address, "v*", "v2.0") == ""
    assert project.news("git", address, "main", "main") == ""
    assert project.news("maven", "org.example:lib", "[1,2)", "1.5") == ""


@pytest.mark.parametrize("source", ["pip", "npm", "cargo", "go", "maven", "git"])
def test_without_its_tool_a_package_counts_as_missing_and_the_reason_says_so(project: Project, source: str) -> None:
    project.path = [str(project.bin)]
    project.write("node_modules/lib/package.json", '{"version": "1.5.0"}')
    project.write("Cargo.lock", '[[package]]\nname = "lib"\nversion = "1.0.0"\n')
    local = project.home / ".m2" / "repository" / "g" / "lib" / "1.5"
    local.mkdir(parents=True)
    (local / "lib-1.5.pom").touch()

    checked = project.look(source, {"maven": "g:lib", "git": "/lib.git"}.get(source, "lib"), "1")

    assert checked.status == "missing"
    assert checked.reason.endswith("is not installed, so the package cannot be checked")


@pytest.mark.parametrize("name", ["-rf", "../../etc", "a b", ""])
def test_what_is_not_the_name_of_a_package_is_not_asked_for(project: Project, name: str) -> None:
    assert project.look("npm", name, "1").reason == "it is not the name of a package"


def test_a_source_that_is_not_given_is_the_only_one_that_the_project_speaks_of(project: Project) -> None:
    project.write("node_modules/lib/package.json", '{"version": "1.5.0"}')
    nothing = project.look("unknown", "lib", "1.x")
    project.write("package.json", "{}")
    one = project.look("unknown", "lib", "1.x")
    project.write("go.mod", "module m\n")
    two = project.look("unknown", "lib", "1.x")
    foreign = project.look("apt", "lib", "1.x")

    assert [checked.status.value for checked in (nothing, one, two, foreign)] == ["missing", "ok", "missing", "missing"]
    assert "is not one of pip, npm, cargo, go, maven, git" in foreign.reason
    assert one.source == "unknown"
