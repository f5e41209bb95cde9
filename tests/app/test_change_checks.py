"""What is checked about a developer's change: doubts are asked about once and land, only certain faults fail."""

import json
from pathlib import Path

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import document

pytestmark = pytest.mark.elsewhere

NEWER = "type Pair[T] = tuple[T, T]\n"
"""Python 3.12."""


def committed(repo: Repo, **files: str) -> None:
    for name, text in files.items():
        repo.write(name, text)
    repo.commit("more files")


def develops(repo: Repo, **files: str) -> None:
    """What the developer writes, whenever it is asked."""
    repo.behave(**{"DEV-001": {"write": files}})


def implemented(repo: Repo) -> dict[str, object]:
    (entry,) = document(repo.folder() / ".msg" / "meta.json")["implementation_context"]
    assert isinstance(entry, dict)
    return entry


@pytest.mark.requirement("R170")
def test_a_doubt_is_asked_about_once_and_the_work_lands_with_a_note(repo: Repo, team: Team) -> None:
    develops(repo, **{"new.py": "def f(:\n"})

    run = team.run(pipeline="patch")

    first, second = team.prompts("DEV-001")
    assert run.succeeded, run.lines
    assert "new.py:1: " in second
    assert "new.py:1: " not in first
    assert any("DEV-001: new.py:1: " in text for text in run.view.warnings)
    assert repo.git("show", f"iterdev/{team.session}:new.py") == "def f(:"
    assert implemented(repo)["syntax_clean"] is False


@pytest.mark.requirement("R170")
def test_a_change_without_doubts_is_asked_for_once(repo: Repo, team: Team) -> None:
    develops(repo, **{"new.py": "x = 1\n"})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines
    assert len(team.prompts("DEV-001")) == 1
    assert implemented(repo)["syntax_clean"] is True


@pytest.mark.requirement("R170")
@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("x = 1\n", "x = (\n", "app.py:1: "),
        ("x = 1\n", "<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n", "app.py:1: a conflict marker is left"),
    ],
    ids=["syntax", "conflict"],
)
def test_a_fault_is_to_be_fixed_twice_and_then_fails_the_attempt(
    repo: Repo, team: Team, before: str, after: str, problem: str
) -> None:
    committed(repo, **{"app.py": before})
    develops(repo, **{"app.py": after})

    run = team.run(pipeline="patch")

    prompts = team.prompts("DEV-001")
    assert not run.succeeded
    assert len(prompts) == 3
    assert all(problem in prompt for prompt in prompts[1:])


def test_conflict_markers_that_are_no_conflict_are_no_fault(repo: Repo, team: Team) -> None:
    committed(repo, **{"how.md": "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"})
    develops(repo, **{"how.md": "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\nmore\n", "doc.rst": "Changes\n=======\n"})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines
    assert len(team.prompts("DEV-001")) == 1


def test_a_project_that_needs_a_newer_python_is_not_judged_by_an_older_one(repo: Repo, team: Team) -> None:
    committed(repo, **{"app.py": "x = 1\n", "pyproject.toml": '[project]\nname = "a"\nrequires-python = ">=3.99"\n'})
    develops(repo, **{"app.py": NEWER, "new.py": "x = (\n"})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines
    assert len(team.prompts("DEV-001")) == 1


def test_the_python_of_the_project_decides_what_can_be_read(
    repo: Repo, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    everything_is_fine = json.dumps({"version": [3, 99], "files": {}})
    python.write_text(f"#!/bin/sh\nfor answer; do :; done\necho '{everything_is_fine}' > $answer\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:{repo.env['PATH']}")
    committed(repo, **{"app.py": "x = 1\n"})
    develops(repo, **{"app.py": "x = (\n"})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines


def test_where_no_python_works_our_own_decides(
    repo: Repo, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python", "python3"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{repo.env['PATH']}")
    committed(repo, **{"app.py": "x = 1\n"})
    develops(repo, **{"app.py": "x = (\n"})

    run = team.run(pipeline="patch")

    assert not run.succeeded


@pytest.mark.requirement("R170")
def test_a_planned_file_may_be_deleted_or_left_out(repo: Repo, team: Team) -> None:
    committed(repo, **{"old.py": "x = 1\n"})
    item = {"id": "task-1", "title": "Do it", "files": ["old.py", "new.py"], "complexity": "low", "dependencies": []}
    design = {"tasks": [item | {"acceptance_criteria": []}]}
    repo.behave(**{"DESIGN-001": {"result": design}, "DEV-001": {"write": {"a.txt": "a\n"}, "run": "rm -f old.py"}})

    run = team.run(pipeline="sprint")

    _, second = team.prompts("DEV-001")
    assert run.succeeded, run.lines
    assert "- new.py was planned and does not exist" in second
    assert "old.py was planned" not in second
    assert "DEV-001: new.py was planned and does not exist" in run.view.warnings


LIBRARY = {
    "lib/__init__.py": "",
    "lib/helper.py": "def plus(a, b):\n    return a + b\n",
    "calc.py": "from lib.helper import plus as add\n",
}
TESTED = {
    ".gitignore": "lib/\n__pycache__/\n",
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": (
        "import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    ),
}


def test_code_that_git_ignores_makes_no_test_pass(repo: Repo, team: Team) -> None:
    team.use_tests("python3 -m unittest")
    committed(repo, **TESTED)
    develops(repo, **LIBRARY)

    run = team.run(pipeline="patch")

    _, second = team.prompts("DEV-001")
    assert "not part of the change: lib/__init__.py, lib/helper.py; " in second
    assert not run.succeeded
    assert any("test_add" in text for text in run.lines)


def test_code_that_git_ignores_counts_if_the_agent_adds_it(repo: Repo, team: Team) -> None:
    team.use_tests("python3 -m unittest")
    committed(repo, **TESTED)
    repo.behave(**{"DEV-001": {"write": LIBRARY, "run": "git add --force lib"}})

    run = team.run(pipeline="patch")

    assert run.succeeded, run.lines
    assert repo.git("show", f"iterdev/{team.session}:lib/helper.py").startswith("def plus")
    assert len(team.prompts("DEV-001")) == 1
