"""The transcripts in the documentation are run: files are written, commands are typed, outputs are compared."""

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
from msgspec import Struct

ROOT = Path(__file__).parents[2]
DEADLINE = 300
"""Seconds after which a transcript that never ends is given up."""
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Typed(Struct, frozen=True):
    """One command of a transcript and the output that the reader is promised."""

    command: str
    output: str


class File(Struct, frozen=True):
    name: str
    text: str


def steps(page: Path) -> Iterator[Typed | File]:
    """What a reader of the page does, in order."""
    for language, name, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            for typed in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = typed.partition("\n")
                yield Typed(command, output)
        elif name:
            yield File(name, body)


def promised(output: str) -> re.Pattern[str]:
    """A line of three dots stands for any lines; three dots within a line stand for any text in it."""
    lines = (_line(line) for line in output.splitlines())
    return re.compile("".join(lines))


def _line(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.split("..."))) + r"\n"


class Shell:
    """A bash that stays, so that `cd`, `&` and `$!` mean what they mean to the reader."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._deadline = Timer(DEADLINE, self._bash.kill)
        self._deadline.start()

    def type(self, command: str) -> str:
        """What the command prints."""
        end = uuid.uuid4().hex
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f'{command}\necho {end} "$PWD"\n')
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            before, found, folder = line.partition(end)
            printed += before
            if found:
                self._folder = Path(folder.strip())
                return printed
        raise AssertionError(f"the shell ended at `{command}` after {printed}")

    def write(self, file: File) -> None:
        (self._folder / file.name).write_text(file.text, encoding="utf-8")

    def close(self) -> None:
        self._bash.communicate()
        self._deadline.cancel()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    home = tmp_path / "home"
    (home / "temp").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.invalid\n", encoding="utf-8")
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "ITERDEV_HOME": str(home / "state"),
        "TMPDIR": str(home / "temp"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
    }
    shell = Shell(tmp_path, env)
    yield shell
    shell.close()


@pytest.mark.requirement("R1", "R80", "R119")
@pytest.mark.parametrize("page", ["tutorial.md", "sprints.md", "issues.md", "resolving-issues.md"])
def test_a_page_that_can_be_followed_does_what_it_says(shell: Shell, page: str) -> None:
    for step in steps(ROOT / "docs" / page):
        if isinstance(step, File):
            shell.write(step)
            continue

        printed = shell.type(step.command)

        assert promised(step.output).fullmatch(printed), f"$ {step.command}\n{printed}\nbut promised:\n{step.output}"


def test_the_transcript_in_the_readme_is_that_of_a_real_run(shell: Shell) -> None:
    (step,) = [step for step in steps(ROOT / "README.md") if isinstance(step, Typed)]

    printed = shell.type(step.command)

    # Two agents work side by side, so the order of their lines is not promised.
    lines = [promised(f"{_any_day(line)}\n") for line in step.output.splitlines() if line != "..."]
    missing = [
        line.pattern for line in lines if not any(map(line.fullmatch, _any_day(printed).splitlines(keepends=True)))
    ]
    assert missing == []


def _any_day(text: str) -> str:
    """The same for every day and every folder for temporary files."""
    return re.sub(r"-\d{8}\b", "-DATE", re.sub(r"\S*/iterdev-demo-1", "FOLDER", text))
