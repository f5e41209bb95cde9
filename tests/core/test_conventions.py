"""The files in which a repository says how to work on it."""

import pytest

from iterdev.core import conventions


def test_the_files_for_agents_and_contributors_are_found_those_at_the_top_first() -> None:
    paths = [
        "app/AGENTS.md",
        "app/agents.py",
        "docs/CONTRIBUTING.rst",
        ".cursorrules",
        "CLAUDE.md",
        "src/contributing.md",
    ]

    assert conventions.files(paths) == (".cursorrules", "CLAUDE.md", "app/AGENTS.md", "docs/CONTRIBUTING.rst")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Till\n\n## Contributing\n\nRun make.", ("README.md",)),
        ("Till\n====\n\nContributing\n------------\n", ("README.md",)),
        ("# Till\n\nContributing to charity is not what this is about, it is a program for a till.", ()),
        ("", ()),
    ],
)
def test_a_readme_counts_if_it_has_a_part_on_contributing(text: str, found: tuple[str, ...]) -> None:
    assert conventions.files(["README.md", "app.py"], text) == found


def test_the_readme_of_a_sub_folder_is_not_that_of_the_repository() -> None:
    assert conventions.readme(["docs/README.md", "app.py"]) == ""
    assert conventions.readme(["readme.rst", "app.py"]) == "readme.rst"


def test_what_an_agent_reads_by_itself_is_not_named_to_it() -> None:
    found = ("AGENTS.md", "CONTRIBUTING.md", "app/AGENTS.md", "app/CLAUDE.md")

    assert conventions.unread(found, ("AGENTS.md",)) == ("CONTRIBUTING.md", "app/CLAUDE.md")
    assert conventions.unread(found, ()) == found


def test_a_repository_with_many_such_files_names_the_first_of_them() -> None:
    assert len(conventions.files([f"part{number}/AGENTS.md" for number in range(99)])) == conventions.MOST
