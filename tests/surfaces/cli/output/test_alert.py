"""Notifications of the terminal."""

import os
import subprocess
import sys

SCRIPT = "import sys; from iterdev.surfaces.cli.output.console import print_alert; print(print_alert(sys.argv[1]))"


def alerted(text: str, stderr: int) -> str:
    done = subprocess.run([sys.executable, "-c", SCRIPT, text], stdout=subprocess.PIPE, stderr=stderr, check=True)
    return done.stdout.decode().strip()


def test_a_terminal_gets_a_notification_and_its_bell_without_codes_of_others() -> None:
    screen, terminal = os.openpty()

    shown = alerted("iterdev: question: go\x07 \x1b]0;on\n?", terminal)
    got = os.read(screen, 1000)
    os.close(terminal)
    os.close(screen)

    assert shown == "True"
    assert got.startswith(b"\x1b]9;iterdev: question: go")
    assert (got.count(b"\x1b"), got.count(b"\x07"), got.count(b"\n")) == (1, 2, 0)


def test_a_pipe_gets_nothing() -> None:
    assert alerted("iterdev: question", subprocess.DEVNULL) == "False"
