"""A program that stays and answers requests one after the other, which costs less than a process for each.

It belongs to this process like all that it starts: it has a group of its own and ends at the time limit, with its
standard input, and with an engine that is killed.
"""

import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock

from iterdev.host.processes import ownership

CHUNK = 65536
GRACE = 5.0
"""Seconds that a program has to end after its input has."""


class EndedError(Exception):
    """The program has ended instead of answering, or did not answer in time."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(stderr)
        self.code, self.stderr = code, stderr


class TooLongError(EndedError):
    """The answer was longer than allowed; the program was ended."""


class AnsweringProcess:
    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self.started = time.monotonic()
        self._lock = Lock()
        self._marker = ownership.marker()
        # In a file, so that nobody has to read it meanwhile.
        self._stderr = TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, **self._marker.variable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            process_group=0,
        )

    def ask(self, request: bytes, end: bytes, seconds: float, most: float = math.inf) -> bytes:
        """What it answers up to the given end, which is left out; no more than so many bytes."""
        with self._lock:
            if self._process.poll() is not None:
                raise self._ended()
            try:
                return self._answer(request, end, time.monotonic() + seconds, most + len(end))
            except OSError as error:
                raise self._ended() from error
            except BaseException:
                self._kill()
                raise

    def _answer(self, request: bytes, end: bytes, deadline: float, most: float) -> bytes:
        given, taken = self._process.stdin, self._process.stdout
        if given is None or taken is None:
            raise AssertionError("it was started with pipes")
        rest = memoryview(request)
        while rest:
            rest = rest[os.write(given.fileno(), rest) :]
        poller, answer = select.poll(), bytearray()
        poller.register(taken.fileno(), select.POLLIN)
        while not answer.endswith(end):
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                self._kill()
                raise EndedError(124, "fatal: it did not answer in time")
            chunk = os.read(taken.fileno(), CHUNK)
            if not chunk:
                raise self._ended()
            answer += chunk
            if len(answer) > most:
                self._kill()
                raise TooLongError(-signal.SIGKILL, "fatal: it answered too much")
        return bytes(answer[: len(answer) - len(end)])

    def close(self) -> None:
        with self._lock:
            self._end()

    def _ended(self) -> EndedError:
        if not self._stderr.closed:
            self._end()
        return EndedError(self._process.returncode, self.said)

    said = ""
    """What it wrote to standard error, once it has ended."""

    def _end(self) -> None:
        if self._stderr.closed:
            return
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._kill()
        if self._process.stdout:
            self._process.stdout.close()
        self._stderr.seek(0)
        self.said = self._stderr.read().decode("utf-8", "backslashreplace")
        self._stderr.close()

    def _kill(self) -> None:
        ownership.kill(self._marker, group=self._process.pid)
        self._process.wait()
