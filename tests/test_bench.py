"""The benchmarks still run; what they measure is not judged here, but what they measure against is."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

TOP = Path(__file__).parent.parent
SECTIONS = [
    "Aims",
    "The whole life of a task",
    "Large repositories",
    "One attempt",
    "Tokens",
    "Many agents at work",
    "Hosts",
    "Makespan",
    "Durable transitions",
    "Planning",
    "Resuming",
    "Long journals",
    "Issues",
    "Environments",
    "Start-up",
    "The dashboard in a terminal",
    "Web page",
]


def test_the_smallest_run_of_all_measurements_makes_the_whole_page(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"

    argv = [sys.executable, TOP / "bench" / "run.py", "--quick", path]
    told = subprocess.run(argv, capture_output=True, check=True, text=True).stderr

    page = path.read_text(encoding="utf-8")
    aims = page.partition("## Aims\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    verdicts = [line.strip("| ").rpartition("|")[2].strip(" *") for line in aims]
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == SECTIONS
    assert verdicts
    assert all(verdict == "met" or verdict.startswith("missed by ") for verdict in verdicts)
    assert page.count("Repetitions:") == page.count("\n## ") - 1
    assert len([line for line in told.splitlines() if line.endswith(" s for disturbed samples")]) == len(SECTIONS) - 1
    assert str(TOP) not in page
    assert str(Path.home()) not in page


def test_the_published_page_has_the_same_sections() -> None:
    published = (TOP / "docs" / "benchmarks.md").read_text(encoding="utf-8")

    assert [line for line in published.splitlines() if line.startswith("## ")] == [f"## {name}" for name in SECTIONS]


@pytest.mark.parametrize(
    ("aim", "verdict"),
    [
        ("value=2, limit=2", "met"),
        ("value=3, limit=2", "missed by 50%"),
        ("value=1, limit=2, at_least=True", "missed by 50%"),
        ("value=0, limit=0", "met"),
        ("value=3, limit=0", "missed by 3"),
    ],
)
def test_an_aim_says_by_how_much_it_was_missed(aim: str, verdict: str) -> None:
    code = f"from measure import Aim; print(Aim(claim='', why='', {aim}).verdict)"

    done = subprocess.run([sys.executable, "-c", code], cwd=TOP / "bench", capture_output=True, check=True, text=True)

    assert done.stdout.strip() == verdict


@pytest.fixture(scope="module")
def listschedule() -> ModuleType:
    """A module of the benchmarks, which are programs and no package."""
    spec = spec_from_file_location("listschedule", TOP / "bench" / "listschedule.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Each row is an id, the seconds it takes, and what it waits for; then, for each number of places, the makespan.
CHAIN = (("a", 2, ""), ("b", 3, "a"), ("c", 4, "b"))
BESIDE = (("a", 4, ""), ("b", 3, ""), ("c", 2, ""), ("d", 1, ""))
DIAMOND = (("top", 1, ""), ("left", 2, "top"), ("right", 5, "top"), ("end", 1, "left right"))
# The short row above is preferred, although the chain below it is what takes long.
SHORT_ABOVE = (("a", 3, ""), ("b", 1, ""), ("c", 1, "b"), ("d", 4, "c"))
# When both end at the same time, what waited for them starts at that time.
TOGETHER = (("a", 2, ""), ("b", 2, ""), ("c", 1, "a b"), ("d", 1, "b"))
EXAMPLES = [
    (CHAIN, {1: 9, 2: 9, 3: 9}),
    (BESIDE, {1: 10, 2: 5, 3: 4, 4: 4}),
    (DIAMOND, {1: 9, 2: 7}),
    (SHORT_ABOVE, {1: 9, 2: 6}),
    (TOGETHER, {1: 6, 2: 3}),
    ((), {1: 0}),
]


@pytest.mark.parametrize(("rows", "expected"), EXAMPLES)
def test_the_list_schedule_is_the_one_made_by_hand(
    listschedule: ModuleType, rows: tuple[tuple[str, float, str], ...], expected: dict[int, float]
) -> None:
    table = [listschedule.Work(id=name, seconds=seconds, deps=tuple(deps.split())) for name, seconds, deps in rows]

    assert {places: listschedule.makespan(table, places) for places in expected} == expected


@pytest.mark.parametrize(
    ("rows", "places", "expected"),
    [(CHAIN, 3, 9), (BESIDE, 2, 5), (BESIDE, 4, 4), (DIAMOND, 2, 7), (SHORT_ABOVE, 2, 6), (TOGETHER, 2, 3)],
)
def test_nothing_is_shorter_than_the_longest_chain_and_the_work_of_each_place(
    listschedule: ModuleType, rows: tuple[tuple[str, float, str], ...], places: int, expected: float
) -> None:
    table = [listschedule.Work(id=name, seconds=seconds, deps=tuple(deps.split())) for name, seconds, deps in rows]

    assert listschedule.least(table, places) == expected
    assert listschedule.makespan(table, places) >= expected
