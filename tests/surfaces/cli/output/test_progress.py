"""The progress bar of what takes a while."""

import os
import subprocess
import sys

import pytest

from iterdev.surfaces.cli.output.progress import LONG

SHOWN = """
import sys
from iterdev.surfaces.cli.output.progress import progress_bar

with progress_bar("deciding again") as seen:
    seen(int(sys.argv[1]) // 2, int(sys.argv[1]))
    seen(int(sys.argv[1]), int(sys.argv[1]))
print("done")
"""


def in_terminal(total: int) -> tuple[str, str]:
    """What is written to standard output, and to a terminal as standard error."""
    mine, theirs = os.openpty()
    argv = [sys.executable, "-c", SHOWN, str(total)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(theirs)
        output, _ = process.communicate()
    try:
        shown = os.read(mine, 65536).decode()
    except OSError:
        # A terminal that nothing was written to before its last writer left.
        shown = ""
    os.close(mine)
    return output.decode(), shown


def test_a_terminal_shows_how_far_it_is_and_standard_output_only_the_result() -> None:
    output, shown = in_terminal(LONG)

    assert output == "done\n"
    assert "deciding again" in shown
    assert "100%" in shown


def test_what_takes_no_time_has_no_bar() -> None:
    output, shown = in_terminal(LONG - 1)

    assert output == "done\n"
    assert "deciding again" not in shown


@pytest.mark.parametrize("total", [1, LONG])
def test_without_a_terminal_nothing_is_shown(total: int) -> None:
    done = subprocess.run([sys.executable, "-c", SHOWN, str(total)], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("done\n", "")
