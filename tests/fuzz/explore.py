"""Gives many inputs to a target, each within a bound of time and all within a bound of memory."""

import os
import resource
import select
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct
from tests.fuzz.mutation import Mutator
from tests.fuzz.target import Target

SECONDS = 3.0
"""Of the processor, for one input."""
MEBIBYTE = 2**20
ADDRESS_SPACE = 1024 * MEBIBYTE
"""Beyond which memory is refused."""
RESIDENT = 160 * MEBIBYTE
"""By which the memory in use may grow with all inputs of a target."""


class Fault(Struct, frozen=True, kw_only=True):
    """An input with which a target did what it must not do."""

    target: str
    place: str
    """Where, so that the same fault is reported once."""
    error: str
    data: bytes


class TooSlow(BaseException):
    """No parser catches it by accident."""


def faults(target: Target, inputs: Iterable[bytes]) -> Iterator[Fault]:
    """Runs the inputs in this process; each fault is reported once."""
    known: set[str] = set()
    before = _resident()
    with TemporaryDirectory(prefix="iterdev-fuzz-") as scratch:
        for number, data in enumerate(inputs):
            folder = Path(scratch, str(number))
            folder.mkdir()
            try:
                with _limited(SECONDS):
                    target.run(data, folder)
            except target.allowed:
                pass
            except (Exception, TooSlow) as error:  # noqa: BLE001 - any other error is what is looked for
                place = _place(error)
                if place not in known:
                    known.add(place)
                    text = "".join(traceback.format_exception(error))[-3_000:]
                    yield Fault(target=target.name, place=place, error=text, data=data)
            finally:
                shutil.rmtree(folder)
    if (grown := _resident() - before) > RESIDENT:
        text = f"the memory in use grew by {grown // MEBIBYTE} MiB"
        yield Fault(target=target.name, place="memory", error=text, data=b"")


def generated(target: Target, count: int, seed: str) -> Iterator[bytes]:
    mutator = Mutator(target.examples, Random(f"{seed} {target.name}"))
    return (mutator.input() for _ in range(count))


def isolated(work: Callable[[], Iterable[Fault]], *, limit: float) -> list[Fault]:
    """The faults that the work finds in a process of its own, with limited memory; one that hangs is ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _work(work, writer)
    os.close(writer)
    read, end = bytearray(), time.monotonic() + limit
    with open(reader, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        while select.select([file], [], [], max(0, end - time.monotonic()))[0] and (chunk := file.read(65536)):
            read += chunk
    if time.monotonic() > end:
        os.kill(child, signal.SIGKILL)
    lines = bytes(read).splitlines()
    _, status = os.waitpid(child, 0)
    found = [msgspec.json.decode(line, type=Fault) for line in lines]
    if status:
        found.append(Fault(target="", place="process", error=f"the process ended with {status:#x}", data=b""))
    return found


def _work(work: Callable[[], Iterable[Fault]], writer: int) -> None:
    """In the child, which never returns to the tests of its parent."""
    code = 1
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ADDRESS_SPACE, resource.RLIM_INFINITY))
        with open(writer, "wb") as file:
            for fault in work():
                file.write(msgspec.json.encode(fault) + b"\n")
                file.flush()
        code = 0
    finally:
        os._exit(code)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _place(error: BaseException) -> str:
    """The innermost line of iterdev; where time runs out is chance, so that only its function counts."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/iterdev/" in frame.filename]
    if not frames:
        return type(error).__name__
    last = frames[-1]
    where = last.name if isinstance(error, TooSlow | RecursionError) else f"{last.name}:{last.lineno}"
    return f"{type(error).__name__} in {Path(last.filename).name}:{where}"


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
