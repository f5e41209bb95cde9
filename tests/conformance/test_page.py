"""The page about conformance says what the program knows, and shows no failure."""

import importlib.util
from pathlib import Path
from types import ModuleType

from iterdev.conformance.scenarios import SCENARIOS

DOCS = Path(__file__).parents[2] / "docs"
STALE = "run `make conformance`"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_page", DOCS / "conformance.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_all_scenarios_and_all_misses_as_the_program_knows_them() -> None:
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")

    assert "\n".join(script().facts()) in page, STALE


def test_the_page_shows_a_result_for_every_scenario_and_agent_and_no_failure() -> None:
    page = (DOCS / "conformance.md").read_text(encoding="utf-8")

    rows = page.partition("## Results")[2].partition("## Scenarios")[0].strip().splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert [row[0] for row in cells] == [scenario.name for scenario in SCENARIOS], STALE
    assert {cell for row in cells for cell in row[1:]} == {"ok", "miss"}, STALE
