"""Finds the test suites of projects that are built first: Go, Rust, Java, C and C++, Swift, .NET."""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from iterdev.host.test_suites.projects.files import ProjectFiles, is_inside, table
from iterdev.host.test_suites.runners import BUILD
from iterdev.host.test_suites.suite import Suite, Works

DEPTH = 4
_ASIDE = frozenset({"examples", "example", "docs", "doc", "test", "tests", "testing", "benchmarks", "templates"})
_DOTNET_TESTS = re.compile(r"Microsoft\.NET\.Test\.Sdk|MSTest\.Sdk|<IsTestProject>\s*true", re.IGNORECASE)
_FOLDER = f'"${{{BUILD}:-build}}"'


def find(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    yield from _go(files)
    yield from _cargo(files, works)
    yield from _java(files, works)
    yield from _native(files, works)
    yield from _swift(files)
    yield from _dotnet(files)


def _folders(files: ProjectFiles, *names: str) -> list[str]:
    return [
        folder
        for folder in files.with_file(*names)
        if len(folder.split("/")) <= DEPTH and not _ASIDE.intersection(folder.split("/"))
    ]


def _outermost(folders: Sequence[str]) -> Iterator[str]:
    """Those that are not inside of another one, which builds them."""
    for folder in folders:
        if not any(is_inside(folder, other) and other != folder for other in folders):
            yield folder


def _any_file(files: ProjectFiles, folder: str, matches: Callable[[str], bool]) -> bool:
    return any(matches(name) for where in files.below(folder) for name in files.folders[where])


def _go(files: ProjectFiles) -> Iterator[Suite]:
    """`./...` ends where another module starts."""
    for folder in _folders(files, "go.mod"):
        if _any_file(files, folder, lambda name: name.endswith("_test.go")):
            yield Suite(command="go test ./...", kind="go", folder=folder)


def _cargo(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    workspaces: dict[str, list[str]] = {}
    for folder in _folders(files, "Cargo.toml"):
        manifest = files.toml(folder, "Cargo.toml")
        outer = [other for other in workspaces if is_inside(folder, other) and other != folder]
        if "workspace" in manifest:
            workspaces[folder] = _excluded(manifest, folder)
        elif any(not _is_excluded(folder, workspaces[other]) for other in outer):
            continue
        scope = " --workspace" if "workspace" in manifest else ""
        configured = (files.root / folder / ".config/nextest.toml").exists()
        if configured and works(("cargo", "nextest", "--version")):
            yield Suite(command=f"cargo nextest run{scope} --no-fail-fast", kind="nextest", folder=folder)
        else:
            yield Suite(command=f"cargo test{scope} --no-fail-fast", kind="cargo", folder=folder)


def _excluded(manifest: object, folder: str) -> list[str]:
    value = table(manifest, "workspace").get("exclude") if isinstance(manifest, dict) else None
    return (
        [f"{folder}/{path}".lstrip("/") for path in value if isinstance(path, str)] if isinstance(value, list) else []
    )


def _is_excluded(folder: str, excluded: Sequence[str]) -> bool:
    return any(is_inside(folder, path.rstrip("/")) or fnmatchcase(folder, path) for path in excluded)


def _java(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    for folder in _outermost(_folders(files, "pom.xml")):
        wrapper = "mvnw" in files.folders[folder] and not works(("mvn", "--version"))
        yield Suite(command=f"{'./mvnw' if wrapper else 'mvn'} test", kind="maven", folder=folder)
    gradle = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
    for folder in _outermost(_folders(files, *gradle)):
        if "pom.xml" not in files.folders[folder]:
            program = "./gradlew" if "gradlew" in files.folders[folder] else "gradle"
            yield Suite(command=f"{program} cleanTest test", kind="gradle", folder=folder)


def _native(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    """One of the build systems of a folder: the first that has tests and whose program is there, else the first."""
    folders = _folders(files, "CMakeLists.txt", "meson.build", "configure.ac", "configure.in")
    for folder in _outermost(folders):
        found = [suite for suite in (_cmake(files, folder), _meson(files, folder), _autotools(files, folder)) if suite]
        programs = {"ctest": "cmake", "meson": "meson", "autotools": "make"}
        if found:
            yield next((suite for suite in found if works((programs[suite.kind], "--version"))), found[0])


def _cmake(files: ProjectFiles, folder: str) -> Suite | None:
    lists = [files.text(where, "CMakeLists.txt") for where in files.below(folder)]
    scripts = [files.text(w, n) for w in files.below(folder) for n in files.folders[w] if n.endswith(".cmake")]
    tests = r"^[ \t]*(?:add_test|gtest_discover_tests|catch_discover_tests|doctest_discover_tests|enable_testing)\s*\("
    if not re.search(r"^[ \t]*project\s*\(", lists[0] if lists else "", re.MULTILINE | re.IGNORECASE):
        return None
    if not any(re.search(tests, text, re.MULTILINE | re.IGNORECASE) for text in (*lists, *scripts)):
        return None
    options = "".join(f" -D{name}=ON" for name in ("BUILD_TESTING", *_test_options(lists)))
    steps = (f"cmake -S . -B {_FOLDER}{options}", f"cmake --build {_FOLDER}", f"ctest --test-dir {_FOLDER}")
    return Suite(command=" && ".join(steps), kind="ctest", folder=folder)


_SWITCH = re.compile(r"^[ \t]*option\s*\(\s*(\w+)\s", re.MULTILINE | re.IGNORECASE)
_TEST_SWITCH = re.compile(
    r"(?:\w*_)?(?:UNIT)?TEST(?:S|ING)?(?:_ENABLED)?|(?:BUILD|ENABLE|WITH)_\w*TESTS?", re.IGNORECASE
)
_OTHER_SWITCH = re.compile(
    r"WITHOUT|DISABLE|(?:^|_)NO_|SKIP|FUZZ|BENCH|PERF|INSTALL|EXTERNAL|SYSTEM|COVERAGE", re.IGNORECASE
)


def _test_options(lists: Sequence[str]) -> list[str]:
    """The project's own switches for its tests, such as FOO_BUILD_TESTS."""
    names = dict.fromkeys(name for text in lists for name in _SWITCH.findall(text) if name != "BUILD_TESTING")
    return [name for name in names if _TEST_SWITCH.fullmatch(name) and not _OTHER_SWITCH.search(name)]


def _meson(files: ProjectFiles, folder: str) -> Suite | None:
    texts = [files.text(where, "meson.build") for where in files.below(folder)]
    if not any(re.search(r"^[ \t]*(?:test|gnome\.test)\s*\(", text, re.MULTILINE) for text in texts):
        return None
    options = files.text(folder, "meson_options.txt") + files.text(folder, "meson.options")
    switches = re.findall(r"option\(\s*'(\w{1,100})'\s*,\s*type\s*:\s*'(boolean|feature)'", options)
    values = {"boolean": "true", "feature": "enabled"}
    flags = "".join(f" -D{name}={values[kind]}" for name, kind in switches if "test" in name)
    return Suite(command=f"meson setup {_FOLDER}{flags} && meson test -C {_FOLDER}", kind="meson", folder=folder)


def _autotools(files: ProjectFiles, folder: str) -> Suite | None:
    """Built in a copy, because the build writes beside its sources."""
    makefiles = [files.text(where, "Makefile.am") for where in files.below(folder)]
    if not any(
        re.search(r"^(?:TESTS|check_PROGRAMS|TESTSUITE|check-local)\b", text, re.MULTILINE) for text in makefiles
    ):
        return None
    configure = "" if "configure" in files.folders[folder] else "autoreconf -fi && "
    steps = f"cp -R . {_FOLDER} && cd {_FOLDER} && {configure}./configure && make -k check"
    return Suite(command=steps, kind="autotools", folder=folder)


def _swift(files: ProjectFiles) -> Iterator[Suite]:
    for folder in _outermost(_folders(files, "Package.swift")):
        yield Suite(command="swift test", kind="swift", folder=folder)


def _dotnet(files: ProjectFiles) -> Iterator[Suite]:
    """A solution builds its projects; without one, every project with tests is its own suite.

    C and C++ libraries have solutions too, without any project of .NET.
    """
    tested = [folder for folder, names in files.folders.items() if _has_dotnet_tests(files, folder, names)]
    solutions = [f for f, names in files.folders.items() if any(name.endswith((".sln", ".slnx")) for name in names)]
    for solution in _outermost(solutions):
        if any(is_inside(folder, solution) for folder in tested):
            yield Suite(command="dotnet test", kind="dotnet", folder=solution)
    for folder in tested:
        if not any(is_inside(folder, solution) for solution in solutions):
            yield Suite(command="dotnet test", kind="dotnet", folder=folder)


def _has_dotnet_tests(files: ProjectFiles, folder: str, names: frozenset[str]) -> bool:
    projects = (name for name in names if name.endswith((".csproj", ".fsproj", ".vbproj")))
    return any(_DOTNET_TESTS.search(files.text(folder, name)) for name in projects)
