"""A patch with the findings of reviews at their lines."""

from tests.core.conftest import Story, task
from tests.surfaces.tui.conftest import LEAK, PATCH, SLOW, reviewed

from iterdev.core.views.team import FindingView
from iterdev.surfaces.tui.diffs import LONGEST, RowKind, diff_line, diff_rows
from iterdev.teams.development.team import DEVELOPMENT


def findings() -> tuple[FindingView, ...]:
    story = Story(task("REVIEW-001"))
    story.reviews("REVIEW-001", reviewed())
    return DEVELOPMENT.findings(story.state)


def test_a_finding_is_below_its_line_and_one_whose_line_is_not_shown_at_the_head() -> None:
    rows = diff_rows(PATCH, findings(), 200)

    found = [place for place, row in enumerate(rows) if row.finding]
    assert [rows[place].finding.text for place in found if rows[place].finding] == [SLOW.description, LEAK.description]  # type: ignore[union-attr]
    assert found[0] == 0
    assert rows[found[1] - 1].new == 6


def test_rows_have_the_numbers_of_their_lines_and_long_ones_go_on_in_the_next_row() -> None:
    rows = [row for row in diff_rows(PATCH, (), 60) if row.kind in {RowKind.added, RowKind.removed}]

    assert [(row.old, row.new) for row in rows] == [
        (5, None),
        (6, None),
        (None, None),
        (None, 5),
        (None, 6),
        (None, None),
    ]
    assert diff_line(rows[0], 60).plain.startswith("   5      - def total(cart):")


def test_a_very_long_patch_says_what_is_not_shown() -> None:
    patch = "@@ -0,0 +1,9000 @@\n" + "+x\n" * 9000

    rows = diff_rows(patch, (), 80)

    assert rows[LONGEST].text == "and 4,001 more lines: iterdev diff"


def test_a_binary_file_is_only_named() -> None:
    (row,) = diff_rows("diff --git a/x b/x\nBinary files a/x and b/x differ\n", (), 80)

    assert row.kind is RowKind.note


def test_a_form_feed_does_not_end_a_line() -> None:
    rows = diff_rows("@@ -1 +1,2 @@\n old\n+new\x0cpart\n", (), 80)

    assert [(row.kind, row.new) for row in rows[1:]] == [(RowKind.context, 1), (RowKind.added, 2)]
