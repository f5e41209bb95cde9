"""Ports that no two workspaces of this machine share."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from iterdev.core.errors import HostError
from iterdev.host.workspaces.ports import ALL, Ports

HOLDER = """
import pathlib, sys
from iterdev.host.workspaces.ports import Ports
ports = Ports(10)
print(*(ports.of(pathlib.Path(name))[0] for name in ("a", "b")), flush=True)
sys.stdin.read()
"""


@contextmanager
def held(count: int, *slots: str, among: range = ALL) -> Iterator[list[range]]:
    ports = Ports(count, among)
    try:
        yield [ports.of(Path(slot)) for slot in slots]
    finally:
        anyio.run(ports.__aexit__)


@contextmanager
def listening(port: int) -> Iterator[None]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        yield


def test_workspaces_have_ports_of_their_own_and_keep_them() -> None:
    with held(10, "one", "two", "one") as (one, two, again):
        assert one == again
        assert len(one) == len(two) == 10
        assert not set(one) & set(two)
        assert {*one, *two} <= set(ALL)


def test_every_port_can_be_listened_on() -> None:
    with held(31, "one") as (ports,):
        for port in ports:
            with listening(port):
                pass


def test_another_process_gets_other_ports_until_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        theirs = {int(word) for word in other.stdout.readline().split()}
        with held(10, "one", "two") as ours:
            assert not theirs & {ports[0] for ports in ours}
        other.kill()


def test_a_block_with_a_port_in_use_is_passed_over() -> None:
    with held(10, "one") as (ports,):
        first = ports
    with listening(first[5]), held(10, "one") as (ports,):
        assert first[5] not in ports


def test_without_ports_nothing_is_held() -> None:
    with held(0, "one") as (ports,):
        assert list(ports) == []


def test_no_ports_left_is_an_error_of_the_host_with_a_hint() -> None:
    two_blocks = range(19000, 19064)

    with pytest.raises(HostError, match="No 1 free ports") as caught, held(1, "one", "two", "three", among=two_blocks):
        pass
    assert "ports = 0" in caught.value.hint
