"""Connections to a real server, by Temporal's own configuration; what is wrong is one sentence with a hint."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct
from tests.temporal_server import TemporalServer, free_port

from iterdev.core.errors import HostError, UserError
from iterdev.execution.temporal.connection import Unreachable, connect
from iterdev.execution.temporal.keys import KeyRing, new_key

KEYS = KeyRing((new_key(),))

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_server_is_found_by_the_environment(server: TemporalServer) -> None:
    connection = await connect("default", KEYS, environment=server.environment)

    assert (connection.address, connection.namespace) == (server.address, "default")
    assert connection.retention >= timedelta(days=1)
    assert connection.payload_limit >= 1_000_000


async def test_a_server_is_found_by_a_profile(server: TemporalServer, tmp_path: Path) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text(f'[profile.team]\naddress = "{server.address}"\nnamespace = "default"\n')

    connection = await connect("team", KEYS, environment={"TEMPORAL_CONFIG_FILE": str(file)})

    assert connection.address == server.address


async def test_a_profile_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text("[profile.other]\n")

    with pytest.raises(UserError, match='The profile "team"') as caught:
        await connect("team", KEYS, environment={"TEMPORAL_CONFIG_FILE": str(file)})

    assert "temporal config set --profile team" in caught.value.hint


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    address = f"127.0.0.1:{free_port()}"

    with pytest.raises(Unreachable, match="cannot be reached") as caught:
        await connect("default", KEYS, environment={"TEMPORAL_ADDRESS": address})

    assert address in caught.value.message


async def test_a_namespace_that_is_not_there_is_refused(server: TemporalServer) -> None:
    with pytest.raises(HostError, match='has no namespace "foreign"') as caught:
        await connect("default", KEYS, environment=server.environment | {"TEMPORAL_NAMESPACE": "foreign"})

    assert caught.value.hint == "temporal operator namespace create --namespace foreign --retention 7d"


class Authority(Struct, frozen=True):
    """A certificate authority of a test."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def file(self) -> str:
        return str(self.folder / "ca.pem")

    def issued(self, name: str) -> tuple[str, str]:
        """The files with a certificate for the name and this machine, and with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
        builder = _certificate(name, self.certificate.subject, key).add_extension(names, critical=False)
        return _written(self.folder, name, builder.sign(self.key, hashes.SHA256()), key)


def _certificate(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))


def _written(
    folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> tuple[str, str]:
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(files[0]), str(files[1])


def authority(folder: Path) -> Authority:
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    builder = _certificate("ca", name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    certificate = builder.sign(key, hashes.SHA256())
    _written(folder, "ca", certificate, key)
    return Authority(folder, certificate, key)


@asynccontextmanager
async def with_tls(server: TemporalServer, ca: Authority) -> AsyncIterator[str]:
    """The address of the server behind TLS that asks each client for a certificate of the authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca.file)
    context.load_cert_chain(*ca.issued("temporal"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    host, _, port = server.address.partition(":")
    tasks, writers = set[asyncio.Task[None]](), set[asyncio.StreamWriter]()

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)  # Before the handshake, in which a connection may still be when the test ends.
        with suppress(OSError):
            await writer.start_tls(context)
            inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
            writers.add(inner_writer)
            tasks.update(asyncio.create_task(pump(*pair)) for pair in ((reader, inner_writer), (inner_reader, writer)))

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


def variables(address: str, trusted: Authority, own: Authority) -> Mapping[str, str]:
    certificate, key = own.issued("client")
    return {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": trusted.file,
        "TEMPORAL_TLS_CLIENT_CERT_PATH": certificate,
        "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
    }


async def test_a_certificate_of_the_servers_authority_is_accepted(server: TemporalServer, tmp_path: Path) -> None:
    ca = authority(tmp_path / "ca")

    async with with_tls(server, ca) as address:
        connection = await connect("default", KEYS, environment=variables(address, ca, ca))

    assert connection.address == address


@pytest.mark.parametrize("trusts_other", [True, False])
async def test_another_authority_is_refused_on_both_sides(
    server: TemporalServer, tmp_path: Path, *, trusts_other: bool
) -> None:
    ca, other = authority(tmp_path / "ca"), authority(tmp_path / "other")
    trusted, own = (other, ca) if trusts_other else (ca, other)

    async with with_tls(server, ca) as address:
        with pytest.raises(Unreachable, match=r"cannot be reached: .*certificate") as caught:
            await connect("default", KEYS, environment=variables(address, trusted, own))

    assert "\n" not in caught.value.message


async def test_a_server_with_tls_is_not_spoken_to_without(server: TemporalServer, tmp_path: Path) -> None:
    ca = authority(tmp_path / "ca")

    async with with_tls(server, ca) as address:
        with pytest.raises(Unreachable):
            await connect("default", KEYS, environment={"TEMPORAL_ADDRESS": address})
