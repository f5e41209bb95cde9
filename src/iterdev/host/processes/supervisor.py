"""The program that starts other programs for iterdev and ends their whole trees, also when iterdev is killed.

It runs once per engine, on the standard library alone, and forks a keeper for every program: a start costs two forks
and no interpreter. It knows descriptors, processes and signals; it refuses to know what the programs are for.
"""

import ctypes
import gc
import json
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypedDict

SWEEP = 0.01
"""Seconds between two looks at a tree that is being killed."""

ADOPTS_ORPHANS = sys.platform == "linux"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
RESETTABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class Spec(TypedDict):
    """What to start; the strings hold bytes, one per character, because argv and env need not be text."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    limit: float | None
    grace: float
    """Seconds between asking the tree to end and making it."""


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent is gone."""
    if ADOPTS_ORPHANS and LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            # pathlib takes longer to import than all else here together needs to start a program.
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                stat = file.read()
            yield pid, int(stat.rpartition(b")")[2].split()[1])


def descendants(spared: Container[int] = ()) -> list[int]:
    """All that came from this process, except what is spared and what came from that."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents():
        children.setdefault(parent, []).append(pid)
    found = [os.getpid()]
    for ancestor in found:
        found.extend(pid for pid in children.get(ancestor, ()) if pid not in spared)
    return found[1:]


def strike(pids: Iterable[int], signum: int) -> bool:
    """Signals all of them, and says whether any of them will feel it: those of another user do not."""
    felt = False
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)
            felt = True
    return felt


def reap() -> Iterator[tuple[int, int]]:
    """Every child that has ended, with its exit code; raises ChildProcessError once there is no child left."""
    while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        yield ended[0], os.waitstatus_to_exitcode(ended[1])


def tell(control: int, **report: object) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        os.write(control, json.dumps(report).encode() + b"\n")


def tell_failure(control: int, problem: OSError | ValueError) -> None:
    reason, errno = (problem.strerror, problem.errno) if isinstance(problem, OSError) else (str(problem), 0)
    tell(control, type="Failed", reason=reason, errno=errno)


class Alarm:
    """A poll that the end of a child interrupts."""

    def __init__(self) -> None:
        self.fds = os.pipe()
        for fd in self.fds:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self.fds[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.poller = select.poll()
        self.poller.register(self.fds[0], select.POLLIN)

    def wait(self, seconds: float) -> set[int]:
        """Waits for a descriptor, a child or the time, and gives the descriptors."""
        ready = {fd for fd, _ in self.poller.poll(None if seconds == math.inf else max(seconds, 0) * 1000)}
        if self.fds[0] in ready:
            ready.remove(self.fds[0])
            with suppress(BlockingIOError):
                os.read(self.fds[0], 4096)
        return ready


class Keeper:
    """Looks after one program and whatever comes from it."""

    def __init__(self, control: int) -> None:
        self.control = control
        self.alarm = Alarm()
        self.program = 0
        self.code: int | None = None
        self.timed_out = False
        self.alone = False

    def launch(self, spec: Spec, stdio: Sequence[int]) -> None:
        argv = [word.encode("latin-1") for word in spec["argv"]]
        env = {name.encode("latin-1"): value.encode("latin-1") for name, value in spec["env"].items()}
        os.chdir(spec["cwd"].encode("latin-1"))
        # posix_spawnp looks for the program on the PATH of its caller, not on the one in env.
        os.environb[b"PATH"] = env.get(b"PATH", os.defpath.encode())
        self.program = os.posix_spawnp(
            argv[0],
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(stdio)],
            setsid=True,
            setsigmask=(),
            setsigdef=RESETTABLE,
        )
        os.chdir("/")  # The directory must not be busy for as long as this process lives.

    def attend(self, limit: float, grace: float) -> None:
        """Waits for the end of the program, of the time, of iterdev, or of the grace after a request to end."""
        self.alarm.poller.register(self.control, select.POLLIN)
        end_at, kill_at = time.monotonic() + limit, math.inf
        while not self.is_over(asked=kill_at < math.inf) and (now := time.monotonic()) < kill_at:
            asked = self.control in self.alarm.wait(min(end_at, kill_at) - now)
            if asked and not self.hear():
                return
            late = time.monotonic() >= end_at
            if (asked or late) and kill_at == math.inf:
                self.timed_out, end_at, kill_at = late, math.inf, time.monotonic() + grace
                strike(self.tree(), signal.SIGTERM)

    def hear(self) -> bytes:
        """Takes an order: nothing if iterdev is gone, which is a reset if it had not read all that was reported."""
        with suppress(ConnectionResetError):
            return os.read(self.control, 4096)
        return b""

    def is_over(self, *, asked: bool) -> bool:
        """A program that ends by itself ends its tree; one that was asked to end leaves the grace to its children."""
        self.reap()
        return self.alone or (self.code is not None and not asked)

    def slay(self) -> None:
        self.alarm.poller.unregister(self.control)
        while not self.alone or not ADOPTS_ORPHANS:
            if not strike(self.tree(), signal.SIGKILL):
                return
            self.alarm.wait(SWEEP)
            self.reap()

    def tree(self) -> list[int]:
        return descendants() if ADOPTS_ORPHANS else [-self.program]

    def reap(self) -> None:
        try:
            for pid, code in reap():
                if pid == self.program:
                    self.code = code
        except ChildProcessError:
            self.alone = True


def keep(control: int, spec_fd: int, stdio: Sequence[int]) -> None:
    """The life of a keeper."""
    os.setsid()
    adopt_orphans()
    keeper = Keeper(control)
    with open(spec_fd, "rb") as file:
        file.seek(0)
        spec: Spec = json.load(file)
    try:
        keeper.launch(spec, stdio)
    except (OSError, ValueError) as problem:
        tell_failure(control, problem)
        return
    for fd in stdio:
        os.close(fd)
    tell(control, type="Started", pid=keeper.program)
    keeper.attend(math.inf if spec["limit"] is None else spec["limit"], spec["grace"])
    keeper.slay()
    code = -signal.SIGKILL if keeper.code is None else keeper.code
    tell(control, type="Exit", code=code, timed_out=keeper.timed_out)


class Zygote:
    """Forks a keeper for every request, and kills what a keeper that was killed leaves behind."""

    def __init__(self, requests: socket.socket) -> None:
        self.requests = requests
        self.listening = True
        self.alarm = Alarm()
        self.keepers: dict[int, int] = {}
        self.leaving: list[int] = []
        """Control sockets of ended keepers. Closing one says that its tree is gone, so orphans come first."""
        self.orphans = False

    def serve(self) -> None:
        self.alarm.poller.register(self.requests, select.POLLIN)
        while self.listening or self.keepers or self.orphans:
            if self.alarm.wait(SWEEP if self.orphans else math.inf):
                self.accept()
            self.tidy()

    def accept(self) -> None:
        byte, fds, _, _ = socket.recv_fds(self.requests, 1, 5)
        if not byte:
            self.listening = False
            self.alarm.poller.unregister(self.requests)
        for fd in fds:
            os.set_inheritable(fd, False)
        if len(fds) == 5:
            self.fork(*fds)
        for fd in set(fds) - set(self.keepers.values()):
            os.close(fd)

    def fork(self, control: int, spec: int, *stdio: int) -> None:
        try:
            pid = os.fork()
        except OSError as problem:
            tell_failure(control, problem)
            return
        if pid:
            self.keepers[pid] = control
            return
        failed = 1
        try:
            for fd in (self.requests.fileno(), *self.alarm.fds, *self.keepers.values(), *self.leaving):
                os.close(fd)
            keep(control, spec, stdio)
            failed = 0
        finally:
            os._exit(failed)

    def tidy(self) -> None:
        with suppress(ChildProcessError):
            for pid, code in reap():
                if pid in self.keepers:
                    self.leaving.append(self.keepers.pop(pid))
                    self.orphans |= code != 0
        if self.orphans:
            self.orphans = ADOPTS_ORPHANS and strike(descendants(self.keepers), signal.SIGKILL)
        if not self.orphans:
            for control in self.leaving:
                os.close(control)
            self.leaving.clear()


def main() -> None:
    """Serves the socket whose number is the first argument; the others are descriptors to hold and not to pass on."""
    requests, *leases = map(int, sys.argv[1:])
    for fd in (requests, *leases):
        os.set_inheritable(fd, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    adopt_orphans()
    gc.freeze()
    Zygote(socket.socket(fileno=requests)).serve()


if __name__ == "__main__":
    main()
