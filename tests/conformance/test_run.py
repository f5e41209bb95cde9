"""Processes that are left of a tree are found by what they inherited."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iterdev.conformance.run import find_leftovers


@contextmanager
def sleeping(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Iterator[None]:
    command = ["sh", "-c", "echo; read line", *arguments]
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=-1, stdout=-1, start_new_session=True) as process:
        assert process.stdout
        process.stdout.readline()
        yield
        process.communicate(b"\n")


@pytest.mark.parametrize("way", ["environment", "arguments", "folder"])
def test_a_process_is_found_by_its_environment_its_arguments_and_its_folder(way: str, tmp_path: Path) -> None:
    mark = str(tmp_path)
    given = {"environment": {"env": {"MARK": mark}}, "folder": {"cwd": tmp_path}}.get(way, {})

    with sleeping(*([mark] if way == "arguments" else []), **given):
        found = find_leftovers(mark)

    assert len(found) == 1
    assert found[0].startswith("sh -c echo; read line")
    assert find_leftovers(mark) == ()
