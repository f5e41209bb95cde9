"""Only a team names its roles, pipelines and verdicts."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import iterdev
from iterdev.teams.development.roles import Pipeline, Role, Signal
from iterdev.teams.issues import roles as issue_team

ROOT = Path(iterdev.__file__).parent
TEAMS = (ROOT / "teams" / "development", ROOT / "teams" / "issues")
SHARED = {Pipeline.sprint, issue_team.Verdict.rejected, issue_team.Pipeline.full}
"""A sprint is also the word of every team that has some, as in the age of technical debt; plans are rejected, and disks
are full."""
WORDS = {
    *Role, *Pipeline, *Signal, "REVISION", "CONVERGE", *issue_team.Role, *issue_team.Pipeline, *issue_team.Verdict
} - SHARED  # fmt: skip
ALONE = {Pipeline.patch.value, "REVISION", *issue_team.Pipeline, *issue_team.Verdict}
"""Words that mean something else inside a longer text, such as a file name."""


def modules() -> Iterator[Path]:
    """Every module that is no team's."""
    return (path for path in sorted(ROOT.rglob("*.py")) if not set(TEAMS) & set(path.parents))


def documentation(tree: ast.AST) -> set[ast.AST]:
    """Docstrings, also those below fields."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string, attribute and keyword of a module, with its line: what could be a word of the team."""
    left_out = documentation(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in left_out:
                yield node.lineno, text
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield node.value.lineno, name


def words_of(text: str) -> set[str]:
    """The words of the team in a text or an identifier; an enum member is written with underscores."""
    parts = {text, text.replace("_", "-"), text.upper(), *re.findall(r"[\w-]+", text)}
    return {word for word in WORDS if word in parts and (word not in ALONE or text == word)}


def test_no_module_of_another_layer_names_a_role_a_pipeline_or_a_verdict() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(sorted(words))}"
        for path in modules()
        for line, text in named(ast.parse(path.read_text(encoding="utf-8")))
        if (words := words_of(text))
    ]

    assert found == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('role = "reviewer"', {"reviewer"}),
        ('hint = "ask the developer again"', {"developer"}),
        ("Role.gc_controller", {"gc-controller"}),
        ("Signal.converged", {"CONVERGED"}),
        ('name = "multi-sprint"', {"multi-sprint"}),
        ('pipeline == "patch"', {"patch"}),
        ('file = "changes.patch"', set()),
        ('"""The developer changes files."""', set()),
        ("sprint = 1", set()),
    ],
)
def test_a_word_of_the_team_is_found_in_strings_and_members_and_not_in_docstrings(code: str, found: set[str]) -> None:
    words = [words_of(text) for _, text in named(ast.parse(code))]

    assert set().union(*words) == found
