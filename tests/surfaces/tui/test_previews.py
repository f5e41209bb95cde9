"""What the dashboard says about an act before it does it."""

import pytest

from iterdev.core.types import SessionId
from iterdev.core.views.previews import ExportPreview, PullRequestPreview
from iterdev.surfaces.tui.screens.preview import AnyPreview, preview_lines

S = SessionId("ids-x")
PULL = PullRequestPreview(
    session=S, seq=1, command="", branch="iterdev/ids-x", base="main", title="Greet", known="https://github.com/o/r/1"
)


@pytest.mark.parametrize(
    ("preview", "lines"),
    [
        (
            ExportPreview(session=S, seq=1, command="", target="/tmp/out", names=("context.md", "changes.patch")),
            ["goes to /tmp/out: context.md, changes.patch", "then the session is archived"],
        ),
        (
            PULL,
            ["iterdev/ids-x is pushed; Greet, into main", "https://github.com/o/r/1 is brought up to date"],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_act_would_do_is_said_in_sentences(preview: AnyPreview, lines: list[str]) -> None:
    assert [line.plain for line in preview_lines(preview, 80)] == lines
