"""The page about clients shows a result for every way in which the team is called, and no failure."""

from pathlib import Path

from tests.conformance.clients import CASES

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def test_every_client_was_tried_and_none_failed() -> None:
    results = PAGE.read_text(encoding="utf-8").partition("<!-- results")[2].partition("<!-- end")[0]

    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in results.splitlines() if row.startswith("| ")
    ]
    tried = [row[0].split()[0] for row in rows[1:]]
    assert tried == [name for name, _ in CASES], "run `make conformance`"
    assert {row[3] for row in rows[1:]} == {"ok"}
    assert all(row[4].endswith(" 0 while the team worked") for row in rows[1:])
    assert "**" not in results
