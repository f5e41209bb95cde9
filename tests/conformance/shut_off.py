"""Runs a command where every address of the world leads back to this machine, and records who was asked for.

`unshare --net python shut_off.py RECORD COMMAND...` runs the command in a network of its own, which has nothing but
loopback. All addresses are local there, so that no request goes out, none is lost on the way, and each can be seen.
The record is a JSON list: a line per address off loopback that was asked for, and per name.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

LOOPBACK = "lo"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
RTM_NEWROUTE, NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE = 24, 1, 4, 0x400
RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, RTA_OIF = 255, 4, 254, 2, 4
ETH_P_ALL, SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 3, 33, 263, 6
TCP, UDP, SYN, ACK, DNS = 6, 17, 0x02, 0x10, 53
IPV6_HEADER = 40


def bring_up(interface: str) -> None:
    with socket.socket() as any_socket:
        name = interface.encode()
        flags = struct.unpack("16xh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh", name, 0))[:18])[0]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP))


def lead_everything_to(interface: str, family: socket.AddressFamily) -> None:
    """Makes every address an address of this machine."""
    route = struct.pack(
        "BBBBBBBBI", family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL, 0
    ) + struct.pack("HHI", 8, RTA_OIF, socket.if_nametoindex(interface))
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(route), RTM_NEWROUTE, flags, 1, 0) + route)
        error = -struct.unpack_from("i", kernel.recv(4096), 16)[0]
    if error and not (family is socket.AF_INET6 and error in {errno.EAFNOSUPPORT, errno.EOPNOTSUPP, errno.EACCES}):
        raise OSError(error, os.strerror(error))


def wanted(packet: bytes) -> str | None:
    """The host that a packet is for: a name, or an address outside of loopback; None for all other packets."""
    if packet[0] >> 4 == 4:
        protocol, host, rest = packet[9], packet[16:20], packet[(packet[0] & 15) * 4 :]
    else:
        protocol, host, rest = packet[6], packet[24:40], packet[IPV6_HEADER:]
    if protocol not in {TCP, UDP} or (protocol == TCP and rest[13] & (SYN | ACK) != SYN):
        return None
    address, port = ip_address(host), int.from_bytes(rest[2:4], "big")
    if port == DNS:
        return f"the name {asked_name(rest[8:])}" if protocol == UDP else "a name over TCP"
    return None if address.is_loopback else f"{address} port {port}"


def asked_name(query: bytes) -> str:
    labels, place = [], 12
    while size := query[place]:
        labels.append(query[place + 1 : place + 1 + size].decode(errors="replace"))
        place += size + 1
    return ".".join(labels)


class Watcher(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        with suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self._socket.bind((LOOPBACK, 0))
        self._over = threading.Event()
        self.record: set[str] = set()

    def run(self) -> None:
        self._socket.settimeout(0.05)
        while True:
            try:
                packet = self._socket.recv(256)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            if found := wanted(packet):
                self.record.add(found)

    def finish(self) -> list[str]:
        self._over.set()
        self.join()
        lost = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        return sorted(self.record) + ([f"{lost} packets that were not recorded"] if lost else [])


def main(record: str, *command: str) -> int:
    bring_up(LOOPBACK)
    for family in (socket.AF_INET, socket.AF_INET6):
        lead_everything_to(LOOPBACK, family)
    watcher = Watcher()
    watcher.start()
    done = subprocess.run(command, check=False)
    Path(record).write_text(json.dumps(watcher.finish()), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
