"""What `iterdev accept` says about the work that it brings."""

from iterdev.app.completion import AcceptPreview
from iterdev.core.types import SessionId
from iterdev.surfaces.cli.acceptance import preview_text


def test_what_was_measured_is_said_once() -> None:
    unverified = "VERIFY-001: nothing was verified: no test command was found"
    preview = AcceptPreview(
        session=SessionId("ids-x-20260308"),
        seq=9,
        command="iterdev accept",
        refused=None,
        fast_forward=True,
        into="main",
        commits=1,
        files=("a.py", "b.py"),
        verdicts=(f"Tests: {unverified}", "Review: REVIEW-001: score 8"),
        warnings=(unverified, "DEV-001: a.py imports nothing"),
        reasons=("nothing could be verified: no test command was found", "tasks: 1 failed"),
    )

    assert preview_text(preview).splitlines() == [
        "1 commit, 2 files changed",
        f"Tests: {unverified}",
        "Review: REVIEW-001: score 8",
        "Warning: DEV-001: a.py imports nothing",
        "Not good: nothing could be verified",
        "Not good: tasks: 1 failed",
    ]
