"""The program that starts other programs for iterdev and ends their whole trees, also when iterdev is killed.

It runs once per engine, uses only the standard library, and forks a monitor for every program: a start costs two
forks and no interpreter.
"""

import _socket as socket
import ctypes
import errno
import gc
import marshal
import math
import os
import select
import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence

# The modules `signal` and `socket` wrap the constants of these in enumerations; with them, `json` and `contextlib`
# this program would need twice as long to start, and every engine waits for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal

SWEEP = 0.01
"""Seconds between two sweeps over a tree that is being killed."""
SWEEPS = 3
"""In a row that find nothing."""
REMOVALS = 200
"""Tries to remove a control group whose processes are being killed."""

ADOPTS_ORPHANS = sys.platform == "linux"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE = 4
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
RESETTABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
inherited_signals: list[int] = []
"""Those that this process ignores: any other one has its default in a program that is started."""


Spec = tuple[list[bytes], bytes, dict[bytes, bytes], float | None, float]
"""The program and its arguments, directory, environment, time limit, and the seconds between SIGTERM and SIGKILL."""
DESCRIPTORS = 5
"""With each request: the control socket, the file with the spec, and three for the program."""
INT = 4
"""The bytes of a descriptor."""
CLOSING = b"."
"""Announces that iterdev ends in order, after everything that it had started."""


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent has ended."""
    if ADOPTS_ORPHANS and LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def hide_memory() -> None:
    """Keeps other processes of the user from reading the memory and the first environment of this one, and its forks.

    Where /proc shows nothing but what can be read (hidepid), this process has to stay visible.
    """
    try:
        with open("/proc/self/mounts", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            hides = any(mount.split()[1] == b"/proc" and b"hidepid=" in mount for mount in file)
    except OSError:
        return  # Only Linux has it.
    if not hides:
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
                stat = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield pid, int(stat.rpartition(b")")[2].split()[1])


def descendants(excluded: Container[int] = ()) -> list[int]:
    """All descendants of this process, except the excluded ones and their descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents():
        children.setdefault(parent, []).append(pid)
    found = [os.getpid()]
    for ancestor in found:
        found.extend(pid for pid in children.get(ancestor, ()) if pid not in excluded)
    return found[1:]


def started_with(variable: bytes) -> list[int]:
    """Every process whose environment had a variable that begins with this when it was started, and its descendants."""
    return with_descendants({pid for pid, _ in parents() if _has(pid, b"\0" + variable)}) if ADOPTS_ORPHANS else []


def with_descendants(found: set[int]) -> list[int]:
    tree = dict(parents()) if found else {}
    while more := {pid for pid, parent in tree.items() if parent in found} - found:
        found = found | more
    return sorted(found)


def _has(pid: int, variable: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            return variable in b"\0" + file.read()
    except OSError:
        return False  # It has ended, or is another user's.


def signal_all(pids: Iterable[int], signum: int) -> bool:
    """Signals all of them, and returns whether any could be signalled: those of another user cannot."""
    signalled = False
    for pid in pids:
        try:
            os.kill(pid, signum)
        except (ProcessLookupError, PermissionError):
            continue
        signalled = True
    return signalled


def reap(options: int = 0) -> Iterator[tuple[int, int]]:
    """Every child that has ended, with its exit code; raises ChildProcessError once there is no child left."""
    while (ended := os.waitpid(-1, os.WNOHANG | options))[0]:
        if os.WIFSTOPPED(ended[1]):
            os.kill(ended[0], signal.SIGCONT)
        else:
            yield ended[0], os.waitstatus_to_exitcode(ended[1])


def send(control: int, report: bytes) -> None:
    """A line of JSON."""
    try:
        os.write(control, report + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return


def send_failure(control: int, problem: OSError | ValueError) -> None:
    import json  # noqa: PLC0415 - only failures need it

    reason, errno = (problem.strerror, problem.errno) if isinstance(problem, OSError) else (str(problem), 0)
    send(control, json.dumps({"type": "StartFailed", "reason": reason, "errno": errno}).encode())


class ChildPoll:
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
        """Waits for a descriptor, a child or the time, and returns the descriptors."""
        ready = {fd for fd, _ in self.poller.poll(None if seconds == math.inf else max(seconds, 0) * 1000)}
        if self.fds[0] in ready:
            ready.remove(self.fds[0])
            os.read(self.fds[0], 4096)
        return ready


class Monitor:
    def __init__(self, control: int) -> None:
        self.control = control
        self.poll = ChildPoll()
        self.program = 0
        self.code: int | None = None
        self.timed_out = False
        self.childless = False

    def launch(self, argv: list[bytes], cwd: bytes, env: dict[bytes, bytes], stdio: Sequence[int]) -> None:
        """Forks by itself, because posix_spawn cannot have the program killed with this process."""
        problem, report = os.pipe()
        monitor, self.program = os.getpid(), os.fork()
        if not self.program:
            become(argv, cwd, env, stdio, monitor, report)
        os.close(report)
        with open(problem, "rb") as file:  # noqa: PTH123 - a descriptor
            if text := file.read():
                os.waitpid(self.program, 0)
                number, _, reason = text.partition(b" ")
                raise OSError(int(number), reason.decode()) if int(number) else ValueError(reason.decode())

    def wait(self, limit: float, grace: float) -> None:
        """Waits until the program, the time, iterdev, or the grace after a request to end is over."""
        self.poll.poller.register(self.control, select.POLLIN)
        end_at, kill_at = time.monotonic() + limit, math.inf
        while not self.is_over(asked=kill_at < math.inf) and (now := time.monotonic()) < kill_at:
            asked = self.control in self.poll.wait(min(end_at, kill_at) - now)
            if asked and not self.read_request():
                return
            late = time.monotonic() >= end_at
            if (asked or late) and kill_at == math.inf:
                self.timed_out, end_at, kill_at = late, math.inf, time.monotonic() + grace
                signal_all(self.tree(), signal.SIGTERM)

    def read_request(self) -> bytes:
        """Empty if iterdev has ended; the connection is reset if iterdev had not read every report."""
        try:
            return os.read(self.control, 4096)
        except ConnectionResetError:
            return b""

    def is_over(self, *, asked: bool) -> bool:
        """A program that ends by itself ends its tree; one that was asked to end leaves the grace to its children."""
        self.reap()
        return self.childless or (self.code is not None and not asked)

    def kill_tree(self) -> None:
        self.poll.poller.unregister(self.control)
        sweeps = SWEEPS if ADOPTS_ORPHANS else 1
        while sweeps and (not self.childless or not ADOPTS_ORPHANS):
            # A process that is being forked may be seen only the next time; one of another user cannot be killed.
            sweeps = SWEEPS if signal_all(self.tree(), signal.SIGKILL) else sweeps - 1
            self.poll.wait(SWEEP)
            self.reap()

    def tree(self) -> list[int]:
        return descendants() if ADOPTS_ORPHANS else [-self.program]

    def reap(self) -> None:
        try:
            for pid, code in reap():
                if pid == self.program:
                    self.code = code
        except ChildProcessError:
            self.childless = True


def become(
    argv: list[bytes], cwd: bytes, env: dict[bytes, bytes], stdio: Sequence[int], monitor: int, report: int
) -> "NoReturn":
    """Turns a forked process into the program; why that is not possible is written to `report`."""
    try:
        os.setsid()
        if ADOPTS_ORPHANS:
            LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != monitor:
                os._exit(1)
        for signum in inherited_signals:
            signal.signal(signum, signal.SIG_DFL)
        os.chdir(cwd)
        for number, fd in enumerate(stdio):
            os.dup2(fd, number)
        execute(argv, env)
    except OSError as problem:
        number = problem.errno or 0
        os.write(report, b"%d %s" % (number, os.strerror(number).encode()))
    except ValueError as problem:
        os.write(report, b"0 %s" % str(problem).encode())
    finally:
        os._exit(1)


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Does what `os.execvpe` does, which would load a module in every process."""
    name, problem = argv[0], OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    folders = [b""] if b"/" in name else os.fsencode(env.get(b"PATH", os.defpath)).split(b":")
    for folder in folders:
        try:
            os.execve(os.path.join(folder, name), argv, env)  # noqa: PTH118, S606 - the program of a request
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def run_monitor(control: int, spec_fd: int, stdio: Sequence[int]) -> None:
    os.setsid()
    adopt_orphans()
    monitor = Monitor(control)
    with open(spec_fd, "rb") as file:
        file.seek(0)
        spec: Spec = marshal.load(file)  # noqa: S302 - written by iterdev, with the same interpreter
    argv, cwd, env, limit, grace = spec
    try:
        monitor.launch(argv, cwd, env, stdio)
    except (OSError, ValueError) as problem:
        send_failure(control, problem)
        return
    for fd in stdio:
        os.close(fd)
    send(control, b'{"type": "Started", "pid": %d, "monitor": %d}' % (monitor.program, os.getpid()))
    monitor.wait(math.inf if limit is None else limit, grace)
    monitor.kill_tree()
    code = -signal.SIGKILL if monitor.code is None else monitor.code
    send(control, b'{"type": "Exit", "code": %d, "timed_out": %s}' % (code, b"true" if monitor.timed_out else b"false"))


def receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    """A byte and the descriptors that came with it; nothing if iterdev has ended."""
    byte, messages, _, _ = requests.recvmsg(1, socket.CMSG_LEN(DESCRIPTORS * INT))
    data = b"".join(data for level, kind, data in messages if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS))
    return byte, [int.from_bytes(data[at : at + INT], sys.byteorder) for at in range(0, len(data), INT)]


class ForkServer:
    """Forks a monitor for every request, and kills the descendants of a monitor that was killed."""

    def __init__(self, requests: socket.socket, owned: bytes) -> None:
        self.requests = requests
        self.owned = owned
        """The variable of the processes that iterdev starts without a monitor."""
        self.listening = True
        self.closed_in_order = False
        self.poll = ChildPoll()
        self.monitors: dict[int, int] = {}
        self.ended: list[int] = []
        """Control sockets of ended monitors. Closing one reports that its tree has ended, so orphans come first."""
        self.orphans = False

    def serve(self) -> None:
        self.poll.poller.register(self.requests, select.POLLIN)
        while self.listening or self.monitors or self.orphans:
            if self.poll.wait(SWEEP if self.orphans else math.inf):
                self.accept()
            self.reap_monitors()

    def accept(self) -> None:
        byte, fds = receive(self.requests)
        if byte in {b"", CLOSING}:
            self.listening = False
            self.poll.poller.unregister(self.requests)
            self.closed_in_order = byte == CLOSING
        if not byte:
            self.kill_owned()
        for fd in fds:
            os.set_inheritable(fd, False)
        if len(fds) == DESCRIPTORS:
            self.fork(*fds)
        for fd in set(fds) - set(self.monitors.values()):
            os.close(fd)

    def kill_owned(self) -> None:
        """Kills what a killed iterdev leaves; one that was just being started is found only the next time."""
        sweeps = SWEEPS
        while sweeps:
            sweeps = SWEEPS if signal_all(started_with(self.owned), signal.SIGKILL) else sweeps - 1
            time.sleep(SWEEP)

    def fork(self, control: int, spec: int, *stdio: int) -> None:
        try:
            pid = os.fork()
        except OSError as problem:
            send_failure(control, problem)
            return
        if pid:
            self.monitors[pid] = control
            return
        failed = 1
        try:
            for fd in (self.requests.fileno(), *self.poll.fds, *self.monitors.values(), *self.ended):
                os.close(fd)
            run_monitor(control, spec, stdio)
            failed = 0
        finally:
            os._exit(failed)

    def reap_monitors(self) -> None:
        """A monitor that was stopped, as its program can do, is continued."""
        try:
            for pid, code in reap(os.WUNTRACED):
                if pid in self.monitors:
                    self.ended.append(self.monitors.pop(pid))
                    self.orphans |= code != 0
        except ChildProcessError:
            pass
        if self.orphans:
            self.orphans = ADOPTS_ORPHANS and signal_all(descendants(self.monitors), signal.SIGKILL)
        if not self.orphans:
            for control in self.ended:
                os.close(control)
            self.ended.clear()


def write(path: str, text: bytes) -> None:
    """To a file of a control group; one that cannot be used is none."""
    try:
        number = os.open(path, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(number, text)
    except OSError:
        pass
    finally:
        os.close(number)


def join(group: str) -> None:
    """Joins the control group of the engine, with all that is started from now on."""
    write(f"{group}/cgroup.procs", b"0")


def leave(group: str) -> None:
    """After a killed engine: leaves its control group, kills what is in it, and removes it."""
    join(group.rpartition("/")[0])
    for _ in range(REMOVALS):
        write(f"{group}/cgroup.kill", b"1")
        try:
            os.rmdir(group)  # noqa: PTH106 - pathlib takes long to import
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(SWEEP)
        else:
            return


def main() -> None:
    """Serves the socket whose number is the third argument.

    The first one is the variable of the processes that iterdev owns, the second one the folder of its control group, if
    it has one; those after the socket are descriptors to keep open and not inherit.
    """
    owned, group = os.fsencode(sys.argv[1]), sys.argv[2]
    requests, *leases = map(int, sys.argv[3:])
    for fd in (requests, *leases):
        os.set_inheritable(fd, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for signum in IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    inherited_signals.extend(signum for signum in RESETTABLE if signal.getsignal(signum) == signal.SIG_IGN)
    adopt_orphans()
    hide_memory()
    if group:
        join(group)
    gc.freeze()
    server = ForkServer(socket.socket(fileno=requests), owned)
    server.serve()
    if group and not server.closed_in_order:
        leave(group)


if __name__ == "__main__":
    main()
