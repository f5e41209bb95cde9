import ast
from pathlib import Path

import msgspec
import pytest

from iterdev.host import python_source
from iterdev.host.static_checks import ChangedFile, Checked, PythonFile, check


def write(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return list(files)


def parsed(name: str, content: bytes | None) -> PythonFile | None:
    if content is None or not name.endswith(".py"):
        return None
    return msgspec.convert(python_source.read(content, name), PythonFile)


def checked(
    root: Path,
    changed: list[str],
    planned: list[str] | None = None,
    before: dict[str, str] | None = None,
    ignored: tuple[str, ...] = (),
) -> Checked:
    """What is found in files that are new, or were like this before."""
    files: dict[str, ChangedFile] = {}
    for name in changed:
        path, old = root / name, (before or {}).get(name)
        after, was = path.read_bytes() if path.is_file() else None, old.encode() if old is not None else None
        files[name] = ChangedFile(
            before=was, after=after, python_before=parsed(name, was), python_after=parsed(name, after)
        )
    return check(root, files, planned or [], lambda paths: set(paths).intersection(ignored))


def found(root: Path, changed: list[str], planned: list[str] | None = None) -> list[str]:
    """What may be wrong with new files."""
    result = checked(root, changed, planned)
    assert not result.faults
    return list(result.doubts)


@pytest.mark.requirement("R170")
def test_a_change_without_faults_has_no_problems(tmp_path: Path) -> None:
    changed = write(
        tmp_path,
        {
            "app.py": "import os\nimport json\nimport helper\nfrom helper import x\n",
            "helper.py": "x = 1\n",
            "data.json": '{"a": [1, 2.5, null]}',
            "conf.toml": "[a]\nb = 1\n",
            "notes.md": "# anything {",
        },
    )

    assert found(tmp_path, changed, ["app.py", "notes.md"]) == []


@pytest.mark.requirement("R170")
def test_a_syntax_error_is_named_with_its_line(tmp_path: Path) -> None:
    changed = write(tmp_path, {"app.py": "x = 1\ndef f(:\n"})

    (problem,) = found(tmp_path, changed)

    assert problem.startswith("app.py:2: ")


@pytest.mark.requirement("R170")
@pytest.mark.parametrize(
    ("name", "text"),
    [("data.json", "{"), ("data.json", ""), ("conf.toml", "a = \n"), ("conf.toml", "[a\n")],
)
def test_a_file_that_cannot_be_read_by_its_kind_is_named(tmp_path: Path, name: str, text: str) -> None:
    (problem,) = found(tmp_path, write(tmp_path, {name: text}))

    assert problem.startswith(f"{name}: ")


@pytest.mark.parametrize("file", ["app.py", "data.json", "conf.toml"])
@pytest.mark.parametrize(
    "body", [b"\0\0", b"\xff\xfe\xfa", b"(" * 5000, b"[" * 200_000], ids=["nul", "bytes", "(", "["]
)
def test_nonsense_is_a_problem_and_no_defect(tmp_path: Path, file: str, body: bytes) -> None:
    (tmp_path / file).write_bytes(body)

    (problem,) = found(tmp_path, [file])

    assert problem.startswith(file)


@pytest.mark.requirement("R170")
def test_planned_files_must_be_there(tmp_path: Path) -> None:
    changed = write(tmp_path, {"app.py": ""})

    assert found(tmp_path, changed, ["app.py", "deep/more.py"]) == ["deep/more.py was planned and does not exist"]


def test_a_deleted_file_is_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path, ["gone.py", "gone.json"]) == []


def test_a_folder_and_a_dangling_link_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "link.json").symlink_to("nowhere")

    assert found(tmp_path, ["folder.py", "link.json"]) == []


@pytest.mark.parametrize(
    "name", ["tsconfig.json", "web/tsconfig.base.json", "jsconfig.json", ".vscode/settings.json", ".eslintrc.json"]
)
def test_comments_are_allowed_where_the_readers_of_a_file_allow_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{\n  // a comment\n  "a": 1,\n}\n')

    assert found(tmp_path, [name]) == []


def test_a_doubtful_escape_is_no_problem(tmp_path: Path) -> None:
    changed = write(tmp_path, {"app.py": 'import re\nPATTERN = re.compile("\\d+")\n'})

    assert found(tmp_path, changed) == []


@pytest.mark.requirement("R170")
@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import shop.basket", "shop.basket"),
        ("from shop.basket import Basket", "shop.basket"),
        ("from .basket import Basket", ".basket"),
        ("from ..market import stall", "..market"),
        ("import shop.till.drawer", "shop.till.drawer"),
    ],
)
def test_an_import_of_an_own_module_that_does_not_exist_is_named_with_its_line(
    tmp_path: Path, line: str, module: str
) -> None:
    write(tmp_path, {"shop/__init__.py": "", "shop/till.py": "", "top.py": ""})
    changed = write(tmp_path, {"shop/app.py": f"import os\n\n{line}\n"})

    assert found(tmp_path, changed) == [f"shop/app.py:3: the module {module} does not exist"]


@pytest.mark.requirement("R170")
@pytest.mark.parametrize(
    "line",
    [
        "import shop.till",
        "from shop import till",
        "from shop.till import Till",
        "from .till import Till",
        "from . import anything",
        "from .parts import screw",
        "from .parts.screw import Screw",
        "import till",
        "import top",
        "import native",
        "import requests.sessions",
        "from yaml import load",
        "import docs.something",
    ],
)
def test_an_import_that_exists_or_cannot_be_judged_is_no_problem(tmp_path: Path, line: str) -> None:
    modules = ("shop/__init__.py", "shop/till.py", "shop/parts/__init__.py", "shop/parts/screw.py", "top.py")
    write(tmp_path, dict.fromkeys((*modules, "native.cpython-311-x86_64-linux-gnu.so", "docs/page.md"), ""))
    changed = write(tmp_path, {"shop/app.py": f"{line}\n"})

    assert found(tmp_path, changed) == []


@pytest.mark.requirement("R170")
def test_modules_under_src_are_the_projects_own(tmp_path: Path) -> None:
    write(tmp_path, {"src/shop/__init__.py": "", "src/shop/till.py": ""})
    changed = write(tmp_path, {"tests/test_till.py": "import shop.till\nimport shop.basket\n"})

    assert found(tmp_path, changed) == ["tests/test_till.py:2: the module shop.basket does not exist"]


@pytest.mark.requirement("R170")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [("app.py", "x = 1\n", "x = (\n"), ("data.json", "{}", "{"), ("conf.toml", "a = 1\n", "a =\n")],
)
def test_a_file_that_could_be_read_before_and_cannot_now_is_a_fault(
    tmp_path: Path, name: str, good: str, bad: str
) -> None:
    changed = write(tmp_path, {name: bad})

    result = checked(tmp_path, changed, before={name: good})

    (fault,) = result.faults
    assert fault.startswith(name)
    assert (result.doubts, result.syntax_clean) == ((), False)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("app.py", "import {{ name }}\n", "import {{ name }}.main\n"),
        ("data.json", '{"a": {{ value }}}', '{"b": {{ value }}}'),
        ("tests/broken.json", "{", "{,"),
        ("conf.toml", "{% if x %}\n", "{% if y %}\n"),
    ],
)
def test_templates_and_files_that_are_invalid_on_purpose_are_no_problem(
    tmp_path: Path, name: str, before: str, after: str
) -> None:
    changed = write(tmp_path, {name: after})

    assert checked(tmp_path, changed, before={name: before}) == Checked()


def test_json_that_only_lenient_readers_accept_is_a_doubt(tmp_path: Path) -> None:
    changed = write(tmp_path, {"conf.json": '{\n  // why "//" is here\n  "a": "http://x", /* b */\n}\n'})

    result = checked(tmp_path, changed, before={"conf.json": '{"a": "http://x"}'})

    assert (result.faults, len(result.doubts)) == ((), 1)


@pytest.mark.parametrize(
    "guarded",
    [
        "try:\n    from ._version import version\nexcept ImportError:\n    version = 'unknown'\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import shop._version\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._version import Version\n",
    ],
    ids=["try", "suppress", "types only"],
)
def test_an_import_that_may_fail_is_no_problem(tmp_path: Path, guarded: str) -> None:
    write(tmp_path, {"shop/__init__.py": ""})

    assert found(tmp_path, write(tmp_path, {"shop/app.py": guarded})) == []


def test_an_import_that_was_there_before_is_no_problem(tmp_path: Path) -> None:
    write(tmp_path, {"shop/__init__.py": ""})
    changed = write(tmp_path, {"shop/app.py": "from ._version import version\nfrom .basket import Basket\n"})

    result = checked(tmp_path, changed, before={"shop/app.py": "from ._version import version\n"})

    assert result == Checked(doubts=("shop/app.py:2: the module .basket does not exist",))


@pytest.mark.parametrize(
    ("line", "path"), [("from ._version import x", "shop/_version.py"), ("import shop.gen", "shop/gen")]
)
def test_a_module_that_git_ignores_is_generated(tmp_path: Path, line: str, path: str) -> None:
    write(tmp_path, {"shop/__init__.py": ""})
    changed = write(tmp_path, {"shop/app.py": f"{line}\n"})

    assert checked(tmp_path, changed, ignored=(path,)) == Checked()
    assert len(checked(tmp_path, changed).doubts) == 1


def test_an_old_interpreter_can_read_the_script_that_it_is_given() -> None:
    source = Path(python_source.__file__).read_text(encoding="utf-8")

    assert ast.parse(source, feature_version=(3, 7))


def test_imports_of_a_file_are_found_however_deep_its_expressions_are() -> None:
    deep = b"import os\nx = a" + b".b" * 1_500 + b"\nfrom here import y\n"

    assert python_source.read(deep, "deep.py")["imports"] == [["os", 1], ["here", 3]]
