import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iterdev.host.session_lease import Held, is_held, lease

HOLDER = """
import pathlib, sys, time
from iterdev.host.session_lease import lease

with lease(pathlib.Path(sys.argv[1]), wait=lambda: False):
    print("held", flush=True)
    sys.stdin.read()
print("released", flush=True)
"""


WATCHER = """
import pathlib, sys
from iterdev.host.session_lease import is_held

print("held", flush=True)
while True:
    is_held(pathlib.Path(sys.argv[1]))
"""


@contextmanager
def another_process(folder: Path, code: str = HOLDER) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease until its input ends, or does something else."""
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_lease_is_held_until_its_end(tmp_path: Path) -> None:
    seen = [is_held(tmp_path)]
    with lease(tmp_path, wait=lambda: False):
        seen.append(is_held(tmp_path))
    seen.append(is_held(tmp_path))

    assert seen == [False, True, False]
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with another_process(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(Held), lease(tmp_path, wait=lambda: False):
            pytest.fail("two processes hold the lease")


def test_looking_whether_it_is_held_refuses_nobody(tmp_path: Path) -> None:
    with another_process(tmp_path, WATCHER):
        for _ in range(10_000):
            with lease(tmp_path, wait=lambda: False):
                pass


def test_the_lease_of_a_process_that_ends_in_order_is_free(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.communicate("")

        with lease(tmp_path, wait=lambda: False):
            assert is_held(tmp_path)


def test_the_lease_of_a_process_that_was_killed_is_free_at_once(tmp_path: Path) -> None:
    with another_process(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()

        assert not is_held(tmp_path)
        with lease(tmp_path, wait=lambda: pytest.fail("there is nothing to wait for")):
            assert is_held(tmp_path)


def test_a_lease_is_waited_for_as_long_as_that_makes_sense(tmp_path: Path) -> None:
    asked = 0

    def wait() -> bool:
        nonlocal asked
        asked += 1
        if asked == 3:
            process.send_signal(signal.SIGKILL)
            process.wait()
        return True

    with another_process(tmp_path) as process, lease(tmp_path, wait=wait):
        assert is_held(tmp_path)

    assert asked == 3


def test_waiting_ends_when_it_makes_no_sense_any_more(tmp_path: Path) -> None:
    answers = iter([True, True, False])

    with another_process(tmp_path), pytest.raises(Held), lease(tmp_path, wait=lambda: next(answers)):
        pytest.fail("two processes hold the lease")

    assert list(answers) == []


def test_a_lease_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lease(tmp_path, wait=lambda: False):
        raise ZeroDivisionError

    assert not is_held(tmp_path)


def test_a_process_with_the_descriptor_holds_the_lease_after_its_owner_has_ended(tmp_path: Path) -> None:
    with lease(tmp_path, wait=lambda: False) as descriptor:
        heir = os.dup(descriptor)

    held = is_held(tmp_path)
    os.close(heir)

    assert (held, is_held(tmp_path)) == (True, False)


def test_programs_that_are_started_do_not_get_the_lease(tmp_path: Path) -> None:
    with lease(tmp_path, wait=lambda: False) as descriptor:
        child = subprocess.Popen(["sleep", "600"], close_fds=False)

    try:
        assert not is_held(tmp_path)
        assert descriptor > 0
    finally:
        child.kill()
        child.wait()


def test_leases_of_two_sessions_do_not_meet(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()

    with lease(tmp_path / "a", wait=lambda: False), lease(tmp_path / "b", wait=lambda: False):
        assert is_held(tmp_path / "a")
        assert is_held(tmp_path / "b")


def test_a_folder_that_does_not_exist_is_not_held(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "gone")
