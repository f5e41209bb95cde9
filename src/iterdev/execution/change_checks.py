"""Checks a change before it is handed in: Python files are read by the interpreter that the project itself uses."""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.core.formatting import one_line
from iterdev.execution.context import Attempt
from iterdev.host import python_source, static_checks, toml_text, untrusted_files
from iterdev.host.environments.python.declaration_files import subtable
from iterdev.host.git import commits, merge
from iterdev.host.processes.spawn import run
from iterdev.host.static_checks import ChangedFile, Checked, PythonFile
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files

KINDS = (".py", ".json", ".toml")
GIVEN, ANSWER = "given.json", "answer.json"
LARGEST_SOURCE = 16 * 1024 * 1024
"""Bytes of a changed file that is read."""
SOURCES = (
    *(
        ".py",
        ".pyi",
        ".js",
        ".cjs",
        ".mjs",
        ".jsx",
        ".ts",
        ".tsx",
        ".vue",
        ".go",
        ".rs",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".hpp",
    ),
    *(".java", ".kt", ".scala", ".cs", ".swift", ".rb", ".php", ".pl", ".pm", ".ex", ".exs", ".sql", ".sh"),
)
OUTPUTS = frozenset({"build", "_build", "dist", "out", "bin", "obj", "target", "coverage", "htmlcov", "site", ".next"})
"""Folders that tools write to; what is ignored there needs no question."""
NAMED = 5
"""Ignored files that are named."""
LIMIT = 60.0
"""Seconds for the project's interpreter."""
TEMPLATE = ("{{", "{%")
"""In the path of a file that is a template, whatever its name ends with."""
LOWEST = re.compile(r"(?:>=|~=|\^|==)\s*(\d{1,4})\.(\d{1,4})")


class _Answer(Struct, frozen=True):
    version: tuple[int, int]
    files: Mapping[str, PythonFile]
    """By path."""


async def check_change(attempt: Attempt, commit: str, changed: Sequence[str]) -> Checked:
    job, top, tree = attempt.job, attempt.context.top, attempt.workspace.tree
    names = [name for name in changed if name.endswith(KINDS) and not any(mark in name for mark in TEMPLATE)]
    before = await in_thread(commits.contents, top, job.base, names) if names else {}
    files = {name: ChangedFile(before=before.get(name), after=_content(tree / name)) for name in names}
    files |= await _read_python(attempt, files)
    # A planned file that was deleted has been dealt with.
    planned = [name for name in job.planned if name not in changed]
    return await in_thread(_check, attempt, files, planned, commit, changed)


def _check(
    attempt: Attempt, files: Mapping[str, ChangedFile], planned: Sequence[str], commit: str, changed: Sequence[str]
) -> Checked:
    job, top, tree = attempt.job, attempt.context.top, attempt.workspace.tree
    checked = static_checks.check(tree, files, planned, partial(commits.ignored, tree))
    checked = msgspec.structs.replace(checked, doubts=(*checked.doubts, *_ignored(tree)))
    if job.merge:
        return checked
    left = merge.left_conflicts(top, tree, job.base, commit, changed)
    return msgspec.structs.replace(checked, faults=(*left, *checked.faults))


def _ignored(tree: Path) -> list[str]:
    """One sentence about source files that the agent wrote and that are not part of its change."""
    found = untracked_files.new_ignored(tree)
    names = [name for name in found if name.endswith(SOURCES) and OUTPUTS.isdisjoint(Path(name).parts)]
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = ", ".join(map(one_line, names[:NAMED]))
    how = "if the change needs them, change .gitignore or add them with `git add --force`"
    return [f"git ignores files that you wrote, so that they are not part of the change: {shown}{more}; {how}"]


def _content(path: Path) -> bytes | None:
    """None for what is no plain file, or larger than source code is."""
    with suppress(OSError):
        return None if path.is_symlink() else untrusted_files.read_bytes(path, most=LARGEST_SOURCE)
    return None


async def _read_python(attempt: Attempt, files: Mapping[str, ChangedFile]) -> dict[str, ChangedFile]:
    """The Python files with what the interpreter says of them; nothing if no interpreter can judge them."""
    python = {name: file for name, file in files.items() if name.endswith(".py") and file.after is not None}
    if not python:
        return {}
    folder = attempt.workspace.scratch / "checks"
    asked = await in_thread(_write, folder, python)
    answer = await _by_project(attempt, folder)
    if answer is None:
        answer = await in_thread(_by_us, asked)
    await in_thread(shutil.rmtree, folder, ignore_errors=True)
    required = await in_thread(required_python, attempt.workspace.tree)
    if required and answer.version < required:
        return {}

    def said(number: int, part: str) -> PythonFile | None:
        return answer.files.get(str(folder / f"{number}-{part}"))

    return {
        name: msgspec.structs.replace(file, python_before=said(number, "before"), python_after=said(number, "after"))
        for number, (name, file) in enumerate(python.items())
    }


def _write(folder: Path, python: Mapping[str, ChangedFile]) -> list[tuple[str, str]]:
    """Writes both versions of each file for the interpreter, and the list of them: name and path."""
    asked: list[tuple[str, str]] = []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (name, file) in enumerate(python.items()):
        for part, content in (("before", file.before), ("after", file.after)):
            if content is not None:
                path = folder / f"{number}-{part}"
                path.write_bytes(content)
                asked.append((name, str(path)))
    (folder / GIVEN).write_text(json.dumps(asked), encoding="utf-8")
    return asked


async def _by_project(attempt: Attempt, folder: Path) -> _Answer | None:
    """What the `python` of the workspace's environment says; None if there is none that works."""
    env = attempt.environment()
    program = next((found for name in ("python", "python3") if (found := shutil.which(name, path=env.get("PATH")))), "")
    if not program:
        return None
    script = await in_thread(Path(python_source.__file__).read_text, encoding="utf-8")
    argv = [program, "-I", "-S", "-c", script, str(folder / GIVEN), str(folder / ANSWER)]
    spawn, tree = attempt.spawn(write=False, network=False, scratch=True), str(attempt.workspace.tree)
    with suppress(HostError):
        finished = await run(spawn, argv, cwd=tree, env=env, limit=LIMIT)
        return None if finished.code or finished.timed_out else await in_thread(_read_answer, folder)
    return None


def _read_answer(folder: Path) -> _Answer | None:
    with suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode(untrusted_files.read_bytes(folder / ANSWER, root=folder), type=_Answer)
    return None


def _by_us(asked: Sequence[tuple[str, str]]) -> _Answer:
    found = {path: python_source.read(_given(Path(path)), name) for name, path in asked}
    return msgspec.convert({"version": sys.version_info[:2], "files": found}, _Answer)


def _given(path: Path) -> bytes:
    """A file that was written for the interpreter, which may have replaced it."""
    return untrusted_files.read_or_empty(path, root=path.parent)


def required_python(tree: Path) -> tuple[int, int] | None:
    """The oldest Python that the project says it needs."""
    texts: list[str] = []
    with suppress(OSError, ValueError):
        document = toml_text.parse(untrusted_files.read_text(tree / "pyproject.toml"))
        poetry = subtable(document, "tool", "poetry", "dependencies")
        texts += [str(subtable(document, "project").get("requires-python", "")), str(poetry.get("python", ""))]
    for name, pattern in (("setup.cfg", r"python_requires\s*=(.*)"), ("setup.py", r"python_requires\s*=(.*)")):
        with suppress(OSError, ValueError):
            texts += re.findall(pattern, untrusted_files.read_text(tree / name))
    with suppress(OSError, ValueError):
        texts.append(f"=={untrusted_files.read_text(tree / '.python-version').strip()}")
    found = [(int(version[1]), int(version[2])) for text in texts if (version := LOWEST.search(text))]
    return max(found, default=None)
