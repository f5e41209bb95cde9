"""iterdev logs: exit codes, hints, and a reader that leaves."""

import subprocess
from pathlib import Path

import pytest
from tests.conftest import Repo

LINES = 50_000
"""More than a pipe holds."""


@pytest.fixture
def logged(repo: Repo) -> Repo:
    """A repository with a session that waits for an answer, and a log of its first task."""
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    write(repo, "half way\n")
    return repo


def write(repo: Repo, text: str) -> Path:
    path = repo.folder() / "logs" / "DEV-001-1.log"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("arguments", [[], ["ids-"], ["ids-", "DEV-001"], ["-f"]])
def test_the_lines_are_printed_with_their_source(logged: Repo, arguments: list[str]) -> None:
    shown = logged.iterdev("logs", *arguments)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[-1] == "DEV-001-1 | half way"
    assert ("engine | " in shown.stdout) == ("DEV-001" not in arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], ('There is no session "nothing"', "hint: one of: ids-")),
        (["ids-", "DEV-009"], ('There is no task "DEV-009"', "hint: iterdev status ids-")),
        (["ids-", "DEV-009", "--follow"], ('There is no task "DEV-009"', "hint: iterdev status ids-")),
    ],
)
def test_an_unknown_name_is_an_error_with_a_hint(logged: Repo, arguments: list[str], words: tuple[str, str]) -> None:
    refused = logged.iterdev("logs", *arguments)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert all(word in refused.stderr for word in words)


def test_a_repository_without_sessions_has_no_log(repo: Repo) -> None:
    refused = repo.iterdev("logs")

    assert refused.returncode == 2
    assert "hint: iterdev run" in refused.stderr


def test_a_reader_that_leaves_is_no_error(logged: Repo) -> None:
    write(logged, "line\n" * LINES)

    with subprocess.Popen(
        logged.command("logs", "ids-", "DEV-001"),
        cwd=logged.path,
        env=logged.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()

    assert first == b"DEV-001-1 | line\n"
    assert (process.returncode, complaint) == (0, b"")
