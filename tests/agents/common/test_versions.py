"""The version of a program, from its npm package or from its own report."""

import json
from functools import partial
from pathlib import Path

import pytest

from iterdev.agents.common.versions import packaged_version, probe_program, version_note

probe = partial(probe_program, agent="fake", install="npm install -g fake", last_known_good="1.2.3")


def program(folder: Path, body: str = "exit 3") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def package(folder: Path, version: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": "fake", "version": version}), encoding="utf-8")


@pytest.mark.parametrize("name", ["fake", "@scope/fake"])
def test_the_version_of_a_package_is_read_without_starting_its_program(tmp_path: Path, name: str) -> None:
    found = program(tmp_path / "node_modules" / name / "dist" / "bin")
    package(tmp_path / "node_modules" / name / "dist", "7.7.7")
    package(tmp_path / "node_modules" / name, "1.2.3-linux-x64")

    assert packaged_version(found) == "1.2.3"


def test_a_project_that_a_program_happens_to_lie_in_is_not_its_package(tmp_path: Path) -> None:
    package(tmp_path, "9.9.9")

    assert packaged_version(program(tmp_path / "bin")) == ""


def test_a_package_that_cannot_be_read_has_no_version(tmp_path: Path) -> None:
    package(tmp_path / "node_modules" / "fake", 3)

    assert packaged_version(program(tmp_path / "node_modules" / "fake")) == ""


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("echo '1.2.3 (Fake Code)'", "1.2.3"),
        ("echo fake-cli 0.166.0-alpha.1", "0.166.0"),
        ("echo no number", ""),
    ],
)
def test_a_program_is_asked_for_its_version(tmp_path: Path, body: str, version: str) -> None:
    result = probe(program(tmp_path, body))

    assert (result.installed, result.version, result.note) == (True, version, "")


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$"])
def test_a_program_that_fails_to_report_its_version_counts_as_not_installed(tmp_path: Path, body: str) -> None:
    result = probe(program(tmp_path, body))

    assert not result.installed
    assert "does not report its version" in result.problem
    assert result.hint == "npm install -g fake"


@pytest.mark.parametrize(("version", "newer"), [("1.2.3", False), ("1.2.10", True), ("1.3", True), ("1.1.99", False)])
def test_versions_are_compared_by_their_numbers(version: str, newer: bool) -> None:  # noqa: FBT001 - a parameter
    assert bool(version_note(version, "1.2.3")) == newer
