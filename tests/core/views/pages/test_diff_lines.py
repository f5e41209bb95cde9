"""The lines of a difference: their numbers, and which stand beside each other."""

from iterdev.core.views.pages.diff_lines import LineKind, diff_lines, side_by_side

DIFF = """\
diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,5 +1,5 @@ def f():
 same
-old one
-old two
+new one
 between
+only new
@@ -20,2 +20,1 @@
-gone
\\ No newline at end of file
"""


def test_lines_have_the_numbers_of_both_versions() -> None:
    lines = diff_lines(DIFF)

    assert [(line.old, line.new) for line in lines if line.kind is LineKind.same] == [(1, 1), (4, 3)]
    assert [line.new for line in lines if line.kind is LineKind.added] == [2, 4]


def test_what_was_removed_is_beside_what_was_added_in_its_place() -> None:
    lines = diff_lines(DIFF)

    pairs = [tuple(None if at is None else lines[at].text for at in pair) for pair in side_by_side(lines)]

    assert pairs == [
        ("def f():", "def f():"),
        ("same", "same"),
        ("old one", "new one"),
        ("old two", None),
        ("between", "between"),
        (None, "only new"),
        ("", ""),
        ("gone", None),
        ("No newline at end of file", "No newline at end of file"),
    ]


def test_what_is_removed_behind_something_added_is_a_change_of_its_own() -> None:
    lines = diff_lines("@@ -1,2 +1,1 @@\n-a\n+b\n-c\n")

    assert list(side_by_side(lines)) == [(0, 0), (1, 2), (3, None)]
