"""The benchmarks still run; what they measure is not judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
SECTIONS = [
    "Aims",
    "The whole life of a task",
    "One attempt",
    "Many agents at work",
    "Durable transitions",
    "Planning",
    "Resuming",
    "Start-up",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the smallest run of all measurements writes."""
    path = tmp_path_factory.mktemp("bench") / "benchmarks.md"
    subprocess.run([sys.executable, TOP / "bench" / "run.py", "--quick", path], capture_output=True, check=True)
    return path.read_text(encoding="utf-8")


def test_every_measurement_has_its_section(page: str) -> None:
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == SECTIONS


def test_every_aim_is_met_or_missed_by_a_share(page: str) -> None:
    aims = page.partition("## Aims\n\n")[2].partition("\n\n")[0].splitlines()[2:]

    verdicts = [line.strip("| ").rpartition("|")[2].strip(" *") for line in aims]

    assert verdicts
    assert all(verdict == "met" or verdict.startswith("missed by ") for verdict in verdicts)


def test_the_page_names_no_place_of_the_machine_it_was_measured_on(page: str) -> None:
    assert str(TOP) not in page
    assert str(Path.home()) not in page


def test_the_published_page_has_the_same_sections(page: str) -> None:
    published = (TOP / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert [line for line in published.splitlines() if line.startswith("## ")] == [f"## {name}" for name in SECTIONS]
