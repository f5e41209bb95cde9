"""Which process has the other end of a connection on loopback. Only Linux says; elsewhere none is found."""

import socket
import struct
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from iterdev.host.processes.supervisor import parents

PROC = Path("/proc")
NETLINK, SOCK_DIAG, BY_FAMILY, REQUEST = 16, 4, 20, 1
ALL_STATES, NO_COOKIE = 0xFFFFFFFF, b"\xff" * 8
HEADER, INODE = 16, 84
"""Bytes of a message before its content, and before the inode in an answer."""


def socket_of_client(client: int, server: int) -> int | None:
    """The inode of the socket at a client's port that is connected to the server's port.

    The kernel is asked for this one socket: to read /proc/net/tcp takes a thousand times as long.
    """
    loopback = socket.inet_aton("127.0.0.1").ljust(HEADER, b"\0")
    ports = struct.pack(">HH", client, server)
    wanted = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, ALL_STATES)
    asked = wanted + ports + loopback + loopback + struct.pack("=I8s", 0, NO_COOKIE)
    with suppress(OSError), socket.socket(NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.sendto(struct.pack("=IHHII", HEADER + len(asked), BY_FAMILY, REQUEST, 0, 0) + asked, (0, 0))
        answer = kernel.recv(4096)
        if struct.unpack_from("=H", answer, 4)[0] == BY_FAMILY:
            return int(struct.unpack_from("=I", answer, INODE)[0])
    return None


def processes_with(inode: int, under: Collection[int]) -> Iterator[int]:
    """The processes that have the socket open; first those that are descendants of the processes `under`."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents():
        children.setdefault(parent, []).append(pid)
    nearest = list(under)
    for pid in nearest:
        nearest.extend(children.pop(pid, ()))
    for pid in (*nearest, *(pid for found in children.values() for pid in found)):
        if _has_open(pid, f"socket:[{inode}]"):
            yield pid


def _has_open(pid: int, name: str) -> bool:
    with suppress(OSError):
        return any(str(link.readlink()) == name for link in (PROC / str(pid) / "fd").iterdir())
    return False
