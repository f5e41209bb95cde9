"""Signals that ask iterdev to stop."""

import subprocess
import sys

INTERRUPTED = """\
import time
from iterdev.host.processes import signals

class Deleted:
    def __del__(self):
        raise KeyboardInterrupt

signals.repeat_ignored_interrupts()
try:
    del (deleted := [Deleted()])[:]
    time.sleep(30)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_an_object_is_deleted_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("interrupted\n", "")
